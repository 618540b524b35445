// SPDX-License-Identifier: Apache-2.0
#include "rpc/connect_error.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"

namespace expanse::rpc {

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kCanceled:
      return 499;
    case Code::kUnknown:
      return 500;
    case Code::kInvalidArgument:
      return 400;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
      return 409;
    case Code::kPermissionDenied:
      return 403;
    case Code::kResourceExhausted:
      return 429;
    case Code::kFailedPrecondition:
      return 400;
    case Code::kAborted:
      return 409;
    case Code::kOutOfRange:
      return 400;
    case Code::kUnimplemented:
      return 501;
    case Code::kInternal:
      return 500;
    case Code::kUnavailable:
      return 503;
    case Code::kDataLoss:
      return 500;
    case Code::kUnauthenticated:
      return 401;
  }
  return 500;
}

namespace {

// For answers that are not Connect's own, e.g. of a proxy.
Code CodeOfHttpStatus(int status) {
  switch (status) {
    case 400:
      return Code::kInternal;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kUnimplemented;
    case 408:
    case 504:
      return Code::kDeadlineExceeded;
    case 413:
    case 429:
      return Code::kResourceExhausted;
    case 502:
    case 503:
      return Code::kUnavailable;
    default:
      return Code::kUnknown;
  }
}

}  // namespace

std::string ErrorBody(const Error& error) {
  boost::json::object body;
  body["code"] = std::string(CodeName(error.code()));
  body["message"] = ToUtf8(error.message());
  return boost::json::serialize(body);
}

Error ErrorFromResponse(int http_status, std::string_view body) {
  boost::system::error_code ec;
  const auto value = boost::json::parse(boost::json::string_view(body.data(), body.size()), ec);
  if (!ec && value.is_object()) {
    const auto& object = value.as_object();
    const auto* code = object.if_contains("code");
    const auto* message = object.if_contains("message");
    if (code != nullptr && code->is_string()) {
      const auto known = CodeFromName(std::string_view(code->as_string()));
      const std::string text =
          message != nullptr && message->is_string() ? std::string(message->as_string()) : "";
      return Error(known.value_or(Code::kUnknown), text);
    }
  }
  return Error(
      CodeOfHttpStatus(http_status),
      fmt::format("HTTP status {}: {}", http_status, EscapeForTerminal(Trim(body).substr(0, 200))));
}

}  // namespace expanse::rpc
