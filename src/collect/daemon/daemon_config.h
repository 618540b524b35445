// SPDX-License-Identifier: Apache-2.0
// What the installer leaves for the daemon (proto/expanse/data/v1/daemon.proto): config.json with
// the credential for a controller, <shared-prefix>/etc/sampler.json without one for samplers.
#pragma once

#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "platform/fs/fs.h"

namespace expanse::collect::daemon {

struct DaemonConfig {
  std::string compute_id;
  std::string organisation_id;
  Secret credential;
  std::string data_plane_url;
  std::string shared_prefix;
  std::string slurm_conf;  // empty: the tools' own default
  std::string state_dir;
  std::string hook_spool;      // of sampler.json
  std::string hook_directory;  // of sampler.json
};

/// kFailedPrecondition: the file's mode is broader than 0640 (the credential may be known to
/// others). kInvalidArgument: no such JSON, or a member is missing or no absolute path.
Result<DaemonConfig> LoadDaemonConfig(const platform::Fs& fs, const std::string& path);

/// hook_directory of the same file, or the default place.
std::string HookDirectory(const platform::Fs& fs, const std::string& shared_prefix);

/// hook_spool of <shared_prefix>/etc/sampler.json; the default place when the file is absent or
/// does not name one.
Result<std::string> SamplerHookSpool(const platform::Fs& fs, const std::string& shared_prefix);

}  // namespace expanse::collect::daemon
