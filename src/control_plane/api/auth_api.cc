// SPDX-License-Identifier: Apache-2.0
#include "control_plane/api/auth_api.h"

#include "auth/sessions/session_token.h"
#include "control_plane/store/credentials.h"
#include "control_plane/store/members.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;

v1::Identity IdentityOf(const auth::SessionClaims& claims) {
  v1::Identity out;
  out.set_user_id(claims.user.str());
  out.set_email(claims.email);
  out.set_name(claims.name);
  out.set_organisation_id(claims.organisation.str());
  out.set_organisation(claims.organisation_name);
  out.set_role(claims.role);
  for (const auto& team : claims.teams) out.add_teams(team);
  for (const auto& permission : claims.permissions) out.add_permissions(permission);
  return out;
}

Result<ApiKeyRow> LivingKey(storage::Transaction& tx, const auth::CredentialHasher& hasher,
                            const std::string& text) {
  EXPANSE_TRY(auto key, Credentials(tx).FindApiKeyByHash(hasher.Hash(text)));
  if (!key || !hasher.Matches(text, key->hash))
    return Error(Code::kUnauthenticated, "the API key is not known here; make one in the settings");
  if (key->revoked_at_ms)
    return Error(Code::kUnauthenticated, "the API key ending in " + key->hint + " was revoked at " +
                                             FormatRfc3339(FromUnixMillis(*key->revoked_at_ms)) +
                                             "; make a new one");
  return std::move(*key);
}

/// The member that a key stands for in the organisation asked for.
Result<Member> MemberOf(Members& members, const ApiKeyRow& key, const OrgId& wanted) {
  if (wanted != key.org && !key.may_switch)
    return Error(Code::kPermissionDenied,
                 "this API key acts in organisation " + key.org.str() +
                     " only; sign in with a key of the other organisation");
  EXPANSE_TRY(auto member, members.Find(wanted, key.user));
  if (!member)
    return Error(
        Code::kPermissionDenied,
        "the owner of this API key is no member of organisation " + wanted.str().substr(0, 64));
  return std::move(*member);
}

}  // namespace

v1::PlaneEndpoints ToProto(const Endpoints& endpoints) {
  v1::PlaneEndpoints out;
  out.set_control_plane_url(endpoints.control_plane_url);
  out.set_data_plane_url(endpoints.data_plane_url);
  out.set_intelligence_url(endpoints.intelligence_url);
  out.set_console_url(endpoints.console_url);
  return out;
}

Result<v1::MintSessionResponse> AuthApi::MintSession(const rpc::CallContext& /*context*/,
                                                     const v1::MintSessionRequest& request) {
  if (!auth::HasFormOf(auth::CredentialKind::kApiKey, request.api_key()))
    return Error(Code::kUnauthenticated,
                 "that is no API key: exp_user_ and 43 characters are expected");
  const WallTime now = clock_.Now();
  // Looked up without the writer's turn: guesses must not hold up those who have a key.
  EXPANSE_CHECK_OK(database_.Read(
      [&](storage::Transaction& tx) { return LivingKey(tx, keys_.hasher(), request.api_key()); }));
  const auto claims = database_.Write([&](storage::Transaction& tx) -> Result<auth::SessionClaims> {
    Credentials credentials(tx);
    EXPANSE_TRY(const ApiKeyRow key, LivingKey(tx, keys_.hasher(), request.api_key()));
    const OrgId wanted =
        request.organisation_id().empty() ? key.org : OrgId(request.organisation_id());
    Members members(tx);
    EXPANSE_TRY(const Member member, MemberOf(members, key, wanted));
    EXPANSE_TRY(const auto organisation, members.FindOrganisation(wanted));
    if (!organisation)
      return Error(Code::kInternal, "a member without organisation: " + wanted.str());
    EXPANSE_CHECK_OK(credentials.TouchApiKey(key.org, key.id, ToUnixMillis(now)));
    EXPANSE_CHECK_OK(audit_.Append(tx, {wanted,
                                        member.user.str(),
                                        "session.minted",
                                        member.user.str(),
                                        {{AuditDetail::kKeyHint, key.hint}}}));
    auth::SessionClaims out;
    out.issuer = keys_.issuer();
    out.user = member.user;
    out.organisation = wanted;
    out.organisation_name = organisation->name;
    out.email = member.email;
    out.name = member.name;
    out.role = member.role.name;
    out.permissions = member.role.permissions;
    for (const auto& team : member.teams) out.teams.push_back(team.str());
    out.issued_at = std::chrono::floor<Seconds>(now);
    out.expires_at = out.issued_at + options_.session_lifetime;
    return out;
  });
  if (!claims.ok()) return claims.error();
  EXPANSE_TRY(const auth::SigningKey signing_key, keys_.CurrentSigningKey());
  v1::MintSessionResponse response;
  EXPANSE_TRY(*response.mutable_access_token(), auth::SignSessionToken(*claims, signing_key));
  response.set_expires_at_ms(ToUnixMillis(claims->expires_at));
  *response.mutable_identity() = IdentityOf(*claims);
  *response.mutable_endpoints() = ToProto(options_.endpoints);
  return response;
}

Result<v1::WhoAmIResponse> AuthApi::WhoAmI(const rpc::CallContext& context,
                                           const v1::WhoAmIRequest& /*request*/) {
  EXPANSE_TRY(const auto claims,
              auth::VerifySessionToken(context.caller.bearer, *keys_.Keys(), clock_.Now()));
  v1::WhoAmIResponse response;
  *response.mutable_identity() = IdentityOf(claims);
  response.set_expires_at_ms(ToUnixMillis(claims.expires_at));
  *response.mutable_endpoints() = ToProto(options_.endpoints);
  return response;
}

Result<v1::GetKeySetResponse> AuthApi::GetKeySet(const rpc::CallContext& /*context*/,
                                                 const v1::GetKeySetRequest& /*request*/) {
  v1::GetKeySetResponse response;
  response.set_jwks_json(keys_.Jwks());
  return response;
}

Result<rpc::Caller> ControlAuthenticator::Authenticate(std::string_view bearer,
                                                       std::string_view permission) {
  if (permission == "plane") return AuthenticatePlane(bearer);
  if (permission == "compute")
    return Error(Code::kUnauthenticated, "computes talk to the data plane, not to this one");
  EXPANSE_TRY(const auto claims, auth::VerifySessionToken(bearer, *keys_.Keys(), clock_.Now()));
  return auth::CallerOf(claims, bearer);
}

Result<rpc::Caller> ControlAuthenticator::AuthenticatePlane(std::string_view bearer) {
  if (!auth::HasFormOf(auth::CredentialKind::kPlane, bearer))
    return Error(Code::kUnauthenticated, "this call needs a plane credential (exp_plane_…)");
  const std::string hash = keys_.hasher().Hash(bearer);
  EXPANSE_TRY(const auto row,
              database_.Read([&](storage::Transaction& tx) -> Result<std::optional<CredentialRow>> {
                return Credentials(tx).FindPlaneByHash(hash);
              }));
  if (!row || !keys_.hasher().Matches(bearer, row->hash))
    return Error(Code::kUnauthenticated, "the plane credential is not known here");
  if (row->revoked_at_ms) return Error(Code::kUnauthenticated, "the plane credential was revoked");
  rpc::Caller caller;
  caller.kind = rpc::CallerKind::kPlane;
  caller.org = row->org;
  return caller;
}

}  // namespace expanse::control_plane
