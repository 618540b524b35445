// SPDX-License-Identifier: Apache-2.0
// What the installer leaves for the daemon.
//
// Controller: config.json, mode 0640 or narrower, one JSON object:
//   compute_id, organisation_id, compute_name   text
//   credential                                  "exp_compute_…"
//   endpoints    {"control_plane_url", "data_plane_url", …}; only data_plane_url is dialled
//   shared_prefix   absolute; node spools are <shared_prefix>/spool/<node>/
//   slurm_conf      SLURM_CONF of the client tools; "" or absent: their own default
//   state_dir       absolute; default: the folder `state` beside config.json
//   hook_spool      absolute; <hook_spool>/<node>/events is where hooks write on each node
// Sampler (no credential): lines `key = value` in <shared_prefix>/etc/sampler.conf, of which
// hook_spool is read; the file may be absent.
#pragma once

#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "platform/fs/fs.h"

namespace expanse::collect::daemon {

/// Node-local spool of the hooks when nothing else is configured.
inline constexpr char kDefaultHookSpool[] = "/var/spool/expanse";

struct DaemonConfig {
  std::string compute_id;
  std::string organisation_id;
  std::string compute_name;
  Secret credential;
  std::string data_plane_url;
  std::string shared_prefix;
  std::string slurm_conf;
  std::string state_dir;
  std::string hook_spool = kDefaultHookSpool;
};

/// kFailedPrecondition: the file's mode is broader than 0640 (the credential may be known to
/// others). kInvalidArgument: no such JSON, or a member is missing or no absolute path.
Result<DaemonConfig> LoadDaemonConfig(const platform::Fs& fs, const std::string& path);

/// hook_spool of <shared_prefix>/etc/sampler.conf, else the default.
Result<std::string> SamplerHookSpool(const platform::Fs& fs, const std::string& shared_prefix);

}  // namespace expanse::collect::daemon
