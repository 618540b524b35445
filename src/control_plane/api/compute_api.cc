// SPDX-License-Identifier: Apache-2.0
#include "control_plane/api/compute_api.h"

#include <algorithm>

#include "auth/permissions/permissions.h"
#include "control_plane/api/auth_api.h"
#include "control_plane/api/checks.h"
#include "control_plane/store/credentials.h"
#include "control_plane/store/members.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;

bool IsInTeam(const rpc::Caller& caller, const TeamId& team) {
  return std::find(caller.team_ids.begin(), caller.team_ids.end(), team.str()) !=
         caller.team_ids.end();
}

/// A compute without a team is the whole organisation's.
bool CanSee(const rpc::Caller& caller, const ComputeRow& compute) {
  return compute.team.empty() || caller.HasPermission(auth::kExecutionsReadAll) ||
         caller.HasPermission(auth::kComputesManage) || IsInTeam(caller, compute.team);
}

/// "slurm-20261130-211607", UTC.
std::string DefaultName(v1::ComputeType type, WallTime now) {
  std::string stamp;
  for (const char c : FormatRfc3339(now).substr(0, 19)) {
    if (c >= '0' && c <= '9') stamp += c;
    if (c == 'T') stamp += '-';
  }
  return std::string(ComputeTypeName(type)) + "-" + stamp;
}

Status CheckTeam(storage::Transaction& tx, const rpc::Caller& caller, const TeamId& team) {
  EXPANSE_TRY(const bool exists, Members(tx).TeamExists(caller.org, team));
  if (!exists) return Error(Code::kInvalidArgument, "there is no team with that id");
  if (!IsInTeam(caller, team) && !caller.HasPermission(auth::kComputesManage))
    return Error(Code::kPermissionDenied,
                 "you are not in that team; binding a compute to it needs computes.manage");
  return {};
}

}  // namespace

std::string_view ComputeTypeName(v1::ComputeType type) {
  switch (type) {
    case v1::COMPUTE_TYPE_SLURM:
      return "slurm";
    case v1::COMPUTE_TYPE_KUBERNETES:
      return "kubernetes";
    case v1::COMPUTE_TYPE_NOMAD:
      return "nomad";
    case v1::COMPUTE_TYPE_VM:
      return "vm";
    default:
      return "";
  }
}

Result<ComputeRow> ComputeApi::NewCompute(storage::Transaction& tx, const rpc::Caller& caller,
                                          const v1::RegisterComputeRequest& request) const {
  if (ComputeTypeName(request.type()).empty())
    return Error(Code::kInvalidArgument, "type must be slurm, kubernetes, nomad or vm");
  const WallTime now = clock_.Now();
  ComputeRow compute;
  compute.org = caller.org;
  compute.id = ComputeId(platform::NewUuid(clock_, random_));
  compute.type = request.type();
  compute.name = DefaultName(request.type(), now);
  if (!request.name().empty()) {
    EXPANSE_TRY(compute.name, CheckedText("name", request.name(), kMaxNameBytes));
  }
  if (!request.team_id().empty()) {
    compute.team = TeamId(request.team_id());
    EXPANSE_CHECK_OK(CheckTeam(tx, caller, compute.team));
  }
  compute.registered_at_ms = ToUnixMillis(now);
  compute.registered_by = caller.user.str();
  compute.life.pending_since_ms = ToUnixMillis(now);
  EXPANSE_CHECK_OK(Computes(tx).Insert(compute));
  return compute;
}

Result<ComputeRow> ComputeApi::RegisterAgain(storage::Transaction& tx, const rpc::Caller& caller,
                                             const v1::RegisterComputeRequest& request) const {
  EXPANSE_TRY(ComputeRow compute, Visible(tx, caller, request.compute_id()));
  // The new token replaces the credential of a running daemon.
  if (compute.registered_by != caller.user.str() && !caller.HasPermission(auth::kComputesManage))
    return Error(
        Code::kPermissionDenied,
        "compute " + compute.name +
            " was registered by somebody else; registering it again needs computes.manage");
  if (request.type() != v1::COMPUTE_TYPE_UNSPECIFIED && request.type() != compute.type)
    return Error(Code::kInvalidArgument, "compute " + compute.name + " is of type " +
                                             std::string(ComputeTypeName(compute.type)));
  if (!request.name().empty()) {
    EXPANSE_TRY(compute.name, CheckedText("name", request.name(), kMaxNameBytes));
  }
  if (!request.team_id().empty() && request.team_id() != compute.team.str()) {
    if (!caller.HasPermission(auth::kComputesManage))
      return Error(Code::kPermissionDenied,
                   "moving a compute to another team needs the permission computes.manage");
    compute.team = TeamId(request.team_id());
    EXPANSE_CHECK_OK(CheckTeam(tx, caller, compute.team));
  }
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  if (compute.life.revoked_at_ms) {
    compute.life.revoked_at_ms.reset();
    compute.life.pending_since_ms = now_ms;
  }
  EXPANSE_CHECK_OK(Computes(tx).Update(compute));
  EXPANSE_CHECK_OK(Credentials(tx).CloseInstallTokens(
      compute.org, compute.id, false, "a newer token was made for this compute", now_ms));
  return compute;
}

Result<v1::RegisterComputeResponse> ComputeApi::RegisterCompute(
    const rpc::CallContext& context, const v1::RegisterComputeRequest& request) {
  const rpc::Caller& caller = context.caller;
  const Secret token = auth::MintCredential(auth::CredentialKind::kInstallToken, random_);
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::RegisterComputeResponse> {
    const bool again = !request.compute_id().empty();
    EXPANSE_TRY(const ComputeRow compute,
                again ? RegisterAgain(tx, caller, request) : NewCompute(tx, caller, request));
    const WallTime now = clock_.Now();
    InstallTokenRow row;
    row.org = caller.org;
    row.id = platform::NewUuid(clock_, random_);
    row.compute = compute.id;
    row.hash = hasher_.Hash(token.Reveal());
    row.created_by = caller.user.str();
    row.created_at_ms = ToUnixMillis(now);
    row.expires_at_ms = ToUnixMillis(now + options_.install_token_lifetime);
    EXPANSE_CHECK_OK(Credentials(tx).InsertInstallToken(row));
    EXPANSE_CHECK_OK(
        audit_.Append(tx, {caller.org,
                           caller.user.str(),
                           again ? "compute.registered_again" : "compute.registered",
                           compute.id.str(),
                           {{AuditDetail::kName, compute.name},
                            {AuditDetail::kComputeType, std::string(ComputeTypeName(compute.type))},
                            {AuditDetail::kTeamId, compute.team.str()}}}));
    v1::RegisterComputeResponse response;
    *response.mutable_compute() = ToProto(compute, options_.heartbeat, now);
    response.set_install_token(token.Reveal());
    response.set_expires_at_ms(row.expires_at_ms);
    *response.mutable_endpoints() = ToProto(options_.endpoints);
    return response;
  });
}

Result<ComputeRow> ComputeApi::Visible(storage::Transaction& tx, const rpc::Caller& caller,
                                       const std::string& compute_id) const {
  EXPANSE_TRY(auto compute, Computes(tx).Find(caller.org, ComputeId(compute_id)));
  if (!compute || !CanSee(caller, *compute))
    return Error(Code::kNotFound, "there is no such compute in this organisation");
  return std::move(*compute);
}

Result<v1::ListComputesResponse> ComputeApi::ListComputes(
    const rpc::CallContext& context, const v1::ListComputesRequest& /*request*/) {
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::ListComputesResponse> {
    EXPANSE_TRY(const auto rows, Computes(tx).List(context.caller.org));
    v1::ListComputesResponse response;
    for (const auto& row : rows)
      if (CanSee(context.caller, row))
        *response.add_computes() = ToProto(row, options_.heartbeat, clock_.Now());
    return response;
  });
}

Result<v1::GetComputeResponse> ComputeApi::GetCompute(const rpc::CallContext& context,
                                                      const v1::GetComputeRequest& request) {
  return database_.Read([&](storage::Transaction& tx) -> Result<v1::GetComputeResponse> {
    EXPANSE_TRY(const ComputeRow row, Visible(tx, context.caller, request.compute_id()));
    v1::GetComputeResponse response;
    *response.mutable_compute() = ToProto(row, options_.heartbeat, clock_.Now());
    return response;
  });
}

Result<v1::RevokeComputeResponse> ComputeApi::RevokeCompute(
    const rpc::CallContext& context, const v1::RevokeComputeRequest& request) {
  const rpc::Caller& caller = context.caller;
  return database_.Write([&](storage::Transaction& tx) -> Result<v1::RevokeComputeResponse> {
    EXPANSE_TRY(ComputeRow compute, Visible(tx, caller, request.compute_id()));
    if (compute.life.revoked_at_ms) return v1::RevokeComputeResponse();
    const int64_t now_ms = ToUnixMillis(clock_.Now());
    compute.life.revoked_at_ms = now_ms;
    EXPANSE_CHECK_OK(Computes(tx).Update(compute));
    Credentials credentials(tx);
    EXPANSE_CHECK_OK(credentials.RevokeOfCompute(caller.org, compute.id, now_ms));
    EXPANSE_CHECK_OK(credentials.CloseInstallTokens(caller.org, compute.id, false,
                                                    "the compute was revoked", now_ms));
    EXPANSE_CHECK_OK(audit_.Append(tx, {caller.org,
                                        caller.user.str(),
                                        "compute.revoked",
                                        compute.id.str(),
                                        {{AuditDetail::kName, compute.name}}}));
    return v1::RevokeComputeResponse();
  });
}

Result<v1::GetEndpointsResponse> DiscoveryApi::GetEndpoints(
    const rpc::CallContext& /*context*/, const v1::GetEndpointsRequest& /*request*/) {
  v1::GetEndpointsResponse response;
  *response.mutable_endpoints() = ToProto(options_.endpoints);
  return response;
}

}  // namespace expanse::control_plane
