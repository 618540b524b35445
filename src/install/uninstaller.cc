// SPDX-License-Identifier: Apache-2.0
// Uninstall: unwire, check that SLURM took it, stop, deprovision, remove.
#include "base/strings.h"
#include "domain/layout.h"
#include "expanse/data/v1/data.rpc.h"
#include "install/apply.h"
#include "install/lock.h"
#include "install/site.h"
#include "rpc/json.h"

namespace expanse::install {
namespace {

constexpr size_t kMaxConf = 16 << 20;

Error Failed(const std::string& what) { return Error(Code::kFailedPrecondition, what); }

std::string ConfOption(const UninstallOptions& options, const Machine& machine) {
  if (!options.slurm_conf.empty()) return options.slurm_conf;
  const auto environment = machine.environment.find("SLURM_CONF");
  return environment != machine.environment.end() ? environment->second : "";
}

/// Takes our lines out of slurm.conf and has SLURM forget them. The hook files stay until SLURM
/// says that it no longer uses them: it would drain the nodes otherwise.
Status UnwireHooks(const UninstallOptions& options, const Site& site, Machine& machine) {
  const SlurmTools tools(machine, ConfOption(options, machine));
  EXPANSE_TRY(const auto shown, tools.ShowConfig());
  std::string path = ConfOption(options, machine);
  if (const auto named = shown.find("SLURM_CONF"); path.empty() && named != shown.end())
    path = named->second;
  if (path.empty()) return Failed("slurm.conf was not found; name it with --slurm-conf");
  EXPANSE_TRY(const std::string real, machine.fs.RealPath(path));
  EXPANSE_TRY(const std::string text, machine.fs.Read(real, kMaxConf));
  EXPANSE_TRY(const std::string unwired, Unwire(text, site.hook_directory));
  const std::string backup = path + ".before-expanse";
  if (unwired != text) {
    const auto info = machine.fs.Stat(real);
    if (!info.ok()) return info.error();
    EXPANSE_CHECK_OK(machine.fs.WriteAtomic(real, unwired, info->mode & 07777, true));
    machine.print("took our hooks out of " + real);
  }
  if (unwired != text || !HooksInForce(shown, site.hook_directory).empty()) {
    EXPANSE_CHECK_OK(tools.Reconfigure());
    EXPANSE_TRY(const auto now, tools.ShowConfig());
    if (const auto left = HooksInForce(now, site.hook_directory); !left.empty())
      return Failed("SLURM still uses our hooks (" + Join(left, ", ") +
                    "); the hook files stay, since it would drain the nodes without them. Check " +
                    path + " and what it includes, then run this again");
  }
  // The backup has served when the file is as it was.
  if (machine.fs.Read(backup, kMaxConf).value_or("") == unwired)
    EXPANSE_CHECK_OK(machine.fs.Remove(backup));
  return {};
}

Status RemoveUnit(const std::string& name, Machine& machine) {
  const std::string path = std::string(kUnitDirectory) + "/" + name;
  if (!machine.fs.Exists(path)) return {};
  EXPANSE_CHECK_OK(Systemctl(machine, {"disable", "--now", name}));
  EXPANSE_CHECK_OK(machine.fs.Remove(path));
  machine.print("removed " + name + " (drop-ins in " + path + ".d are the operator's and stay)");
  return Systemctl(machine, {"daemon-reload"});
}

Status RemoveHooks(const Site& site, const platform::Fs& fs) {
  for (const auto key : kHookKeys)
    EXPANSE_CHECK_OK(fs.Remove(site.hook_directory + "/" + HookFileOf(key)));
  EXPANSE_CHECK_OK(fs.Remove(site.hook_directory + "/hook.conf"));
  const auto left = fs.List(site.hook_directory);
  if (left.ok() && left->empty()) EXPANSE_CHECK_OK(fs.RemoveTree(site.hook_directory));
  EXPANSE_CHECK_OK(fs.Remove(std::string(domain::kTmpfilesConf)));
  for (const std::string& spool : {site.hook_spool, std::string(domain::kVolatileHookSpool)}) {
    if (!fs.Exists(spool)) continue;
    EXPANSE_CHECK_OK(fs.RemoveTree(spool));
    const auto rest = fs.List(platform::DirName(spool));
    if (rest.ok() && rest->empty()) EXPANSE_CHECK_OK(fs.RemoveTree(platform::DirName(spool)));
  }
  return {};
}

/// What we made below the prefix; the prefix itself when nothing else is in it.
Status RemoveShared(const Site& site, const platform::Fs& fs) {
  const std::string prefix = site.prefix + "/";
  for (const auto file : {domain::kSharedDaemon, domain::kSharedHook, domain::kSharedSamplerConfig,
                          domain::kSharedSentinel})
    EXPANSE_CHECK_OK(fs.Remove(prefix + std::string(file)));
  for (const std::string& directory : {prefix + std::string(domain::kSharedSpool)})
    if (fs.Exists(directory)) EXPANSE_CHECK_OK(fs.RemoveTree(directory));
  for (const std::string& directory :
       {prefix + "etc/nodes", prefix + "etc", prefix + "bin", site.prefix}) {
    const auto names = fs.List(directory);
    if (names.ok() && names->empty()) EXPANSE_CHECK_OK(fs.RemoveTree(directory));
  }
  return {};
}

Status Deprovision(const data::v1::DaemonConfig& config, Machine& machine) {
  const auto channel = machine.open_channel(config.data_plane_url());
  const data::v1::EnrolmentServiceClient client(*channel);
  const auto answer = client.Deprovision(config.credential(), {});
  if (answer.ok()) return {};
  // Revoked in the console already: that is what we want.
  if (answer.error().code() == Code::kUnauthenticated) return {};
  return answer.error().WithContext("deprovisioning the compute");
}

Status RemoveIdentity(const Site& site, Machine& machine) {
  if (!machine.fs.Exists(site.config_path)) return {};
  EXPANSE_TRY(const std::string json, machine.fs.Read(site.config_path, 1 << 20));
  data::v1::DaemonConfig config;
  const Status parsed = rpc::FromJson(json, &config);
  if (!parsed.ok()) return parsed.error().WithContext(site.config_path);
  EXPANSE_CHECK_OK(Deprovision(config, machine));
  EXPANSE_CHECK_OK(machine.fs.Remove(site.config_path));
  const std::string directory = platform::DirName(site.config_path);
  const std::string state = directory + "/" + std::string(domain::kDaemonState);
  if (machine.fs.Exists(state)) EXPANSE_CHECK_OK(machine.fs.RemoveTree(state));
  const auto left = machine.fs.List(directory);
  if (left.ok() && left->empty()) EXPANSE_CHECK_OK(machine.fs.RemoveTree(directory));
  machine.print("removed the compute's identity");
  return {};
}

Status CheckPrefixGiven(const UninstallOptions& options) {
  if (options.shared_prefix.starts_with('/') && options.shared_prefix != "/" &&
      platform::NormalizePath(options.shared_prefix) == options.shared_prefix)
    return {};
  return Error(Code::kInvalidArgument, "--shared-prefix: give the path that was installed to");
}

Status UninstallController(const UninstallOptions& options, Machine& machine) {
  Site site;
  site.host = HostName(machine.fs);
  EXPANSE_TRY(site.user, FindAccount(machine.fs, options.user));
  EXPANSE_TRY(site.config_path, ConfigPath(options.config, site.user.home));
  site.prefix = options.shared_prefix;
  SetHookPlaces(machine, &site);
  if (machine.fs.Exists(std::string(kUnitDirectory) + "/expanse-sampler.service"))
    return Failed("a sampler is installed on this host: uninstall it first with --role sampler");
  if (const auto nodes = machine.fs.List(site.prefix + "/etc/nodes"); nodes.ok() && !nodes->empty())
    return Failed("samplers are still installed on " + Join(*nodes, ", ") +
                  ": uninstall them first with --role sampler (for a node that is gone, remove its "
                  "file in " +
                  site.prefix + "/etc/nodes)");
  EXPANSE_CHECK_OK(UnwireHooks(options, site, machine));
  EXPANSE_CHECK_OK(RemoveUnit("expanse-daemon.service", machine));
  if (!options.keep_identity) EXPANSE_CHECK_OK(RemoveIdentity(site, machine));
  EXPANSE_CHECK_OK(RemoveHooks(site, machine.fs));
  return RemoveShared(site, machine.fs);
}

Status UninstallSampler(const UninstallOptions& options, Machine& machine) {
  Site site;
  site.host = HostName(machine.fs);
  site.prefix = options.shared_prefix;
  SetHookPlaces(machine, &site);
  EXPANSE_CHECK_OK(RemoveUnit("expanse-sampler.service", machine));
  EXPANSE_CHECK_OK(machine.fs.Remove(site.prefix + "/etc/nodes/" + site.host));
  const SlurmTools tools(machine, ConfOption(options, machine));
  const auto shown = tools.ShowConfig();
  if (!shown.ok() || !HooksInForce(*shown, site.hook_directory).empty()) {
    machine.print("The hook files in " + site.hook_directory +
                  " stay: slurm.conf still names them, and SLURM would drain this node without "
                  "them. Run this again after the controller's uninstall to remove them.");
    return {};
  }
  return RemoveHooks(site, machine.fs);
}

}  // namespace

Status Uninstall(const UninstallOptions& options, Machine& machine) {
  EXPANSE_CHECK_OK(RequireRoot(machine));
  EXPANSE_CHECK_OK(CheckPrefixGiven(options));
  EXPANSE_TRY(const auto lock, TakeInstallLock(machine));
  return options.role == Role::kSampler ? UninstallSampler(options, machine)
                                        : UninstallController(options, machine);
}

}  // namespace expanse::install
