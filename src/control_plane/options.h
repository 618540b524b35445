// SPDX-License-Identifier: Apache-2.0
// What an operator can set of a control plane.
#pragma once

#include <string>

#include "base/time.h"

namespace expanse::control_plane {

/// Where each plane answers, as callers see it; "" for one that is not there.
struct Endpoints {
  std::string control_plane_url;
  std::string data_plane_url;
  std::string intelligence_url;
  std::string console_url;
};

/// When a missing heartbeat means what.
struct HeartbeatPolicy {
  Millis interval{30'000};
  int degraded_after_missed = 3;
  Millis degraded_at_least{120'000};
  Millis offline_after{1'800'000};
};

struct Options {
  /// Holds control.db and control-keys.json (pepper and signing keys, 0600); made when absent.
  std::string data_dir;
  Endpoints endpoints;
  HeartbeatPolicy heartbeat;
  Millis session_lifetime{900'000};
  Millis install_token_lifetime{3'600'000};
  /// How long a plane may rely on a verdict about a compute credential while this one is away.
  Seconds credential_verdict_lifetime{7 * 86'400};
  Millis signing_key_lifetime{Millis(86'400'000) * 90};
};

}  // namespace expanse::control_plane
