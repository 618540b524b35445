// SPDX-License-Identifier: Apache-2.0
// Sign-in: an API key becomes a session token.
#pragma once

#include "control_plane/options.h"
#include "control_plane/server_keys.h"
#include "control_plane/store/audit.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

control::v1::PlaneEndpoints ToProto(const Endpoints& endpoints);

class AuthApi final : public control::v1::AuthService {
 public:
  /// Every argument outlives this.
  AuthApi(storage::Database& database, ServerKeys& keys, const AuditLog& audit,
          const Options& options, const platform::Clock& clock)
      : database_(database), keys_(keys), audit_(audit), options_(options), clock_(clock) {}

  /// kUnauthenticated: the key is not known or revoked. kPermissionDenied: another organisation
  /// was asked for than this key may act in.
  Result<control::v1::MintSessionResponse> MintSession(
      const rpc::CallContext& context, const control::v1::MintSessionRequest& request) override;
  Result<control::v1::WhoAmIResponse> WhoAmI(const rpc::CallContext& context,
                                             const control::v1::WhoAmIRequest& request) override;
  Result<control::v1::GetKeySetResponse> GetKeySet(
      const rpc::CallContext& context, const control::v1::GetKeySetRequest& request) override;

 private:
  storage::Database& database_;
  ServerKeys& keys_;
  const AuditLog& audit_;
  const Options& options_;
  const platform::Clock& clock_;
};

/// For every rpc of the control plane.
class ControlAuthenticator final : public rpc::Authenticator {
 public:
  ControlAuthenticator(storage::Database& database, ServerKeys& keys, const platform::Clock& clock)
      : database_(database), keys_(keys), clock_(clock) {}
  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission) override;

 private:
  Result<rpc::Caller> AuthenticatePlane(std::string_view bearer);
  storage::Database& database_;
  ServerKeys& keys_;
  const platform::Clock& clock_;
};

}  // namespace expanse::control_plane
