// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.pb.h"
#include "platform/net/http_server.h"
#include "rpc/channel.h"
#include "rpc/connect_error.h"
#include "rpc/json.h"
#include "rpc/router.h"

namespace expanse::rpc {
namespace {

using control::v1::AuthServiceClient;
using testing::HasSubstr;

class FakeAuthenticator final : public Authenticator {
 public:
  Result<Caller> Authenticate(std::string_view bearer, std::string_view) override {
    if (bearer == "good" || bearer == "bare") {
      Caller caller;
      caller.kind = CallerKind::kUser;
      caller.email = "a@example.org";
      if (bearer == "good") caller.permissions = {"computes.register"};
      return caller;
    }
    return Error(Code::kUnauthenticated, "token not known");
  }
};

class FakeAuth final : public control::v1::AuthService {
 public:
  Result<control::v1::MintSessionResponse> MintSession(
      const CallContext&, const control::v1::MintSessionRequest& request) override {
    if (request.api_key().empty()) return Error(Code::kInvalidArgument, "api_key is empty");
    control::v1::MintSessionResponse r;
    r.set_expires_at_ms(0);
    r.mutable_identity()->set_email(request.api_key());
    return r;
  }
  Result<control::v1::WhoAmIResponse> WhoAmI(const CallContext& context,
                                             const control::v1::WhoAmIRequest&) override {
    control::v1::WhoAmIResponse r;
    r.mutable_identity()->set_email(context.caller.email);
    r.set_expires_at_ms(1234567890123);
    return r;
  }
  Result<control::v1::GetKeySetResponse> GetKeySet(const CallContext&,
                                                   const control::v1::GetKeySetRequest&) override {
    return Error(Code::kNotFound, "bytes \xff from outside");
  }
};

struct RouterTest : testing::Test {
  RouterTest() { control::v1::Register(router, service); }
  platform::HttpResponse Post(const std::string& path, const std::string& body,
                              const std::string& type = "application/json",
                              const std::string& bearer = "") {
    platform::HttpRequest request{"POST", path, {{"content-type", type}}, body, "test"};
    if (!bearer.empty()) request.headers["authorization"] = "Bearer " + bearer;
    return router.Handle(request);
  }
  FakeAuthenticator authenticator;
  FakeAuth service;
  Router router{authenticator};
};

TEST_F(RouterTest, JsonHasOriginalNamesAndStringInt64) {
  const auto r = Post("/expanse.control.v1.AuthService/WhoAmI", "{}", "application/json", "good");
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, R"({"identity":{"email":"a@example.org"},"expires_at_ms":"1234567890123"})");
}

TEST_F(RouterTest, ErrorsHaveConnectsShapeAndStatus) {
  auto r = Post("/expanse.control.v1.AuthService/MintSession", "{}");
  EXPECT_EQ(r.status, 400);
  EXPECT_EQ(r.body, R"({"code":"invalid_argument","message":"api_key is empty"})");
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/WhoAmI", "{}").status, 401);
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/WhoAmI", "{}", "application/json", "x").status,
            401);
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/Nope", "{}").status, 501);
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/MintSession", "{}", "text/plain").status, 415);
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/MintSession", "{not json").status, 400);
  EXPECT_EQ(
      Post("/expanse.control.v1.AuthService/MintSession", "\xff\xff", "application/proto").status,
      400);
  EXPECT_THAT(Post("/expanse.control.v1.AuthService/GetKeySet", "{}").body,
              HasSubstr("bytes \xEF\xBF\xBD from outside"));
  EXPECT_EQ(router.Handle({"GET", "/expanse.control.v1.AuthService/WhoAmI", {}, "", ""}).status,
            405);
}

TEST_F(RouterTest, DeepJsonIsRefusedNotFollowed) {
  std::string deep = "{\"x\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_EQ(Post("/expanse.control.v1.AuthService/MintSession", deep).status, 400);
}

TEST_F(RouterTest, ClientAndServerTalkOverHttpAndErrorsKeepTheirCode) {
  auto server = platform::HttpServer::Start({}, [this](const auto& r) { return router.Handle(r); });
  ASSERT_TRUE(server.ok());
  const auto http = platform::NewCurlHttpClient();
  HttpChannel channel(*http, (*server)->url() + "/");
  const AuthServiceClient client(channel);
  const auto me = client.WhoAmI("good", {});
  ASSERT_TRUE(me.ok()) << me.error().message();
  EXPECT_EQ(me->identity().email(), "a@example.org");
  EXPECT_EQ(client.WhoAmI("bad", {}).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(client.GetKeySet("", {}).error().code(), Code::kNotFound);
  HttpChannel wrong(*http, (*server)->url() + "/other");
  EXPECT_EQ(AuthServiceClient(wrong).WhoAmI("good", {}).error().code(), Code::kUnimplemented);
}

TEST(Json, OptionalZeroPrintsAndUnseenIsAbsent) {
  common::v1::Execution e;
  e.set_exit_code(0);
  (*e.mutable_unknown())["memory_need"] = "cgroup gone";
  EXPECT_EQ(ToJson(e).value(), R"({"exit_code":0,"unknown":{"memory_need":"cgroup gone"}})");
  common::v1::Execution back;
  ASSERT_TRUE(FromJson(R"({"exit_code":0,"a_newer_field":[1,{"x":2}]})", &back).ok());
  EXPECT_TRUE(back.has_exit_code());
}

TEST(ConnectError, UnderstandsForeignBodies) {
  EXPECT_EQ(ErrorFromResponse(502, "<html>bad gateway</html>").code(), Code::kUnavailable);
  EXPECT_EQ(ErrorFromResponse(404, R"({"code":"not_found","message":"m"})").message(), "m");
  EXPECT_EQ(ErrorFromResponse(500, R"({"code":7})").code(), Code::kUnknown);
}

}  // namespace
}  // namespace expanse::rpc
