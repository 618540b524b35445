// SPDX-License-Identifier: Apache-2.0
// Computes of the caller's organisation: registration with single-use install tokens, listing,
// revocation; and discovery of the planes.
#pragma once

#include "auth/api_keys/credential.h"
#include "control_plane/options.h"
#include "control_plane/store/audit.h"
#include "control_plane/store/computes.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

class ComputeApi final : public control::v1::ComputeService {
 public:
  /// Every argument outlives this.
  ComputeApi(storage::Database& database, const auth::CredentialHasher& hasher,
             const AuditLog& audit, const Options& options, const platform::Clock& clock,
             platform::Random& random)
      : database_(database),
        hasher_(hasher),
        audit_(audit),
        options_(options),
        clock_(clock),
        random_(random) {}

  /// Without compute_id a new compute; with it a new token for that one, older tokens die.
  Result<control::v1::RegisterComputeResponse> RegisterCompute(
      const rpc::CallContext& context, const control::v1::RegisterComputeRequest& request) override;
  Result<control::v1::ListComputesResponse> ListComputes(
      const rpc::CallContext& context, const control::v1::ListComputesRequest& request) override;
  Result<control::v1::GetComputeResponse> GetCompute(
      const rpc::CallContext& context, const control::v1::GetComputeRequest& request) override;
  Result<control::v1::RevokeComputeResponse> RevokeCompute(
      const rpc::CallContext& context, const control::v1::RevokeComputeRequest& request) override;

 private:
  Result<ComputeRow> NewCompute(storage::Transaction& tx, const rpc::Caller& caller,
                                const control::v1::RegisterComputeRequest& request) const;
  Result<ComputeRow> RegisterAgain(storage::Transaction& tx, const rpc::Caller& caller,
                                   const control::v1::RegisterComputeRequest& request) const;
  Result<ComputeRow> Visible(storage::Transaction& tx, const rpc::Caller& caller,
                             const std::string& compute_id) const;

  storage::Database& database_;
  const auth::CredentialHasher& hasher_;
  const AuditLog& audit_;
  const Options& options_;
  const platform::Clock& clock_;
  platform::Random& random_;
};

class DiscoveryApi final : public control::v1::DiscoveryService {
 public:
  /// options outlives this.
  explicit DiscoveryApi(const Options& options) : options_(options) {}
  Result<control::v1::GetEndpointsResponse> GetEndpoints(
      const rpc::CallContext& context, const control::v1::GetEndpointsRequest& request) override;

 private:
  const Options& options_;
};

/// "slurm", "kubernetes", "nomad", "vm"; "" for an unknown one.
std::string_view ComputeTypeName(control::v1::ComputeType type);

}  // namespace expanse::control_plane
