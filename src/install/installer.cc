// SPDX-License-Identifier: Apache-2.0
#include "install/installer.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "domain/layout.h"
#include "expanse/data/v1/data.rpc.h"
#include "install/apply.h"
#include "install/lock.h"
#include "install/units.h"
#include "rpc/json.h"

namespace expanse::install {
namespace {

constexpr Millis kPoll{500};

data::v1::DaemonConfig NewConfig(const InstallOptions& options, const Site& site,
                                 const data::v1::ExchangeInstallTokenResponse& exchanged) {
  data::v1::DaemonConfig config;
  config.set_compute_id(exchanged.compute_id());
  config.set_compute_name(exchanged.compute_name());
  config.set_organisation_id(exchanged.organisation_id());
  config.set_organisation(exchanged.organisation());
  config.set_credential(exchanged.credential());
  config.set_control_plane_url(options.control_plane);
  config.set_data_plane_url(options.data_plane);
  config.set_type(options.type.empty() ? "vm" : options.type);
  config.set_scheduler_identity(ToUtf8(site.cluster));
  config.set_shared_prefix(ToUtf8(site.prefix));
  config.set_slurm_conf(ToUtf8(site.slurm_conf_path));
  return config;
}

Result<data::v1::DaemonConfig> Exchange(const InstallOptions& options, const Site& site,
                                        Machine& machine) {
  EXPANSE_TRY(const Secret token, machine.install_token());
  if (token.empty()) return Error(Code::kUnauthenticated, "no install token was given");
  const auto channel = machine.open_channel(options.data_plane);
  const data::v1::EnrolmentServiceClient client(*channel);
  data::v1::ExchangeInstallTokenRequest request;
  request.set_install_token(token.Reveal());
  request.set_scheduler_identity(ToUtf8(site.cluster));
  auto exchanged = client.ExchangeInstallToken("", request);
  if (!exchanged.ok()) return exchanged.error().WithContext("exchange of the install token");
  return NewConfig(options, site, *exchanged);
}

Result<data::v1::DaemonConfig> SavedConfig(const Site& site, Machine& machine) {
  EXPANSE_TRY(const std::string json, machine.fs.Read(site.config_path, 1 << 20));
  data::v1::DaemonConfig config;
  const Status parsed = rpc::FromJson(json, &config);
  if (!parsed.ok()) return parsed.error().WithContext(site.config_path);
  if (config.credential().empty())
    return Error(Code::kFailedPrecondition, site.config_path + " holds no credential");
  return config;
}

/// True once the daemon has touched the marker of an accepted heartbeat after `since`.
bool HeartbeatSince(const Site& site, const platform::Fs& fs, int64_t since_ms) {
  const auto marker =
      fs.Stat(platform::DirName(site.config_path) + "/" + std::string(domain::kHeartbeatMarker));
  return marker.ok() && marker->mtime_ms >= since_ms;
}

Status AwaitHeartbeat(const InstallOptions& options, const Site& site, Machine& machine) {
  const int64_t since = ToUnixMillis(machine.clock.Now()) - 1000;
  const MonoTime until = machine.clock.Mono() + options.heartbeat_timeout;
  while (machine.clock.Mono() < until) {
    if (HeartbeatSince(site, machine.fs, since)) return {};
    machine.sleep(kPoll);
  }
  return Error(Code::kDeadlineExceeded, "the daemon's first heartbeat was not accepted within " +
                                            FormatDuration(options.heartbeat_timeout) +
                                            "; look at: journalctl -u expanse-daemon");
}

Status SeedEnvironment(const Site& site, Machine& machine, Transaction* transaction) {
  const std::string path(domain::kServiceEnvironment);
  const std::string existing = machine.fs.Read(path, 1 << 20).value_or("");
  const std::string text = AddServiceEnvironment(existing, machine.environment);
  if (text.empty()) return {};
  const auto info = machine.fs.Stat(path);
  const Owner root = machine.fs.root().empty() ? Owner{0, 0} : site.user.owner;
  EXPANSE_CHECK_OK(transaction->MakeDirs(platform::DirName(path), 0755, root));
  return transaction->WriteFile(path, text, info.ok() ? info->mode & 07777 : 0640,
                                info.ok() ? Owner{info->uid, info->gid} : root);
}

Status Apply(const InstallOptions& options, const Site& site, const data::v1::DaemonConfig& config,
             Machine& machine, Transaction* transaction, InstallReport* report) {
  EXPANSE_CHECK_OK(WriteConfig(site, config, transaction));
  // The daemon keeps its state beside its config and may not write into a folder it does not own.
  EXPANSE_CHECK_OK(transaction->MakeDirs(
      platform::JoinPath(platform::DirName(site.config_path), domain::kDaemonState), 0750,
      site.user.owner));
  EXPANSE_CHECK_OK(PlaceShared(site, machine.fs, transaction));
  EXPANSE_CHECK_OK(PlaceHooks(site, machine, transaction));
  EXPANSE_CHECK_OK(SeedEnvironment(site, machine, transaction));
  EXPANSE_CHECK_OK(WireHooks(options, site, machine, transaction));
  report->hooks_wired = site.wired_already || site.wire_now;
  EXPANSE_CHECK_OK(StartService(options, site, "expanse-daemon.service", ControllerUnit(site),
                                machine, transaction));
  if (options.systemd && site.systemd_running) {
    EXPANSE_CHECK_OK(AwaitHeartbeat(options, site, machine));
    report->heartbeat_seen = true;
  }
  return {};
}

/// With --reinstall the chained programs of the old settings stay chained.
void KeepChained(const platform::Fs& fs, Site* site) {
  const std::string text = fs.Read(site->hook_directory + "/hook.conf", 1 << 20).value_or("");
  for (const auto line : Split(text, '\n')) {
    for (const auto key : kHookKeys) {
      const std::string prefix = "chain." + HookFileOf(key) + " = ";
      if (!line.starts_with(prefix)) continue;
      auto& programs = site->foreign[std::string(key)];
      const std::string program(line.substr(prefix.size()));
      if (std::find(programs.begin(), programs.end(), program) == programs.end())
        programs.push_back(program);
    }
  }
}

Transaction::Log TransactionLog(const InstallOptions& options, Machine& machine) {
  return [&machine, verbose = options.verbose](const std::string& line) {
    if (verbose) machine.print("  " + line);
  };
}

Result<InstallReport> InstallController(const InstallOptions& options, Machine& machine) {
  EXPANSE_TRY(Site site, CheckController(options, machine));
  if (site.wired_already || options.reinstall) KeepChained(machine.fs, &site);
  PrintLines(machine, Join(DescribePlan(options, site), "\n"));
  EXPANSE_TRY(const data::v1::DaemonConfig config,
              options.reinstall ? SavedConfig(site, machine) : Exchange(options, site, machine));
  InstallReport report;
  report.compute_id = config.compute_id();
  report.compute_name = config.compute_name();
  report.organisation = config.organisation();
  report.config_path = site.config_path;
  Transaction transaction(machine.fs, TransactionLog(options, machine));
  const Status applied = Apply(options, site, config, machine, &transaction, &report);
  if (applied.ok()) {
    transaction.Commit();
    return report;
  }
  const Status undone = transaction.Rollback();
  std::string after = "; everything was taken back";
  if (options.reinstall) after = "; the files of before were put back, the identity stays";
  if (!undone.ok()) after = "; " + undone.error().message();
  return Error(applied.error().code(), applied.error().message() + after);
}

Status ApplySampler(const InstallOptions& options, const Site& site, Machine& machine,
                    Transaction* transaction) {
  const Owner root = machine.fs.root().empty() ? Owner{0, 0} : site.user.owner;
  EXPANSE_CHECK_OK(PlaceHooks(site, machine, transaction));
  EXPANSE_CHECK_OK(StartService(options, site, "expanse-sampler.service", SamplerUnit(site),
                                machine, transaction));
  // Last: the controller takes it as the promise that the hook files are here.
  EXPANSE_CHECK_OK(transaction->MakeDirs(site.prefix + "/etc/nodes", 0755, root));
  return transaction->WriteFile(site.prefix + "/etc/nodes/" + site.host, "hooks\n", 0644, root);
}

Result<InstallReport> InstallSampler(const InstallOptions& options, Machine& machine) {
  EXPANSE_TRY(const Site site, CheckSampler(options, machine));
  PrintLines(machine, Join(DescribePlan(options, site), "\n"));
  Transaction transaction(machine.fs, TransactionLog(options, machine));
  const Status applied = ApplySampler(options, site, machine, &transaction);
  if (applied.ok()) {
    transaction.Commit();
    return InstallReport{};
  }
  const Status undone = transaction.Rollback();
  return Error(applied.error().code(),
               applied.error().message() +
                   (undone.ok() ? "; everything was taken back" : "; " + undone.error().message()));
}

/// --write-config-only, and every type but slurm.
Result<InstallReport> InstallConfig(const InstallOptions& options, Machine& machine) {
  Site site;
  site.host = HostName(machine.fs);
  const bool slurm = options.type == "slurm";
  if (slurm) {
    EXPANSE_TRY(site.user, FindAccount(machine.fs, options.user));
    const auto conf = machine.environment.find("SLURM_CONF");
    const SlurmTools tools(machine, !options.slurm_conf.empty()         ? options.slurm_conf
                                    : conf != machine.environment.end() ? conf->second
                                                                        : "");
    EXPANSE_TRY(const auto shown, tools.ShowConfig());
    site.cluster = shown.at("ClusterName");
  } else {
    // The caller's own file; a Nomad client's daemon runs as root.
    site.user.owner = {machine.effective_uid, static_cast<gid_t>(machine.effective_uid)};
    site.user.home = machine.home;
    site.config_mode = options.type == "nomad" ? 0640 : 0600;
    site.cluster = std::string(Trim(machine.fs.Read("/etc/machine-id", 4096).value_or("")));
  }
  std::string chosen = options.config;
  if (chosen.empty() && options.type == "nomad") chosen = "/etc/expanse/config.json";
  EXPANSE_TRY(site.config_path, ConfigPath(chosen, site.user.home));
  if (machine.fs.Exists(site.config_path))
    return Error(Code::kAlreadyExists, "existing daemon config found at " + site.config_path +
                                           ": a new token never overrides a saved identity");
  if (options.data_plane.empty())
    return Error(Code::kFailedPrecondition, "--data-plane is required");
  site.prefix = options.shared_prefix;
  EXPANSE_TRY(const data::v1::DaemonConfig config, Exchange(options, site, machine));
  Transaction transaction(machine.fs, TransactionLog(options, machine));
  EXPANSE_CHECK_OK(WriteConfig(site, config, &transaction));
  transaction.Commit();
  InstallReport report;
  report.compute_id = config.compute_id();
  report.compute_name = config.compute_name();
  report.organisation = config.organisation();
  report.config_path = site.config_path;
  return report;
}

}  // namespace

Result<InstallReport> Install(const InstallOptions& options, Machine& machine) {
  const bool config_only = options.type != "slurm" || options.write_config_only;
  // A person's own config needs no lock that only root can take.
  if (config_only && options.type != "slurm") return InstallConfig(options, machine);
  EXPANSE_TRY(const auto lock, TakeInstallLock(machine));
  if (config_only) return InstallConfig(options, machine);
  return options.role == Role::kSampler ? InstallSampler(options, machine)
                                        : InstallController(options, machine);
}

}  // namespace expanse::install
