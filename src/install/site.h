// SPDX-License-Identifier: Apache-2.0
// What an installation finds and will do: the outcome of the checks, before anything is changed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "install/installer.h"
#include "install/slurm_conf.h"
#include "install/slurm_tools.h"
#include "install/transaction.h"

namespace expanse::install {

struct Account {
  std::string name;
  Owner owner;
  std::string home;
};

struct Site {
  Account user;
  std::string host;    // of the kernel
  std::string prefix;  // shared prefix; empty when only a config is written
  std::string hook_directory;
  std::string hook_spool;
  std::string config_path;
  mode_t config_mode = 0640;
  bool systemd_running = false;

  std::string slurm_conf_path;
  std::string cluster;
  SlurmConf conf;
  HookWiring wiring;
  std::map<std::string, std::vector<std::string>> foreign;
  bool wired_already = false;
  bool wire_now = false;
  std::vector<std::string> hosts_without_hooks;  // wiring would drain them

  std::string daemon_bytes;
  std::string hook_bytes;
};

/// An account of /etc/passwd. kFailedPrecondition: there is none.
Result<Account> FindAccount(const platform::Fs& fs, const std::string& name);
/// Of /proc/sys/kernel/hostname.
std::string HostName(const platform::Fs& fs);
/// Same host by their first labels ("n1" and "n1.cluster.local").
bool SameHost(std::string_view a, std::string_view b);
/// The file system type that holds a path (its nearest existing parent), by /proc/self/mountinfo.
std::string FileSystemOf(const platform::Fs& fs, const std::string& path);
bool IsNetworkFileSystem(std::string_view type);
/// Node-local places, with EXPANSE_HOOK_DIR.
void SetHookPlaces(const Machine& machine, Site* site);
/// --config, else <home>/.expanse/config.json of the account.
Result<std::string> ConfigPath(const std::string& option, const std::string& home);

/// kPermissionDenied with what to do, unless the caller is root or the machine is a recorded one.
Status RequireRoot(const Machine& machine);

/// Everything the controller's installation needs, checked. Nothing is changed but one probe file
/// in the shared prefix, which is removed again.
Result<Site> CheckController(const InstallOptions& options, Machine& machine);
Result<Site> CheckSampler(const InstallOptions& options, Machine& machine);
/// The plan as lines for a person.
std::vector<std::string> DescribePlan(const InstallOptions& options, const Site& site);

}  // namespace expanse::install
