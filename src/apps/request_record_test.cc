// SPDX-License-Identifier: Apache-2.0
#include "apps/request_record.h"

#include <string>

#include <gtest/gtest.h>

namespace expanse::apps {
namespace {

using std::string_literals::operator""s;

TEST(RequestRecord, HoldsWhatCameButNoCredential) {
  platform::HttpRequest request;
  request.method = "POST";
  request.target = "/expanse.control.v1.AuthService/MintSession?key=exp_user_ab12-CD_x";
  request.headers = {{"authorization", "Bearer exp_compute_s3cret"},
                     {"content-type", "application/json"},
                     {"cookie", "session=s3cret"},
                     {"x-forwarded", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2ln"}};
  request.body = R"({"api_key":"exp_user_ab12-CD_x","session":"eyJhbGci.eyJz.c2ln","nodes":2})";
  EXPECT_EQ(RecordedRequest(request),
            "POST /expanse.control.v1.AuthService/MintSession?key=exp_user_[redacted]\n"
            "authorization: [redacted]\n"
            "content-type: application/json\n"
            "cookie: [redacted]\n"
            "x-forwarded: [redacted]\n"
            "\n"
            R"({"api_key":"exp_user_[redacted]","session":"[redacted]","nodes":2})"
            "\n\n");
}

TEST(RequestRecord, RedactsInBinaryBodiesAndKeepsEveryOtherByte) {
  platform::HttpRequest request;
  request.method = "POST";
  request.target = "/x";
  request.body =
      "\x0a\x12"
      "exp_install_abc\x00\x12\x03hpc\xff exp_ exp_9 eyJ"s;
  EXPECT_EQ(RecordedRequest(request),
            "POST /x\n\n\x0a\x12"
            "exp_install_[redacted]\x00\x12\x03hpc\xff exp_ exp_9 eyJ\n\n"s);
}

}  // namespace
}  // namespace expanse::apps
