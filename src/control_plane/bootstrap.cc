// SPDX-License-Identifier: Apache-2.0
#include "control_plane/bootstrap.h"

#include "auth/permissions/permissions.h"
#include "control_plane/api/checks.h"
#include "control_plane/store/credentials.h"
#include "control_plane/store/members.h"

namespace expanse::control_plane {
namespace {

constexpr const char* kActor = "bootstrap";

Result<Organisation> Named(storage::Transaction& tx, const std::string& name) {
  EXPANSE_TRY(auto organisation, Members(tx).FindOrganisationByName(name));
  if (!organisation) return Error(Code::kNotFound, "there is no organisation named " + name);
  return std::move(*organisation);
}

}  // namespace

Result<BootstrapResult> Bootstrap::Create(const BootstrapRequest& request) const {
  EXPANSE_TRY(const std::string name,
              CheckedText("organisation", request.organisation, kMaxNameBytes));
  Member owner;
  EXPANSE_TRY(owner.email, CheckedEmail(request.owner_email));
  owner.name = owner.email;
  if (!request.owner_name.empty()) {
    EXPANSE_TRY(owner.name, CheckedText("owner name", request.owner_name, kMaxNameBytes));
  }
  owner.org = OrgId(platform::NewUuid(clock_, random_));
  return database_.Write([&](storage::Transaction& tx) -> Result<BootstrapResult> {
    Members members(tx);
    EXPANSE_TRY(const auto existing, members.FindOrganisationByName(name));
    if (existing) return Error(Code::kAlreadyExists, "organisation " + name + " exists already");
    const int64_t now_ms = ToUnixMillis(clock_.Now());
    owner.user = request.owner;
    if (owner.user.empty()) {
      owner.user = UserId(platform::NewUuid(clock_, random_));
    } else {
      EXPANSE_TRY(const bool known, members.UserExists(owner.user));
      if (!known) return Error(Code::kNotFound, "there is no user " + owner.user.str());
    }
    EXPANSE_CHECK_OK(members.InsertOrganisation({owner.org, name}, now_ms));
    for (const auto& preset : auth::RolePresets()) {
      const Role role{platform::NewUuid(clock_, random_),
                      std::string(preset.name),
                      {preset.permissions.begin(), preset.permissions.end()},
                      preset.is_protected,
                      preset.is_default};
      EXPANSE_CHECK_OK(members.InsertRole(owner.org, role));
      if (role.is_protected) owner.role = role;
    }
    EXPANSE_CHECK_OK(members.Insert(owner, now_ms));
    EXPANSE_CHECK_OK(audit_.Append(
        tx, {owner.org,
             kActor,
             "organisation.created",
             owner.org.str(),
             {{AuditDetail::kName, name}, {AuditDetail::kUserId, owner.user.str()}}}));
    BootstrapResult result;
    result.org = owner.org;
    result.owner = owner.user;
    EXPANSE_TRY(result.api_key, InsertKey(tx, owner.org, owner.user));
    EXPANSE_TRY(result.plane_credential, InsertPlane(tx, owner.org));
    return result;
  });
}

Result<Secret> Bootstrap::InsertKey(storage::Transaction& tx, const OrgId& org,
                                    const UserId& owner) const {
  const Secret secret = auth::MintCredential(auth::CredentialKind::kApiKey, random_);
  ApiKeyRow row;
  row.org = org;
  row.id = platform::NewUuid(clock_, random_);
  row.user = owner;
  row.label = "made by the operator";
  row.hash = hasher_.Hash(secret.Reveal());
  row.hint = auth::HintOf(secret);
  row.may_switch = true;
  row.created_by = kActor;
  row.created_at_ms = ToUnixMillis(clock_.Now());
  EXPANSE_CHECK_OK(Credentials(tx).InsertApiKey(row));
  EXPANSE_CHECK_OK(audit_.Append(
      tx, {org,
           kActor,
           "api_key.created",
           row.id,
           {{AuditDetail::kUserId, owner.str()}, {AuditDetail::kKeyHint, row.hint}}}));
  return secret;
}

Result<Secret> Bootstrap::InsertPlane(storage::Transaction& tx, const OrgId& org) const {
  const Secret secret = auth::MintCredential(auth::CredentialKind::kPlane, random_);
  CredentialRow row;
  row.org = org;
  row.id = platform::NewUuid(clock_, random_);
  row.hash = hasher_.Hash(secret.Reveal());
  row.created_at_ms = ToUnixMillis(clock_.Now());
  EXPANSE_CHECK_OK(Credentials(tx).InsertPlane(row));
  EXPANSE_CHECK_OK(audit_.Append(tx, {org, kActor, "plane_credential.created", row.id, {}}));
  return secret;
}

Result<bool> Bootstrap::Exists(const std::string& organisation) const {
  return database_.Read([&](storage::Transaction& tx) -> Result<bool> {
    EXPANSE_TRY(const auto found, Members(tx).FindOrganisationByName(organisation));
    return found.has_value();
  });
}

Result<Secret> Bootstrap::NewOwnerKey(const std::string& organisation,
                                      const std::string& owner_email) const {
  EXPANSE_TRY(const std::string email, CheckedEmail(owner_email));
  return database_.Write([&](storage::Transaction& tx) -> Result<Secret> {
    EXPANSE_TRY(const Organisation org, Named(tx, organisation));
    EXPANSE_TRY(const auto member, Members(tx).FindByEmail(org.id, email));
    if (!member || !member->role.is_protected)
      return Error(Code::kNotFound, email + " is no owner of organisation " + organisation);
    return InsertKey(tx, org.id, member->user);
  });
}

Result<Secret> Bootstrap::NewPlaneCredential(const std::string& organisation) const {
  return database_.Write([&](storage::Transaction& tx) -> Result<Secret> {
    EXPANSE_TRY(const Organisation org, Named(tx, organisation));
    return InsertPlane(tx, org.id);
  });
}

Result<bool> Bootstrap::IsLivingApiKey(const std::string& organisation, const Secret& key) const {
  return database_.Read([&](storage::Transaction& tx) -> Result<bool> {
    EXPANSE_TRY(const Organisation org, Named(tx, organisation));
    EXPANSE_TRY(const auto row, Credentials(tx).FindApiKeyByHash(hasher_.Hash(key.Reveal())));
    return row && row->org == org.id && !row->revoked_at_ms;
  });
}

Result<bool> Bootstrap::IsLivingPlaneCredential(const std::string& organisation,
                                                const Secret& key) const {
  return database_.Read([&](storage::Transaction& tx) -> Result<bool> {
    EXPANSE_TRY(const Organisation org, Named(tx, organisation));
    EXPANSE_TRY(const auto row, Credentials(tx).FindPlaneByHash(hasher_.Hash(key.Reveal())));
    return row && row->org == org.id && !row->revoked_at_ms;
  });
}

}  // namespace expanse::control_plane
