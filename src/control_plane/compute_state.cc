// SPDX-License-Identifier: Apache-2.0
#include "control_plane/compute_state.h"

#include <algorithm>

namespace expanse::control_plane {

control::v1::ComputeState StateOf(const ComputeLife& life, const HeartbeatPolicy& policy,
                                  WallTime now) {
  if (life.revoked_at_ms) return control::v1::COMPUTE_STATE_REVOKED;
  if (life.pending_since_ms || !life.last_heartbeat_ms) return control::v1::COMPUTE_STATE_PENDING;
  const Millis age = std::max(now - FromUnixMillis(*life.last_heartbeat_ms), Millis(0));
  if (age >= policy.offline_after) return control::v1::COMPUTE_STATE_OFFLINE;
  const Millis degraded_after =
      std::max(policy.interval * policy.degraded_after_missed, policy.degraded_at_least);
  return age >= degraded_after ? control::v1::COMPUTE_STATE_DEGRADED
                               : control::v1::COMPUTE_STATE_ACTIVE;
}

}  // namespace expanse::control_plane
