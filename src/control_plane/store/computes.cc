// SPDX-License-Identifier: Apache-2.0
#include "control_plane/store/computes.h"

namespace expanse::control_plane {
namespace {

std::optional<std::string> TeamOrNull(const TeamId& team) {
  return team.empty() ? std::nullopt : std::optional(team.str());
}

std::optional<ComputeRow> First(std::vector<ComputeRow> rows) {
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

}  // namespace

Status Computes::Insert(const ComputeRow& c) {
  EXPANSE_CHECK_OK(tx_.Execute(
      "INSERT INTO compute (org_id, compute_id, name, compute_type, team_id, scheduler_identity, "
      "daemon_version, nodes, gpus, registered_at_ms, registered_by, pending_since_ms, "
      "last_heartbeat_ms, revoked_at_ms) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
      {c.org, c.id, c.name, static_cast<int64_t>(c.type), TeamOrNull(c.team), c.scheduler_identity,
       c.daemon_version, c.nodes, c.gpus, c.registered_at_ms, c.registered_by,
       c.life.pending_since_ms, c.life.last_heartbeat_ms, c.life.revoked_at_ms}));
  return {};
}

Status Computes::Update(const ComputeRow& c) {
  EXPANSE_CHECK_OK(tx_.Execute(
      "UPDATE compute SET name = $3, team_id = $4, scheduler_identity = $5, daemon_version = $6, "
      "nodes = $7, gpus = $8, pending_since_ms = $9, last_heartbeat_ms = $10, revoked_at_ms = $11 "
      "WHERE org_id = $1 AND compute_id = $2",
      {c.org, c.id, c.name, TeamOrNull(c.team), c.scheduler_identity, c.daemon_version, c.nodes,
       c.gpus, c.life.pending_since_ms, c.life.last_heartbeat_ms, c.life.revoked_at_ms}));
  return {};
}

Result<std::vector<ComputeRow>> Computes::Select(std::string_view where_and_order,
                                                 std::initializer_list<storage::Value> params) {
  EXPANSE_TRY(
      const auto rows,
      tx_.Query("SELECT org_id, compute_id, name, compute_type, team_id, scheduler_identity, "
                "daemon_version, nodes, gpus, registered_at_ms, registered_by, pending_since_ms, "
                "last_heartbeat_ms, revoked_at_ms FROM compute WHERE " +
                    std::string(where_and_order),
                params));
  std::vector<ComputeRow> out;
  for (const auto row : rows) {
    ComputeRow c;
    c.org = OrgId(row.Text(0));
    c.id = ComputeId(row.Text(1));
    c.name = row.Text(2);
    c.type = static_cast<control::v1::ComputeType>(row.Int64(3));
    c.team = TeamId(row.TextOrEmpty(4));
    c.scheduler_identity = row.Text(5);
    c.daemon_version = row.Text(6);
    c.nodes = row.OptInt64(7);
    c.gpus = row.OptInt64(8);
    c.registered_at_ms = row.Int64(9);
    c.registered_by = row.Text(10);
    c.life = {row.OptInt64(11), row.OptInt64(12), row.OptInt64(13)};
    out.push_back(std::move(c));
  }
  return out;
}

Result<std::optional<ComputeRow>> Computes::Find(const OrgId& org, const ComputeId& id) {
  EXPANSE_TRY(auto rows, Select("org_id = $1 AND compute_id = $2", {org, id}));
  return First(std::move(rows));
}

Result<std::vector<ComputeRow>> Computes::FindByIdentity(const OrgId& org,
                                                         control::v1::ComputeType type,
                                                         const std::string& scheduler_identity) {
  return Select(
      "org_id = $1 AND compute_type = $2 AND scheduler_identity = $3 "
      "ORDER BY COALESCE(last_heartbeat_ms, 0) DESC, registered_at_ms, compute_id",
      {org, static_cast<int64_t>(type), scheduler_identity});
}

Result<std::vector<ComputeRow>> Computes::List(const OrgId& org) {
  return Select("org_id = $1 ORDER BY name, compute_id", {org});
}

Status Computes::Remove(const OrgId& org, const ComputeId& id) {
  EXPANSE_CHECK_OK(
      tx_.Execute("DELETE FROM compute WHERE org_id = $1 AND compute_id = $2", {org, id}));
  return {};
}

control::v1::Compute ToProto(const ComputeRow& row, const HeartbeatPolicy& policy, WallTime now) {
  control::v1::Compute out;
  out.set_compute_id(row.id.str());
  out.set_name(row.name);
  out.set_type(row.type);
  out.set_state(StateOf(row.life, policy, now));
  out.set_team_id(row.team.str());
  if (row.life.last_heartbeat_ms) out.set_last_heartbeat_ms(*row.life.last_heartbeat_ms);
  out.set_daemon_version(row.daemon_version);
  if (row.nodes) out.set_nodes(static_cast<int32_t>(*row.nodes));
  if (row.gpus) out.set_gpus(static_cast<int32_t>(*row.gpus));
  out.set_scheduler_identity(row.scheduler_identity);
  out.set_registered_at_ms(row.registered_at_ms);
  return out;
}

}  // namespace expanse::control_plane
