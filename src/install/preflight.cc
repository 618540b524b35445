// SPDX-License-Identifier: Apache-2.0
// The checks before anything is changed.
#include <algorithm>

#include "base/strings.h"
#include "domain/layout.h"
#include "expanse/data/v1/daemon.pb.h"
#include "install/release.h"
#include "install/site.h"
#include "rpc/json.h"

namespace expanse::install {
namespace {

constexpr size_t kMaxConf = 16 << 20;

Error Failed(const std::string& what) { return Error(Code::kFailedPrecondition, what); }

Status CheckUrl(const std::string& flag, const std::string& url) {
  if (url.empty()) return Failed(flag + " is required for a fresh controller install");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return Failed(flag + " " + url + ": give an http:// or https:// URL");
  return {};
}

Status CheckPrefix(const std::string& prefix) {
  if (prefix.empty()) return Failed("--shared-prefix is required: a path that every node shares");
  if (!prefix.starts_with('/') || prefix == "/" || platform::NormalizePath(prefix) != prefix)
    return Failed("--shared-prefix " + prefix + ": give an absolute path without \"..\"");
  return {};
}

/// The service account must be able to go down to the prefix.
Status CheckSearchable(const platform::Fs& fs, const std::string& path, const Account& user) {
  std::string p = path;
  while (p.size() > 1) {
    const auto info = fs.Stat(p);
    if (info.ok()) {
      if (!info->is_directory) return Failed(p + " is not a directory");
      const bool others = (info->mode & 001) != 0;
      const bool group = info->gid == user.owner.gid && (info->mode & 010) != 0;
      const bool owner = info->uid == user.owner.uid && (info->mode & 0100) != 0;
      if (user.owner.uid != 0 && !others && !group && !owner)
        return Failed("account " + user.name + " may not enter " + p +
                      "; give it search permission");
    }
    p = platform::DirName(p);
  }
  return {};
}

/// Writes and removes a file in the prefix or in its nearest existing parent.
Status ProbeWritable(const platform::Fs& fs, const std::string& prefix) {
  std::string directory = prefix;
  while (directory.size() > 1 && !fs.Exists(directory)) directory = platform::DirName(directory);
  const std::string probe = directory + "/.expanse-preflight-probe";
  if (const Status written = fs.WriteAtomic(probe, "probe\n", 0600); !written.ok())
    return Failed("the shared prefix cannot be written from here: " + written.error().message() +
                  " (an NFS export with root_squash needs a prefix that root may write)");
  return fs.Remove(probe);
}

Status CheckHookPlace(const platform::Fs& fs, const Site& site) {
  if (!site.hook_directory.starts_with('/'))
    return Failed("EXPANSE_HOOK_DIR " + site.hook_directory + ": give an absolute path");
  if (!site.prefix.empty() && (site.hook_directory + "/").starts_with(site.prefix + "/"))
    return Failed("the hook directory " + site.hook_directory +
                  " lies on the shared prefix; hooks are node-local files, because SLURM drains a "
                  "node whose Prolog cannot be read");
  const std::string type = FileSystemOf(fs, site.hook_directory);
  if (IsNetworkFileSystem(type))
    return Failed("the hook directory " + site.hook_directory + " lies on a network file system (" +
                  type + "); choose a node-local one with EXPANSE_HOOK_DIR");
  return {};
}

/// The hook program lies beside the daemon that was given, or beside this program.
Status ReadPrograms(const InstallOptions& options, Machine& machine, Site* site) {
  EXPANSE_TRY(ReleaseFiles files, ResolveRelease(options, machine));
  site->daemon_bytes = std::move(files.daemon);
  site->hook_bytes = std::move(files.hook);
  return {};
}

Result<std::string> SlurmConfPath(const InstallOptions& options, const Machine& machine,
                                  const std::map<std::string, std::string>& config) {
  std::string path = options.slurm_conf;
  const auto environment = machine.environment.find("SLURM_CONF");
  if (path.empty() && environment != machine.environment.end()) path = environment->second;
  const auto shown = config.find("SLURM_CONF");
  if (path.empty() && shown != config.end()) path = shown->second;
  if (path.empty() || !path.starts_with('/'))
    return Failed("slurm.conf was not found; name it with --slurm-conf");
  return path;
}

/// A hook set in an included file is not ours to edit there.
Status CheckIncludes(const Site& site, const std::map<std::string, std::string>& shown) {
  for (const auto& key : site.wiring.keys) {
    const auto value = shown.find(key);
    if (value == shown.end() || value->second == "(null)" || value->second.empty()) continue;
    const auto in_file = site.conf.Values(key);
    if (!in_file.empty()) continue;
    const std::string ours = site.hook_directory + "/" + HookFileOf(key);
    if (value->second.find(ours) != std::string::npos) continue;
    return Failed(key + "=" + value->second + " is in force but not in " + site.slurm_conf_path +
                  (site.conf.includes.empty() ? "" : " (an included file sets it)") +
                  "; move that line into " + site.slurm_conf_path +
                  " or wire the hooks by hand and rerun without --patch-slurm-conf");
  }
  return {};
}

/// Nodes of other hosts whose hook files are not in place: wiring now would drain them.
Status FindHostsWithoutHooks(const SlurmTools& tools, const platform::Fs& fs, Site* site) {
  EXPANSE_TRY(const auto nodes, tools.ShowNodes());
  for (const auto& node : nodes) {
    const std::string host = node.host.empty() ? node.name : node.host;
    if (SameHost(host, site->host)) continue;
    if (fs.Exists(site->prefix + "/etc/nodes/" + host)) continue;
    const auto& known = site->hosts_without_hooks;
    if (std::find(known.begin(), known.end(), host) == known.end())
      site->hosts_without_hooks.push_back(host);
  }
  return {};
}

Status CheckSlurm(const InstallOptions& options, Machine& machine, Site* site) {
  std::string slurm_conf = options.slurm_conf;
  const auto environment = machine.environment.find("SLURM_CONF");
  if (slurm_conf.empty() && environment != machine.environment.end())
    slurm_conf = environment->second;
  const SlurmTools tools(machine, slurm_conf);
  EXPANSE_TRY(const auto shown, tools.ShowConfig());
  site->cluster = shown.at("ClusterName");
  EXPANSE_TRY(site->slurm_conf_path, SlurmConfPath(options, machine, shown));
  EXPANSE_TRY(std::string text, machine.fs.Read(site->slurm_conf_path, kMaxConf));
  site->conf = ParseSlurmConf(std::move(text));
  site->wiring.hook_directory = site->hook_directory;
  for (const auto key : kHookKeys)
    if (options.profiling_agent || key != "TaskProlog") site->wiring.keys.emplace_back(key);
  site->foreign = ForeignHooks(site->conf, site->wiring);
  site->wired_already = IsWired(site->conf, site->wiring);
  if (site->wired_already) return {};
  EXPANSE_CHECK_OK(CheckIncludes(*site, shown));
  if (!options.patch_slurm_conf) {
    if (site->foreign.empty()) return {};
    return Failed(
        "slurm.conf names hooks already, and chaining them needs --patch-slurm-conf. The "
        "change would be:\n" +
        DescribeWiring(site->conf, site->wiring) + "with the old programs chained in " +
        site->hook_directory + "/hook.conf");
  }
  EXPANSE_CHECK_OK(FindHostsWithoutHooks(tools, machine.fs, site));
  site->wire_now = site->hosts_without_hooks.empty();
  return {};
}

Status CheckExistingConfig(const InstallOptions& options, const platform::Fs& fs,
                           const std::string& path) {
  const bool exists = fs.Exists(path);
  if (exists && !options.reinstall)
    return Error(Code::kAlreadyExists,
                 "existing daemon config found at " + path +
                     ": use --reinstall to upgrade with the saved identity, or "
                     "`expanse compute uninstall` to reset it; a new token never overrides it");
  if (!exists && options.reinstall)
    return Failed("--reinstall needs the saved identity, but there is no " + path);
  return {};
}

}  // namespace

Result<Site> CheckController(const InstallOptions& options, Machine& machine) {
  EXPANSE_CHECK_OK(RequireRoot(machine));
  Site site;
  site.host = HostName(machine.fs);
  EXPANSE_TRY(site.user, FindAccount(machine.fs, options.user));
  EXPANSE_TRY(site.config_path, ConfigPath(options.config, site.user.home));
  EXPANSE_CHECK_OK(CheckExistingConfig(options, machine.fs, site.config_path));
  site.systemd_running = machine.fs.Exists("/run/systemd/system");
  if (!options.reinstall) {
    EXPANSE_CHECK_OK(CheckUrl("--data-plane", options.data_plane));
    EXPANSE_CHECK_OK(CheckUrl("--control-plane", options.control_plane));
  }
  SetHookPlaces(machine, &site);
  site.prefix = options.shared_prefix;
  EXPANSE_CHECK_OK(CheckPrefix(site.prefix));
  if ((site.config_path + "/").starts_with(site.prefix + "/"))
    return Failed("the credential " + site.config_path + " would lie on the shared prefix");
  EXPANSE_CHECK_OK(ReadPrograms(options, machine, &site));
  EXPANSE_CHECK_OK(CheckSearchable(machine.fs, site.prefix, site.user));
  EXPANSE_CHECK_OK(CheckSearchable(machine.fs, platform::DirName(site.config_path), site.user));
  EXPANSE_CHECK_OK(ProbeWritable(machine.fs, site.prefix));
  EXPANSE_CHECK_OK(CheckHookPlace(machine.fs, site));
  EXPANSE_CHECK_OK(CheckSlurm(options, machine, &site));
  return site;
}

Result<Site> CheckSampler(const InstallOptions& options, Machine& machine) {
  EXPANSE_CHECK_OK(RequireRoot(machine));
  Site site;
  site.host = HostName(machine.fs);
  EXPANSE_TRY(site.user, FindAccount(machine.fs, options.user));
  site.prefix = options.shared_prefix;
  EXPANSE_CHECK_OK(CheckPrefix(site.prefix));
  const std::string sentinel = site.prefix + "/" + std::string(domain::kSharedSentinel);
  if (!machine.fs.Exists(sentinel))
    return Failed(sentinel + " is not there: " + site.prefix +
                  " is not the controller's mount, or the controller is not installed yet");
  if (machine.fs.Exists("/etc/systemd/system/expanse-daemon.service"))
    return Failed(
        "this is the controller host: its daemon samples here, and two would sample "
        "twice");
  site.systemd_running = machine.fs.Exists("/run/systemd/system");
  // The controller chose the place and knows the site's own hooks: slurm.conf is one for all nodes.
  EXPANSE_TRY(const std::string json,
              machine.fs.Read(site.prefix + "/" + std::string(domain::kSharedSamplerConfig)));
  data::v1::SamplerConfig config;
  EXPANSE_CHECK_OK(rpc::FromJson(json, &config));
  site.hook_directory = config.hook_directory();
  site.hook_spool = config.hook_spool();
  for (const auto& chained : config.chained())
    site.foreign[chained.key()].push_back(chained.program());
  EXPANSE_TRY(site.hook_bytes,
              machine.fs.Read(site.prefix + "/" + std::string(domain::kSharedHook), 64 << 20));
  EXPANSE_CHECK_OK(CheckHookPlace(machine.fs, site));
  return site;
}

}  // namespace expanse::install
