// SPDX-License-Identifier: Apache-2.0
#include "data_plane/enrolment/enrolment_service.h"

#include "base/log.h"
#include "base/time.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kHeartbeatSeconds = 30;
constexpr int kMaxHealth = 10'000;
constexpr size_t kMaxVersion = 64;
constexpr size_t kMaxToken = 256;
constexpr size_t kMaxIdentity = 256;

Status Check(const data::v1::HeartbeatRequest& request) {
  if (request.daemon_version().size() > kMaxVersion ||
      request.daemon_version().find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, "daemon_version has at most 64 bytes");
  if (request.health_size() > kMaxHealth)
    return Error(Code::kInvalidArgument, "more than 10000 health entries");
  if ((request.has_nodes() && request.nodes() < 0) || (request.has_gpus() && request.gpus() < 0))
    return Error(Code::kInvalidArgument, "nodes and gpus are counts");
  return {};
}

void FillEndpoints(const control::v1::PlaneEndpoints& own, control::v1::PlaneEndpoints* out) {
  if (out->control_plane_url().empty()) out->set_control_plane_url(own.control_plane_url());
  if (out->data_plane_url().empty()) out->set_data_plane_url(own.data_plane_url());
  if (out->intelligence_url().empty()) out->set_intelligence_url(own.intelligence_url());
  if (out->console_url().empty()) out->set_console_url(own.console_url());
}

}  // namespace

Result<data::v1::ExchangeInstallTokenResponse> EnrolmentService::ExchangeInstallToken(
    const rpc::CallContext& context, const data::v1::ExchangeInstallTokenRequest& request) {
  if (request.install_token().empty() || request.install_token().size() > kMaxToken)
    return Error(Code::kInvalidArgument, "install_token is needed");
  if (request.scheduler_identity().size() > kMaxIdentity)
    return Error(Code::kInvalidArgument, "scheduler_identity has at most 256 bytes");
  control::v1::ExchangeInstallTokenRequest forward;
  forward.set_install_token(request.install_token());
  forward.set_scheduler_identity(request.scheduler_identity());
  EXPANSE_TRY(const auto answer, authority_.Exchange(forward, context.deadline));
  data::v1::ExchangeInstallTokenResponse response;
  response.set_compute_id(answer.compute_id());
  response.set_organisation_id(answer.organisation_id());
  response.set_credential(answer.credential());
  response.set_compute_name(answer.compute_name());
  *response.mutable_endpoints() = answer.endpoints();
  FillEndpoints(endpoints_, response.mutable_endpoints());
  response.set_organisation(answer.organisation());
  log::Info("compute.enrolled", {{"compute", answer.compute_id()}});
  return response;
}

Status EnrolmentService::Forward(const OrgId& org,
                                 const control::v1::RecordHeartbeatRequest& heartbeat) {
  EXPANSE_CHECK_OK(authority_.RecordHeartbeat(heartbeat));
  // A newer heartbeat that came meanwhile stays pending.
  EXPANSE_CHECK_OK(database_.Execute(
      "UPDATE compute_heartbeats SET pending = 0 WHERE org_id = $1 AND compute_id = $2 AND "
      "at_ms = $3",
      {org, heartbeat.compute_id(), heartbeat.at_ms()}));
  return {};
}

Result<data::v1::HeartbeatResponse> EnrolmentService::Heartbeat(
    const rpc::CallContext& context, const data::v1::HeartbeatRequest& request) {
  EXPANSE_CHECK_OK(Check(request));
  const OrgId& org = context.caller.org;
  const std::string& compute = context.caller.compute.str();
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  const auto opt = [](bool has, int32_t v) {
    return has ? std::optional<int64_t>(v) : std::nullopt;
  };
  EXPANSE_CHECK_OK(database_.Execute(
      "INSERT INTO compute_heartbeats (org_id, compute_id, at_ms, daemon_version, nodes, gpus, "
      "clock_offset_ms, health, pending) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1) "
      "ON CONFLICT (org_id, compute_id) DO UPDATE SET at_ms = excluded.at_ms, "
      "daemon_version = excluded.daemon_version, nodes = excluded.nodes, gpus = excluded.gpus, "
      "clock_offset_ms = excluded.clock_offset_ms, health = excluded.health, pending = 1",
      {org, compute, now_ms, request.daemon_version(), opt(request.has_nodes(), request.nodes()),
       opt(request.has_gpus(), request.gpus()),
       request.sender_clock_ms() > 0 ? std::optional(request.sender_clock_ms() - now_ms)
                                     : std::nullopt,
       storage::Blob{request.SerializeAsString()}}));
  control::v1::RecordHeartbeatRequest heartbeat;
  heartbeat.set_compute_id(compute);
  heartbeat.set_at_ms(now_ms);
  heartbeat.set_daemon_version(request.daemon_version());
  if (request.has_nodes()) heartbeat.set_nodes(request.nodes());
  if (request.has_gpus()) heartbeat.set_gpus(request.gpus());
  const Status forwarded = Forward(org, heartbeat);
  data::v1::HeartbeatResponse response;
  response.set_compute_id(compute);
  response.set_organisation_id(org.str());
  response.set_server_clock_ms(now_ms);
  response.set_interval_seconds(kHeartbeatSeconds);
  response.set_recorded_by_control_plane(forwarded.ok());
  if (!forwarded.ok())
    log::Warning("heartbeat.not_forwarded",
                 {{"compute", compute}, {"reason", forwarded.error().message()}});
  return response;
}

Result<data::v1::DeprovisionResponse> EnrolmentService::Deprovision(
    const rpc::CallContext& context, const data::v1::DeprovisionRequest& /*request*/) {
  EXPANSE_CHECK_OK(authority_.Deprovision(context.caller.compute.str(), context.deadline));
  EXPANSE_CHECK_OK(
      credentials_.Forget(context.caller.bearer, context.caller.org, context.caller.compute));
  log::Info("compute.deprovisioned", {{"compute", context.caller.compute.str()}});
  return data::v1::DeprovisionResponse();
}

Status EnrolmentService::ForwardPending() {
  EXPANSE_TRY(auto rows,
              database_.Query("SELECT org_id, compute_id, at_ms, daemon_version, nodes, gpus FROM "
                              "compute_heartbeats WHERE pending = 1"));
  for (const auto row : rows) {
    control::v1::RecordHeartbeatRequest heartbeat;
    heartbeat.set_compute_id(row.Text(1));
    heartbeat.set_at_ms(row.Int64(2));
    heartbeat.set_daemon_version(row.Text(3));
    if (const auto nodes = row.OptInt64(4)) heartbeat.set_nodes(static_cast<int32_t>(*nodes));
    if (const auto gpus = row.OptInt64(5)) heartbeat.set_gpus(static_cast<int32_t>(*gpus));
    const Status forwarded = Forward(OrgId(row.Text(0)), heartbeat);
    if (forwarded.ok()) continue;
    if (IsAbsence(forwarded.error())) return forwarded;
    // Revoked or gone: the control plane does not want it.
    EXPANSE_CHECK_OK(database_.Execute(
        "UPDATE compute_heartbeats SET pending = 0 WHERE org_id = $1 AND compute_id = $2",
        {row.Text(0), row.Text(1)}));
  }
  return {};
}

}  // namespace expanse::data_plane
