// SPDX-License-Identifier: Apache-2.0
// Members, teams, API keys and the audit log of the caller's organisation.
#pragma once

#include "auth/api_keys/credential.h"
#include "control_plane/store/audit.h"
#include "control_plane/store/members.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

class OrganisationApi final : public control::v1::OrganisationService {
 public:
  /// Every argument outlives this.
  OrganisationApi(storage::Database& database, const auth::CredentialHasher& hasher,
                  const AuditLog& audit, const platform::Clock& clock, platform::Random& random)
      : database_(database), hasher_(hasher), audit_(audit), clock_(clock), random_(random) {}

  Result<control::v1::CreateUserResponse> CreateUser(
      const rpc::CallContext& context, const control::v1::CreateUserRequest& request) override;
  Result<control::v1::ListUsersResponse> ListUsers(
      const rpc::CallContext& context, const control::v1::ListUsersRequest& request) override;
  Result<control::v1::CreateTeamResponse> CreateTeam(
      const rpc::CallContext& context, const control::v1::CreateTeamRequest& request) override;
  Result<control::v1::ListTeamsResponse> ListTeams(
      const rpc::CallContext& context, const control::v1::ListTeamsRequest& request) override;
  Result<control::v1::CreateApiKeyResponse> CreateApiKey(
      const rpc::CallContext& context, const control::v1::CreateApiKeyRequest& request) override;
  Result<control::v1::ListApiKeysResponse> ListApiKeys(
      const rpc::CallContext& context, const control::v1::ListApiKeysRequest& request) override;
  Result<control::v1::RevokeApiKeyResponse> RevokeApiKey(
      const rpc::CallContext& context, const control::v1::RevokeApiKeyRequest& request) override;
  Result<control::v1::ListAuditEventsResponse> ListAuditEvents(
      const rpc::CallContext& context, const control::v1::ListAuditEventsRequest& request) override;

 private:
  /// The member whose keys the caller may handle: the caller, or with members.manage another one
  /// whose permissions the caller has all of. Anything wider would let a manager of members act
  /// as an owner.
  Result<Member> KeyHolder(storage::Transaction& tx, const rpc::Caller& caller,
                           const std::string& user_id, bool for_change) const;
  Result<Member> NewMember(storage::Transaction& tx, const rpc::Caller& caller,
                           const control::v1::CreateUserRequest& request) const;

  storage::Database& database_;
  const auth::CredentialHasher& hasher_;
  const AuditLog& audit_;
  const platform::Clock& clock_;
  platform::Random& random_;
};

}  // namespace expanse::control_plane
