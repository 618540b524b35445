// SPDX-License-Identifier: Apache-2.0
// Server side of the contract: POST /expanse.<plane>.v1.<Service>/<Method>, bodies as
// application/json (proto3 JSON, original field names) or application/proto, Connect's unary
// error shape {code, message, details}. Generated code (tools/protoc_gen_expanse) adds methods.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "base/result.h"
#include "platform/net/http.h"
#include "rpc/call_context.h"

namespace expanse::rpc {

/// Turns a bearer token into a caller, or says why not (kUnauthenticated).
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// permission: the rpc's option; tells which kind of credential is expected
  /// ("compute", "plane", or a session for everything else). Never called for "public".
  virtual Result<Caller> Authenticate(std::string_view bearer, std::string_view permission) = 0;
};

struct Method {
  std::string path;        // "/expanse.control.v1.AuthService/MintSession"
  std::string permission;  // from the rpc's option
  std::function<std::unique_ptr<google::protobuf::Message>()> new_request;
  std::function<Result<std::unique_ptr<google::protobuf::Message>>(
      const CallContext&, const google::protobuf::Message&)>
      call;
};

class Router {
 public:
  /// authenticator outlives the router.
  explicit Router(Authenticator& authenticator);

  void Add(Method method);
  /// Any other path, e.g. GET /healthz, without authentication.
  void AddPlain(const std::string& method, const std::string& path, platform::HttpHandler handler);
  /// Sees every request after it was read and before it is handled: for tests that look at all
  /// bytes a plane receives.
  void SetTap(std::function<void(const platform::HttpRequest&)> tap);

  platform::HttpResponse Handle(const platform::HttpRequest& request) const;

 private:
  platform::HttpResponse HandleRpc(const Method& method,
                                   const platform::HttpRequest& request) const;
  Authenticator& authenticator_;
  std::map<std::string, Method, std::less<>> methods_;
  std::map<std::string, platform::HttpHandler, std::less<>> plain_;
  std::function<void(const platform::HttpRequest&)> tap_;
};

/// Default time a handler gets when the client sends no Connect-Timeout-Ms.
inline constexpr Millis kDefaultCallTimeout{30'000};

}  // namespace expanse::rpc
