// SPDX-License-Identifier: Apache-2.0
// Registered computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "control_plane/compute_state.h"
#include "expanse/control/v1/control.pb.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

struct ComputeRow {
  OrgId org;
  ComputeId id;
  std::string name;
  control::v1::ComputeType type = control::v1::COMPUTE_TYPE_UNSPECIFIED;
  TeamId team;                     // empty: the whole organisation's
  std::string scheduler_identity;  // "" until the first exchange
  std::string daemon_version;
  std::optional<int64_t> nodes;
  std::optional<int64_t> gpus;
  int64_t registered_at_ms = 0;
  std::string registered_by;
  ComputeLife life;
};

/// Rows of one transaction.
class Computes {
 public:
  explicit Computes(storage::Transaction& tx) : tx_(tx) {}

  Status Insert(const ComputeRow& compute);
  /// Every column but the key and the registration.
  Status Update(const ComputeRow& compute);
  Result<std::optional<ComputeRow>> Find(const OrgId& org, const ComputeId& id);
  /// Same type and scheduler identity, last heard of first.
  Result<std::vector<ComputeRow>> FindByIdentity(const OrgId& org, control::v1::ComputeType type,
                                                 const std::string& scheduler_identity);
  /// By name.
  Result<std::vector<ComputeRow>> List(const OrgId& org);
  /// For a registration that turned out to be of a known compute: it has no history of its own.
  Status Remove(const OrgId& org, const ComputeId& id);

 private:
  Result<std::vector<ComputeRow>> Select(std::string_view where_and_order,
                                         std::initializer_list<storage::Value> params);
  storage::Transaction& tx_;
};

control::v1::Compute ToProto(const ComputeRow& row, const HeartbeatPolicy& policy, WallTime now);

}  // namespace expanse::control_plane
