// SPDX-License-Identifier: Apache-2.0
// The state of a compute is never stored: it follows from what was recorded and the clock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "control_plane/options.h"
#include "expanse/control/v1/control.pb.h"

namespace expanse::control_plane {

struct ComputeLife {
  std::optional<int64_t> pending_since_ms;  // registered (again), no heartbeat since
  std::optional<int64_t> last_heartbeat_ms;
  std::optional<int64_t> revoked_at_ms;
};

/// revoked, else pending, else by the age of the last heartbeat: active, degraded from
/// max(missed * interval, degraded_at_least) on, offline from offline_after on. A heartbeat from
/// the future (the clock was set back) counts as just now.
control::v1::ComputeState StateOf(const ComputeLife& life, const HeartbeatPolicy& policy,
                                  WallTime now);

}  // namespace expanse::control_plane
