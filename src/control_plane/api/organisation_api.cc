// SPDX-License-Identifier: Apache-2.0
#include "control_plane/api/organisation_api.h"

#include <algorithm>

#include "auth/permissions/permissions.h"
#include "control_plane/api/checks.h"
#include "control_plane/store/credentials.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;

constexpr int kDefaultAuditLimit = 100;
constexpr int kMaxAuditLimit = 1000;

v1::User UserOf(const Member& member) {
  v1::User out;
  out.set_user_id(member.user.str());
  out.set_email(member.email);
  out.set_name(member.name);
  out.set_role(member.role.name);
  for (const auto& team : member.teams) out.add_team_ids(team.str());
  return out;
}

v1::ApiKey KeyOf(const ApiKeyRow& row) {
  v1::ApiKey out;
  out.set_key_id(row.id);
  out.set_label(row.label);
  out.set_user_id(row.user.str());
  out.set_created_at_ms(row.created_at_ms);
  if (row.revoked_at_ms) out.set_revoked_at_ms(*row.revoked_at_ms);
  if (row.last_used_at_ms) out.set_last_used_at_ms(*row.last_used_at_ms);
  out.set_hint(row.hint);
  return out;
}

/// Owner is handed out and handled by owners only; every other role by those who hold all of it.
Status MayGrant(const Role& role, const Member& granter) {
  if (role.is_protected && !granter.role.is_protected)
    return Error(Code::kPermissionDenied, "only an owner can do this for an owner");
  if (!auth::IsSubset(role.permissions, granter.role.permissions))
    return Error(Code::kPermissionDenied,
                 "role " + role.name + " has permissions that yours does not have");
  return {};
}

/// The caller as the database knows it now: roles change while a session lives.
Result<Member> CallingMember(Members& members, const rpc::Caller& caller) {
  EXPANSE_TRY(auto member, members.Find(caller.org, caller.user));
  if (!member)
    return Error(Code::kPermissionDenied, "you are no longer a member of this organisation");
  return std::move(*member);
}

}  // namespace

Result<Member> OrganisationApi::NewMember(storage::Transaction& tx, const rpc::Caller& caller,
                                          const v1::CreateUserRequest& request) const {
  Members members(tx);
  Member member;
  member.org = caller.org;
  member.user = UserId(platform::NewUuid(clock_, random_));
  EXPANSE_TRY(member.email, CheckedEmail(request.email()));
  if (request.name().empty()) {
    member.name = member.email;
  } else {
    EXPANSE_TRY(member.name, CheckedText("name", request.name(), kMaxNameBytes));
  }
  EXPANSE_TRY(auto role, members.FindRole(caller.org, request.role()));
  if (!role)
    return Error(
        Code::kInvalidArgument,
        "there is no such role in this organisation; Owner, Admin and Member always exist");
  member.role = std::move(*role);
  EXPANSE_TRY(const Member granter, CallingMember(members, caller));
  EXPANSE_CHECK_OK(MayGrant(member.role, granter));
  for (const auto& id : request.team_ids()) {
    EXPANSE_TRY(const bool exists, members.TeamExists(caller.org, TeamId(id)));
    if (!exists) return Error(Code::kInvalidArgument, "there is no team with id " + id);
    member.teams.emplace_back(id);
  }
  const auto& permissions = member.role.permissions;
  const bool sees_all = std::find(permissions.begin(), permissions.end(),
                                  auth::kExecutionsReadAll) != permissions.end();
  if (!sees_all && member.teams.empty())
    return Error(Code::kInvalidArgument,
                 "role " + member.role.name +
                     " sees the computes of its teams only: name at least one team");
  return member;
}

Result<v1::CreateUserResponse> OrganisationApi::CreateUser(const rpc::CallContext& context,
                                                           const v1::CreateUserRequest& request) {
  const rpc::Caller& caller = context.caller;
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::CreateUserResponse> {
    EXPANSE_TRY(const Member member, NewMember(tx, caller, request));
    Members members(tx);
    EXPANSE_TRY(const auto existing, members.FindByEmail(caller.org, member.email));
    if (existing)
      return Error(Code::kAlreadyExists,
                   member.email + " is a member of this organisation already");
    EXPANSE_CHECK_OK(members.Insert(member, ToUnixMillis(clock_.Now())));
    for (const auto& team : member.teams)
      EXPANSE_CHECK_OK(members.AddToTeam(caller.org, team, member.user));
    EXPANSE_CHECK_OK(audit_.Append(
        tx, {caller.org,
             caller.user.str(),
             "member.created",
             member.user.str(),
             {{AuditDetail::kEmail, member.email}, {AuditDetail::kRole, member.role.name}}}));
    v1::CreateUserResponse response;
    *response.mutable_user() = UserOf(member);
    return response;
  });
}

Result<v1::ListUsersResponse> OrganisationApi::ListUsers(const rpc::CallContext& context,
                                                         const v1::ListUsersRequest& /*request*/) {
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::ListUsersResponse> {
    EXPANSE_TRY(const auto list, Members(tx).List(context.caller.org));
    v1::ListUsersResponse response;
    for (const auto& member : list) *response.add_users() = UserOf(member);
    return response;
  });
}

Result<v1::CreateTeamResponse> OrganisationApi::CreateTeam(const rpc::CallContext& context,
                                                           const v1::CreateTeamRequest& request) {
  const rpc::Caller& caller = context.caller;
  EXPANSE_TRY(const std::string name, CheckedText("name", request.name(), kMaxNameBytes));
  const TeamRow team{TeamId(platform::NewUuid(clock_, random_)), name};
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::CreateTeamResponse> {
    const Status inserted = Members(tx).InsertTeam(caller.org, team, ToUnixMillis(clock_.Now()));
    if (!inserted.ok() && inserted.error().code() == Code::kAlreadyExists)
      return Error(Code::kAlreadyExists, "there is a team named " + name + " already");
    EXPANSE_CHECK_OK(inserted);
    EXPANSE_CHECK_OK(audit_.Append(tx, {caller.org,
                                        caller.user.str(),
                                        "team.created",
                                        team.id.str(),
                                        {{AuditDetail::kName, name}}}));
    v1::CreateTeamResponse response;
    response.mutable_team()->set_team_id(team.id.str());
    response.mutable_team()->set_name(name);
    return response;
  });
}

Result<v1::ListTeamsResponse> OrganisationApi::ListTeams(const rpc::CallContext& context,
                                                         const v1::ListTeamsRequest& /*request*/) {
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::ListTeamsResponse> {
    EXPANSE_TRY(const auto list, Members(tx).ListTeams(context.caller.org));
    v1::ListTeamsResponse response;
    for (const auto& row : list) {
      auto* team = response.add_teams();
      team->set_team_id(row.id.str());
      team->set_name(row.name);
    }
    return response;
  });
}

Result<Member> OrganisationApi::KeyHolder(storage::Transaction& tx, const rpc::Caller& caller,
                                          const std::string& user_id, bool for_change) const {
  Members members(tx);
  EXPANSE_TRY(Member self, CallingMember(members, caller));
  if (user_id.empty() || user_id == caller.user.str()) return self;
  if (!caller.HasPermission(auth::kMembersManage))
    return Error(Code::kPermissionDenied,
                 "keys of another member need the permission members.manage");
  EXPANSE_TRY(auto other, members.Find(caller.org, UserId(user_id)));
  if (!other) return Error(Code::kNotFound, "there is no such member in this organisation");
  if (for_change) EXPANSE_CHECK_OK(MayGrant(other->role, self));
  return std::move(*other);
}

Result<v1::CreateApiKeyResponse> OrganisationApi::CreateApiKey(
    const rpc::CallContext& context, const v1::CreateApiKeyRequest& request) {
  const rpc::Caller& caller = context.caller;
  std::string label = "unnamed";
  if (!request.label().empty()) {
    EXPANSE_TRY(label, CheckedText("label", request.label(), kMaxNameBytes));
  }
  const Secret secret = auth::MintCredential(auth::CredentialKind::kApiKey, random_);
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::CreateApiKeyResponse> {
    EXPANSE_TRY(const Member holder, KeyHolder(tx, caller, request.user_id(), true));
    ApiKeyRow row;
    row.org = caller.org;
    row.id = platform::NewUuid(clock_, random_);
    row.user = holder.user;
    row.label = label;
    row.hash = hasher_.Hash(secret.Reveal());
    row.hint = auth::HintOf(secret);
    row.created_by = caller.user.str();
    row.created_at_ms = ToUnixMillis(clock_.Now());
    EXPANSE_CHECK_OK(Credentials(tx).InsertApiKey(row));
    EXPANSE_CHECK_OK(audit_.Append(
        tx, {caller.org,
             caller.user.str(),
             "api_key.created",
             row.id,
             {{AuditDetail::kUserId, holder.user.str()}, {AuditDetail::kKeyHint, row.hint}}}));
    v1::CreateApiKeyResponse response;
    *response.mutable_key() = KeyOf(row);
    response.set_secret(secret.Reveal());
    return response;
  });
}

Result<v1::ListApiKeysResponse> OrganisationApi::ListApiKeys(
    const rpc::CallContext& context, const v1::ListApiKeysRequest& request) {
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::ListApiKeysResponse> {
    EXPANSE_TRY(const Member holder, KeyHolder(tx, context.caller, request.user_id(), false));
    EXPANSE_TRY(const auto rows, Credentials(tx).ListApiKeys(context.caller.org, holder.user));
    v1::ListApiKeysResponse response;
    for (const auto& row : rows) *response.add_keys() = KeyOf(row);
    return response;
  });
}

Result<v1::RevokeApiKeyResponse> OrganisationApi::RevokeApiKey(
    const rpc::CallContext& context, const v1::RevokeApiKeyRequest& request) {
  const rpc::Caller& caller = context.caller;
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::RevokeApiKeyResponse> {
    Credentials credentials(tx);
    EXPANSE_TRY(const auto key, credentials.FindApiKey(caller.org, request.key_id()));
    if (!key) return Error(Code::kNotFound, "there is no such API key in this organisation");
    EXPANSE_CHECK_OK(KeyHolder(tx, caller, key->user.str(), true));
    EXPANSE_TRY(const bool changed,
                credentials.RevokeApiKey(caller.org, key->id, ToUnixMillis(clock_.Now())));
    if (changed)
      EXPANSE_CHECK_OK(audit_.Append(
          tx, {caller.org,
               caller.user.str(),
               "api_key.revoked",
               key->id,
               {{AuditDetail::kUserId, key->user.str()}, {AuditDetail::kKeyHint, key->hint}}}));
    return v1::RevokeApiKeyResponse();
  });
}

Result<v1::ListAuditEventsResponse> OrganisationApi::ListAuditEvents(
    const rpc::CallContext& context, const v1::ListAuditEventsRequest& request) {
  if (request.limit() < 0 || request.before_ms() < 0)
    return Error(Code::kInvalidArgument, "limit and before_ms cannot be negative");
  const int limit =
      request.limit() == 0 ? kDefaultAuditLimit : std::min(request.limit(), kMaxAuditLimit);
  const int64_t before =
      request.before_ms() == 0 ? std::numeric_limits<int64_t>::max() : request.before_ms();
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::ListAuditEventsResponse> {
    EXPANSE_TRY(auto events, AuditLog::List(tx, context.caller.org, limit, before));
    v1::ListAuditEventsResponse response;
    for (auto& event : events) *response.add_events() = std::move(event);
    return response;
  });
}

}  // namespace expanse::control_plane
