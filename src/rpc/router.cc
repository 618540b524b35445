// SPDX-License-Identifier: Apache-2.0
#include "rpc/router.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include "base/log.h"
#include "base/strings.h"
#include "rpc/connect_error.h"
#include "rpc/json.h"

namespace expanse::rpc {
namespace {

platform::HttpResponse ErrorResponse(const Error& error) {
  return {HttpStatusOf(error.code()), {{"content-type", "application/json"}}, ErrorBody(error)};
}

std::string Header(const platform::HttpRequest& request, const char* name) {
  const auto it = request.headers.find(name);
  return it == request.headers.end() ? "" : it->second;
}

/// The media type without parameters, lower case.
std::string MediaType(const platform::HttpRequest& request) {
  const std::string type = Header(request, "content-type");
  return ToLower(Trim(std::string_view(type).substr(0, type.find(';'))));
}

Result<Deadline> DeadlineOf(const platform::HttpRequest& request) {
  const std::string text = Header(request, "connect-timeout-ms");
  if (text.empty()) return Deadline::In(kDefaultCallTimeout);
  const auto ms = ParseInt64(text);
  if (!ms || *ms < 0 || text.size() > 10)
    return Error(Code::kInvalidArgument,
                 fmt::format("Connect-Timeout-Ms '{}' is not a number of milliseconds", text));
  return Deadline::In(std::min(Millis(*ms), Millis(600'000)));
}

Status ParseBody(const platform::HttpRequest& request, const std::string& type,
                 google::protobuf::Message* message) {
  if (type == "application/json")
    return FromJson(request.body.empty() ? std::string_view("{}") : request.body, message);
  if (!message->ParseFromString(request.body))
    return Error(Code::kInvalidArgument, "the body is not a " + message->GetTypeName());
  return {};
}

}  // namespace

Router::Router(Authenticator& authenticator) : authenticator_(authenticator) {}

void Router::Add(Method method) {
  EXPANSE_CHECK(!method.permission.empty());
  std::string path = method.path;
  EXPANSE_CHECK(methods_.emplace(std::move(path), std::move(method)).second);
}

void Router::AddPlain(const std::string& method, const std::string& path,
                      platform::HttpHandler handler) {
  plain_[method + " " + path] = std::move(handler);
}

void Router::SetTap(std::function<void(const platform::HttpRequest&)> tap) {
  tap_ = std::move(tap);
}

platform::HttpResponse Router::Handle(const platform::HttpRequest& request) const {
  if (tap_) tap_(request);
  const std::string path = request.target.substr(0, request.target.find('?'));
  const auto plain = plain_.find(request.method + " " + path);
  if (plain != plain_.end()) return plain->second(request);
  const auto method = methods_.find(path);
  if (method == methods_.end())
    return ErrorResponse(Error(
        Code::kUnimplemented, fmt::format("no method {}", EscapeForTerminal(path.substr(0, 200)))));
  if (request.method != "POST") {
    auto response = ErrorResponse(
        Error(Code::kUnimplemented, "use POST with application/json or application/proto"));
    response.status = 405;
    response.headers["allow"] = "POST";
    return response;
  }
  return HandleRpc(method->second, request);
}

platform::HttpResponse Router::HandleRpc(const Method& method,
                                         const platform::HttpRequest& request) const {
  const std::string type = MediaType(request);
  if (type != "application/json" && type != "application/proto") {
    auto response = ErrorResponse(Error(
        Code::kInvalidArgument, "Content-Type must be application/json or application/proto"));
    response.status = 415;
    response.headers["accept-post"] = "application/json, application/proto";
    return response;
  }
  const auto deadline = DeadlineOf(request);
  if (!deadline.ok()) return ErrorResponse(deadline.error());

  Caller caller;
  if (method.permission != "public") {
    const std::string authorization = Header(request, "authorization");
    if (!StartsWithIgnoreCase(authorization, "Bearer "))
      return ErrorResponse(
          Error(Code::kUnauthenticated, "no credential; send Authorization: Bearer TOKEN"));
    const std::string bearer(Trim(std::string_view(authorization).substr(7)));
    auto authenticated = authenticator_.Authenticate(bearer, method.permission);
    if (!authenticated.ok()) return ErrorResponse(authenticated.error());
    caller = std::move(authenticated).value();
    caller.bearer = bearer;
    const bool named_permission = method.permission != "session" &&
                                  method.permission != "compute" && method.permission != "plane";
    if (named_permission && !caller.HasPermission(method.permission))
      return ErrorResponse(Error(Code::kPermissionDenied,
                                 fmt::format("needs the permission {}", method.permission)));
  }

  // On an arena: a push has thousands of small messages, made and freed together.
  google::protobuf::ArenaOptions arena_options;
  arena_options.max_block_size = size_t{64} << 10;
  google::protobuf::Arena arena(arena_options);
  auto* const message = method.new_request()->New(&arena);
  if (auto status = ParseBody(request, type, message); !status.ok())
    return ErrorResponse(status.error());
  auto answer = method.call(CallContext{std::move(caller), *deadline, request.peer}, *message);
  if (!answer.ok()) {
    if (answer.error().code() == Code::kInternal || answer.error().code() == Code::kDataLoss)
      log::Error("rpc.failed", {{"method", method.path}, {"error", answer.error().message()}});
    return ErrorResponse(answer.error());
  }
  platform::HttpResponse response{200, {{"content-type", type}}, ""};
  if (type == "application/json") {
    auto json = ToJson(**answer);
    if (!json.ok()) return ErrorResponse(json.error());
    response.body = std::move(json).value();
  } else if (!(*answer)->SerializeToString(&response.body)) {
    return ErrorResponse(Error(Code::kResourceExhausted, "the answer is too large"));
  }
  return response;
}

}  // namespace expanse::rpc
