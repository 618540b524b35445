// SPDX-License-Identifier: Apache-2.0
// Installing on a SLURM cluster: preflight, plan, token exchange, apply, and rollback when a fresh
// install fails. Everything goes through the Machine, so that it runs on a recorded one without
// root. The commands of src/cli only read flags and call Install and Uninstall.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/secret.h"
#include "base/time.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "rpc/channel.h"

namespace expanse::install {

enum class Role { kController, kSampler };

/// Flags of `expanse compute install`, as spec'd; empty text is "not given".
struct InstallOptions {
  std::string type = "slurm";  // "slurm" installs a cluster runtime; others write the config only
  Role role = Role::kController;
  std::string shared_prefix;
  std::string daemon_version;
  std::string daemon_binary;
  std::string control_plane;
  std::string data_plane;
  std::string config;  // default: <home of user>/.expanse/config.json
  std::string user = "slurm";
  std::string slurm_conf;  // default: $SLURM_CONF, else what scontrol names
  bool patch_slurm_conf = false;
  bool reconfigure = true;
  bool systemd = true;
  Millis heartbeat_timeout{60'000};
  bool sampler_bootstrap = true;  // --sampler-bootstrap prolog (true) or off
  std::string cupti_variant;
  bool profiling_agent = true;
  bool bundled_pyspy = true;
  std::string releases_url = "https://releases.expanse.sh";
  std::string cosign_key;
  bool reinstall = false;
  bool write_config_only = false;
  bool verbose = false;
};

struct UninstallOptions {
  Role role = Role::kController;
  std::string shared_prefix;
  std::string slurm_conf;
  std::string user = "slurm";
  std::string config;
  bool keep_identity = false;
};

/// The machine that is installed on. References outlive the call.
struct Machine {
  const platform::Fs& fs;
  platform::ProcessRunner& runner;
  const platform::Clock& clock;
  platform::HttpClient* http = nullptr;                 // for --daemon-version; may be null
  std::map<std::string, std::string> environment = {};  // EXPANSE_HOOK_DIR, SLURM_CONF, proxies
  std::string program_directory = {};                   // where expanse's sibling programs lie
  std::string home = {};  // of the caller, for configs that are not SLURM's
  uid_t effective_uid = 0;
  std::function<std::unique_ptr<rpc::Channel>(const std::string& base_url)> open_channel = {};
  /// Asked once, only after every check has passed; never asked with --reinstall.
  std::function<Result<Secret>()> install_token = {};
  std::function<void(const std::string& line)> print = {};
  std::function<void(Millis)> sleep = {};
};

struct InstallReport {
  std::string compute_id;
  std::string compute_name;
  std::string organisation;
  std::string config_path;
  bool hooks_wired = false;     // slurm.conf names our hooks now
  bool heartbeat_seen = false;  // only with managed systemd
};

/// Errors: kFailedPrecondition (a check failed; nothing was changed, the token was not used),
/// kAlreadyExists ("existing daemon config found"), kPermissionDenied (needs root), the plane's own
/// error of a failed exchange, and whatever failed while applying (then a fresh install has been
/// rolled back).
Result<InstallReport> Install(const InstallOptions& options, Machine& machine);

/// Unwires before it removes; stops at the first error and says what is left.
Status Uninstall(const UninstallOptions& options, Machine& machine);

}  // namespace expanse::install
