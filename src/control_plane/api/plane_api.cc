// SPDX-License-Identifier: Apache-2.0
#include "control_plane/api/plane_api.h"

#include <algorithm>

#include "auth/permissions/permissions.h"
#include "control_plane/api/auth_api.h"
#include "control_plane/api/checks.h"
#include "control_plane/store/members.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;

constexpr size_t kMaxIdentityBytes = 256;
constexpr size_t kMaxVersionBytes = 64;
constexpr int64_t kForgivenSkewMs = 60'000;

Error TokenError(std::string_view why) {
  return Error(Code::kFailedPrecondition, "the install token " + std::string(why) +
                                              "; register the compute again for a new one");
}

std::string At(int64_t ms) { return FormatRfc3339(FromUnixMillis(ms)); }

Error NoSuchCompute() {
  return Error(Code::kNotFound, "there is no such compute in this plane's organisation");
}

}  // namespace

Result<InstallTokenRow> PlaneApi::LivingToken(storage::Transaction& tx, const OrgId& org,
                                              const std::string& token) const {
  if (!auth::HasFormOf(auth::CredentialKind::kInstallToken, token))
    return Error(Code::kNotFound,
                 "that is no install token: exp_install_ and 43 characters are expected");
  EXPANSE_TRY(auto row, Credentials(tx).FindInstallTokenByHash(hasher_.Hash(token)));
  if (!row || !hasher_.Matches(token, row->hash))
    return Error(Code::kNotFound, "the install token is not known here; was it copied whole?");
  if (row->org != org)
    return Error(Code::kPermissionDenied,
                 "the install token belongs to another organisation than this data plane");
  if (row->closed_at_ms)
    return TokenError("is dead since " + At(*row->closed_at_ms) + ": " + row->closed_because);
  if (ToUnixMillis(clock_.Now()) >= row->expires_at_ms)
    return TokenError("expired at " + At(row->expires_at_ms));
  return std::move(*row);
}

Result<bool> PlaneApi::MayReplace(storage::Transaction& tx, const InstallTokenRow& token,
                                  const ComputeRow& registered, const ComputeRow& known) const {
  if (known.registered_by == token.created_by) return true;
  if (!known.team.empty() && known.team == registered.team) return true;
  EXPANSE_TRY(const auto registrant, Members(tx).Find(token.org, UserId(token.created_by)));
  if (!registrant) return false;
  const auto& held = registrant->role.permissions;
  return std::find(held.begin(), held.end(), auth::kComputesManage) != held.end();
}

/// The compute of the same scheduler whose history the registration continues. Not one that sends
/// heartbeats now: two clusters can carry the same name, and the second must not cut off the
/// first. Not one that the registrant could not have registered again by its id.
Result<std::optional<ComputeRow>> PlaneApi::KnownCompute(
    storage::Transaction& tx, const InstallTokenRow& token, const ComputeRow& registered,
    const std::string& scheduler_identity) const {
  if (scheduler_identity.empty()) return std::optional<ComputeRow>();
  EXPANSE_TRY(const auto same,
              Computes(tx).FindByIdentity(token.org, registered.type, scheduler_identity));
  for (const auto& known : same) {
    if (known.id == registered.id) continue;
    // One that never sent a heartbeat has no history to continue.
    if (!known.life.last_heartbeat_ms) continue;
    const auto state = StateOf(known.life, options_.heartbeat, clock_.Now());
    if (state == v1::COMPUTE_STATE_ACTIVE) continue;
    EXPANSE_TRY(const bool allowed, MayReplace(tx, token, registered, known));
    if (allowed) return std::optional(known);
  }
  return std::optional<ComputeRow>();
}

Result<ComputeRow> PlaneApi::ComputeOfToken(storage::Transaction& tx, const InstallTokenRow& token,
                                            const std::string& scheduler_identity) const {
  Computes computes(tx);
  EXPANSE_TRY(auto found, computes.Find(token.org, token.compute));
  if (!found) return Error(Code::kInternal, "an install token without compute");
  ComputeRow compute = std::move(*found);
  const bool has_history = compute.life.last_heartbeat_ms.has_value();
  if (has_history && !compute.scheduler_identity.empty() && !scheduler_identity.empty() &&
      compute.scheduler_identity != scheduler_identity)
    return Error(Code::kFailedPrecondition, "compute " + compute.name + " is the scheduler '" +
                                                compute.scheduler_identity + "', this one is '" +
                                                scheduler_identity +
                                                "': register this one as a new compute");
  if (!has_history) {
    EXPANSE_TRY(auto known, KnownCompute(tx, token, compute, scheduler_identity));
    if (known) {
      EXPANSE_CHECK_OK(
          audit_.Append(tx, {token.org,
                             "plane",
                             "compute.recognised",
                             known->id.str(),
                             {{AuditDetail::kComputeId, compute.id.str()},
                              {AuditDetail::kSchedulerIdentity, scheduler_identity}}}));
      // The token moves before the row it pointed to goes.
      EXPANSE_CHECK_OK(Credentials(tx).MarkExchanged(token, known->id, ToUnixMillis(clock_.Now())));
      EXPANSE_CHECK_OK(computes.Remove(compute.org, compute.id));
      compute = std::move(*known);
      if (compute.life.revoked_at_ms) {
        compute.life.revoked_at_ms.reset();
        compute.life.pending_since_ms = ToUnixMillis(clock_.Now());
      }
    }
  }
  if (!scheduler_identity.empty()) compute.scheduler_identity = scheduler_identity;
  EXPANSE_CHECK_OK(computes.Update(compute));
  return compute;
}

Result<v1::ExchangeInstallTokenResponse> PlaneApi::ExchangeInstallToken(
    const rpc::CallContext& context, const v1::ExchangeInstallTokenRequest& request) {
  const OrgId& org = context.caller.org;
  std::string identity;
  if (!request.scheduler_identity().empty()) {
    EXPANSE_TRY(identity,
                CheckedText("scheduler_identity", request.scheduler_identity(), kMaxIdentityBytes));
  }
  // Looked up without the writer's turn: anybody can send guesses through the data plane.
  EXPANSE_CHECK_OK(database_.Read(
      [&](storage::Transaction& tx) { return LivingToken(tx, org, request.install_token()); }));
  const Secret credential = auth::MintCredential(auth::CredentialKind::kCompute, random_);
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::ExchangeInstallTokenResponse> {
    EXPANSE_TRY(const InstallTokenRow token, LivingToken(tx, org, request.install_token()));
    EXPANSE_TRY(const ComputeRow compute, ComputeOfToken(tx, token, identity));
    const int64_t now_ms = ToUnixMillis(clock_.Now());
    Credentials credentials(tx);
    EXPANSE_CHECK_OK(credentials.MarkExchanged(token, compute.id, now_ms));
    EXPANSE_TRY(const int64_t replaced, credentials.RevokeOfCompute(org, compute.id, now_ms));
    CredentialRow row;
    row.org = org;
    row.id = platform::NewUuid(clock_, random_);
    row.compute = compute.id;
    row.hash = hasher_.Hash(credential.Reveal());
    row.created_at_ms = now_ms;
    EXPANSE_CHECK_OK(credentials.InsertCompute(row));
    EXPANSE_CHECK_OK(audit_.Append(
        tx, {org,
             "plane",
             "install_token.exchanged",
             compute.id.str(),
             {{AuditDetail::kSchedulerIdentity, identity},
              {AuditDetail::kReason, replaced > 0 ? "replaced the credential" : "first"}}}));
    EXPANSE_TRY(const auto organisation, Members(tx).FindOrganisation(org));
    v1::ExchangeInstallTokenResponse response;
    response.set_compute_id(compute.id.str());
    response.set_organisation_id(org.str());
    response.set_credential(credential.Reveal());
    response.set_compute_name(compute.name);
    *response.mutable_endpoints() = ToProto(options_.endpoints);
    if (organisation) response.set_organisation(organisation->name);
    return response;
  });
}

Result<v1::VerifyComputeCredentialResponse> PlaneApi::VerifyComputeCredential(
    const rpc::CallContext& context, const v1::VerifyComputeCredentialRequest& request) {
  if (!auth::HasFormOf(auth::CredentialKind::kCompute, request.credential()))
    return Error(Code::kNotFound,
                 "that is no compute credential: exp_compute_ and 43 characters are expected");
  const std::string hash = hasher_.Hash(request.credential());
  return database_.Read(
      [&](storage::Transaction& tx) -> Result<v1::VerifyComputeCredentialResponse> {
        EXPANSE_TRY(const auto row, Credentials(tx).FindComputeByHash(hash));
        if (!row || !hasher_.Matches(request.credential(), row->hash))
          return Error(Code::kNotFound, "the compute credential is not known");
        if (row->org != context.caller.org)
          return Error(Code::kPermissionDenied,
                       "the compute credential belongs to another organisation");
        EXPANSE_TRY(const auto compute, Computes(tx).Find(row->org, row->compute));
        if (!compute) return Error(Code::kInternal, "a compute credential without compute");
        if (row->revoked_at_ms || compute->life.revoked_at_ms)
          return Error(Code::kPermissionDenied,
                       "the compute credential was revoked or replaced at " +
                           At(row->revoked_at_ms.value_or(
                               compute->life.revoked_at_ms.value_or(row->created_at_ms))) +
                           "; register the compute again and install");
        v1::VerifyComputeCredentialResponse response;
        response.set_compute_id(compute->id.str());
        response.set_organisation_id(compute->org.str());
        response.set_team_id(compute->team.str());
        response.set_compute_name(compute->name);
        response.set_type(compute->type);
        response.set_valid_for_seconds(options_.credential_verdict_lifetime.count());
        return response;
      });
}

Status PlaneApi::Record(storage::Transaction& tx, const v1::RecordHeartbeatRequest& heartbeat,
                        int64_t at_ms, ComputeRow* compute) const {
  const bool first = compute->life.pending_since_ms.has_value();
  compute->life.pending_since_ms.reset();
  compute->life.last_heartbeat_ms = std::max(compute->life.last_heartbeat_ms.value_or(0), at_ms);
  if (!heartbeat.daemon_version().empty()) compute->daemon_version = heartbeat.daemon_version();
  if (heartbeat.has_nodes()) compute->nodes = heartbeat.nodes();
  if (heartbeat.has_gpus()) compute->gpus = heartbeat.gpus();
  EXPANSE_CHECK_OK(Computes(tx).Update(*compute));
  EXPANSE_CHECK_OK(Credentials(tx).CloseInstallTokens(compute->org, compute->id, true,
                                                      "the compute sent its first heartbeat",
                                                      ToUnixMillis(clock_.Now())));
  if (!first) return {};
  return audit_.Append(tx, {compute->org,
                            compute->id.str(),
                            "compute.activated",
                            compute->id.str(),
                            {{AuditDetail::kName, compute->name}}});
}

Result<v1::RecordHeartbeatResponse> PlaneApi::RecordHeartbeat(
    const rpc::CallContext& context, const v1::RecordHeartbeatRequest& request) {
  const OrgId& org = context.caller.org;
  if (request.at_ms() < 0 || (request.has_nodes() && request.nodes() < 0) ||
      (request.has_gpus() && request.gpus() < 0))
    return Error(Code::kInvalidArgument, "at_ms, nodes and gpus cannot be negative");
  if (!request.daemon_version().empty())
    EXPANSE_CHECK_OK(CheckedText("daemon_version", request.daemon_version(), kMaxVersionBytes));
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  const bool is_late = request.at_ms() != 0 && request.at_ms() < now_ms - kForgivenSkewMs;
  const int64_t at_ms = is_late ? request.at_ms() : now_ms;
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::RecordHeartbeatResponse> {
    EXPANSE_TRY(auto compute, Computes(tx).Find(org, ComputeId(request.compute_id())));
    if (!compute) return NoSuchCompute();
    v1::RecordHeartbeatResponse response;
    EXPANSE_TRY(const auto living_since, Credentials(tx).LivingSince(org, compute->id));
    if (compute->life.revoked_at_ms || !living_since) {
      response.set_state(v1::COMPUTE_STATE_REVOKED);
      return response;
    }
    if (at_ms >= *living_since) EXPANSE_CHECK_OK(Record(tx, request, at_ms, &*compute));
    response.set_state(StateOf(compute->life, options_.heartbeat, clock_.Now()));
    return response;
  });
}

Result<v1::DeprovisionResponse> PlaneApi::Deprovision(const rpc::CallContext& context,
                                                      const v1::DeprovisionRequest& request) {
  const OrgId& org = context.caller.org;
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::DeprovisionResponse> {
    Computes computes(tx);
    EXPANSE_TRY(auto compute, computes.Find(org, ComputeId(request.compute_id())));
    if (!compute) return NoSuchCompute();
    if (compute->life.revoked_at_ms) return v1::DeprovisionResponse();
    const int64_t now_ms = ToUnixMillis(clock_.Now());
    compute->life.revoked_at_ms = now_ms;
    EXPANSE_CHECK_OK(computes.Update(*compute));
    Credentials credentials(tx);
    EXPANSE_CHECK_OK(credentials.RevokeOfCompute(org, compute->id, now_ms));
    EXPANSE_CHECK_OK(credentials.CloseInstallTokens(org, compute->id, false,
                                                    "the compute was uninstalled", now_ms));
    EXPANSE_CHECK_OK(audit_.Append(tx, {org,
                                        compute->id.str(),
                                        "compute.deprovisioned",
                                        compute->id.str(),
                                        {{AuditDetail::kName, compute->name}}}));
    return v1::DeprovisionResponse();
  });
}

}  // namespace expanse::control_plane
