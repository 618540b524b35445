// SPDX-License-Identifier: Apache-2.0
// Where an installation lies. The installer and the daemon agree on it here.
#pragma once

#include <string_view>

namespace expanse::domain {

/// Node-local folder of the hook files; EXPANSE_HOOK_DIR overrides it at install time. The hooks'
/// spool is the folder `hook-spool` beside it, and both are named in the sampler's settings.
inline constexpr std::string_view kHookDirectory = "/var/lib/expanse/hooks";
inline constexpr std::string_view kHookSpool = "/var/lib/expanse/hook-spool";
/// The hooks' spool where /run is a tmpfs and systemd makes it again at boot.
inline constexpr std::string_view kVolatileHookSpool = "/run/expanse/hook-spool";
inline constexpr std::string_view kTmpfilesConf = "/etc/tmpfiles.d/expanse.conf";

/// Below the shared prefix.
inline constexpr std::string_view kSharedDaemon = "bin/expanse-daemon";
inline constexpr std::string_view kSharedHook = "bin/expanse-hook";
inline constexpr std::string_view kSharedSamplerConfig = "etc/sampler.json";  // SamplerConfig
inline constexpr std::string_view kSharedSpool = "spool";  // <node>/ of each sampler
inline constexpr std::string_view kSharedSentinel = ".expanse-preflight-sentinel";

/// Beside a daemon's config.json: its state, and in it a file that is touched when the data plane
/// has accepted a heartbeat.
inline constexpr std::string_view kDaemonState = "state";
inline constexpr std::string_view kHeartbeatMarker = "state/accepted";

/// Node-local service environment, owned by the operator.
inline constexpr std::string_view kServiceEnvironment = "/etc/expanse/daemon.env";

}  // namespace expanse::domain
