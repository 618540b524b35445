// SPDX-License-Identifier: Apache-2.0
// What a data plane asks its authority: install tokens, compute credentials, heartbeats. A plane
// acts for one organisation; what belongs to another is refused by name.
//
// A credential in a request's body is never answered with kUnauthenticated, so that the plane can
// tell "that credential is bad" from "my own credential is bad":
//   kNotFound            not known
//   kPermissionDenied    revoked, replaced, or of another organisation
//   kFailedPrecondition  an install token that expired, was used, or was replaced
#pragma once

#include "auth/api_keys/credential.h"
#include "control_plane/options.h"
#include "control_plane/store/audit.h"
#include "control_plane/store/computes.h"
#include "control_plane/store/credentials.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

class PlaneApi final : public control::v1::PlaneService {
 public:
  /// Every argument outlives this.
  PlaneApi(storage::Database& database, const auth::CredentialHasher& hasher, const AuditLog& audit,
           const Options& options, const platform::Clock& clock, platform::Random& random)
      : database_(database),
        hasher_(hasher),
        audit_(audit),
        options_(options),
        clock_(clock),
        random_(random) {}

  /// The same token may be exchanged again until the compute's first heartbeat or its expiry: each
  /// exchange replaces the credential of the one before, so that one credential lives at a time.
  /// When the scheduler is one that this organisation knows, the known compute and its history
  /// take the registration's place (see KnownCompute).
  Result<control::v1::ExchangeInstallTokenResponse> ExchangeInstallToken(
      const rpc::CallContext& context,
      const control::v1::ExchangeInstallTokenRequest& request) override;
  Result<control::v1::VerifyComputeCredentialResponse> VerifyComputeCredential(
      const rpc::CallContext& context,
      const control::v1::VerifyComputeCredentialRequest& request) override;
  /// A heartbeat of the last minute counts as of now, which forgives clocks that differ; an older
  /// one (the data plane brings what this plane missed) counts as of its time. One from before the
  /// living credential is not that credential's and changes nothing. COMPUTE_STATE_REVOKED, and
  /// nothing recorded, when the compute is revoked or has no living credential: the sender's must
  /// be forgotten.
  Result<control::v1::RecordHeartbeatResponse> RecordHeartbeat(
      const rpc::CallContext& context, const control::v1::RecordHeartbeatRequest& request) override;
  /// Again on a revoked compute: no change, no error.
  Result<control::v1::DeprovisionResponse> Deprovision(
      const rpc::CallContext& context, const control::v1::DeprovisionRequest& request) override;

 private:
  Result<InstallTokenRow> LivingToken(storage::Transaction& tx, const OrgId& org,
                                      const std::string& token) const;
  Result<ComputeRow> ComputeOfToken(storage::Transaction& tx, const InstallTokenRow& token,
                                    const std::string& scheduler_identity) const;
  Result<std::optional<ComputeRow>> KnownCompute(storage::Transaction& tx,
                                                 const InstallTokenRow& token,
                                                 const ComputeRow& registered,
                                                 const std::string& scheduler_identity) const;
  Status Record(storage::Transaction& tx, const control::v1::RecordHeartbeatRequest& heartbeat,
                int64_t at_ms, ComputeRow* compute) const;
  Result<bool> MayReplace(storage::Transaction& tx, const InstallTokenRow& token,
                          const ComputeRow& registered, const ComputeRow& known) const;

  storage::Database& database_;
  const auth::CredentialHasher& hasher_;
  const AuditLog& audit_;
  const Options& options_;
  const platform::Clock& clock_;
  platform::Random& random_;
};

}  // namespace expanse::control_plane
