// SPDX-License-Identifier: Apache-2.0
#include "install/apply.h"

#include <memory>

#include "base/strings.h"
#include "domain/layout.h"
#include "install/units.h"
#include "rpc/json.h"

namespace expanse::install {
namespace {

constexpr Owner kRoot{0, 0};
constexpr Millis kServiceTimeout{60'000};

/// root, or whoever runs a recorded machine.
Owner SystemOwner(const platform::Fs& fs, const Site& site) {
  return fs.root().empty() ? kRoot : site.user.owner;
}

/// An error unless neither slurm.conf nor SLURM names our hooks.
Status CheckHooksUnused(const SlurmTools& tools, const platform::Fs& fs,
                        const std::string& slurm_conf, const std::string& hook_directory) {
  constexpr std::string_view kStay =
      "; the hook files stay, since SLURM would drain the node without them. When it no longer "
      "uses them (scontrol show config), run `expanse compute uninstall` to remove them";
  if (!slurm_conf.empty()) {
    const std::string text = fs.Read(slurm_conf, 16 << 20).value_or("");
    const auto unwired = Unwire(text, hook_directory);
    if (!unwired.ok() || *unwired != text)
      return Error(Code::kFailedPrecondition,
                   slurm_conf + " still names our hooks" + std::string(kStay));
  }
  const auto shown = tools.ShowConfig();
  if (!shown.ok()) return Error(shown.error().code(), shown.error().message() + std::string(kStay));
  if (const auto left = HooksInForce(*shown, hook_directory); !left.empty())
    return Error(Code::kFailedPrecondition,
                 "SLURM still uses " + Join(left, ", ") + std::string(kStay));
  return {};
}

Status PlaceHookFiles(const Site& site, const platform::Fs& fs, Transaction* transaction) {
  const Owner root = SystemOwner(fs, site);
  EXPANSE_CHECK_OK(transaction->MakeDirs(site.hook_directory, 0755, root));
  // Settings first: a hook that starts before they are there would write nothing.
  EXPANSE_CHECK_OK(
      transaction->WriteFile(site.hook_directory + "/hook.conf", HookConf(site), 0644, root));
  for (const auto key : kHookKeys)
    EXPANSE_CHECK_OK(transaction->WriteFile(site.hook_directory + "/" + HookFileOf(key),
                                            site.hook_bytes, 0755, root));
  if (site.hook_spool == domain::kVolatileHookSpool) {
    const std::string user = site.user.name;
    EXPANSE_CHECK_OK(transaction->WriteFile(std::string(domain::kTmpfilesConf),
                                            "# Written by `expanse compute install`.\nd " +
                                                site.hook_spool + " 0755 " + user + " " +
                                                std::to_string(site.user.owner.gid) + " -\n",
                                            0644, root));
  }
  // The sampler makes <node>/events below it, as the service account.
  return transaction->MakeDirs(site.hook_spool, 0755, site.user.owner);
}

}  // namespace

void PrintLines(const Machine& machine, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const auto line : Split(text, '\n')) machine.print(std::string(line));
}

Status PlaceHooks(const Site& site, Machine& machine, Transaction* transaction) {
  transaction->BeginHeld();
  const Status placed = PlaceHookFiles(site, machine.fs, transaction);
  transaction->EndHeld();
  // Also after a failure: slurm.conf may name the files that were made before it.
  const SlurmTools tools(machine, site.slurm_conf_path);
  transaction->Guard("place the hook files",
                     [tools, &fs = machine.fs, conf = site.slurm_conf_path,
                      directory = site.hook_directory]() -> Status {
                       return CheckHooksUnused(tools, fs, conf, directory);
                     });
  return placed;
}

Status PlaceShared(const Site& site, const platform::Fs& fs, Transaction* transaction) {
  const Owner root = SystemOwner(fs, site);
  const Owner user = site.user.owner;
  const std::string prefix = site.prefix + "/";
  EXPANSE_CHECK_OK(transaction->MakeDirs(site.prefix, 0755, user));
  EXPANSE_CHECK_OK(transaction->MakeDirs(prefix + "bin", 0755, root));
  EXPANSE_CHECK_OK(transaction->MakeDirs(prefix + "etc/nodes", 0755, root));
  EXPANSE_CHECK_OK(transaction->MakeDirs(prefix + std::string(domain::kSharedSpool), 0750, user));
  EXPANSE_CHECK_OK(transaction->WriteFile(prefix + std::string(domain::kSharedDaemon),
                                          site.daemon_bytes, 0755, root));
  EXPANSE_CHECK_OK(transaction->WriteFile(prefix + std::string(domain::kSharedHook),
                                          site.hook_bytes, 0755, root));
  data::v1::SamplerConfig config;
  config.set_hook_directory(ToUtf8(site.hook_directory));
  config.set_hook_spool(ToUtf8(site.hook_spool));
  config.set_slurm_conf(ToUtf8(site.slurm_conf_path));
  config.set_cluster(ToUtf8(site.cluster));
  for (const auto& [key, programs] : site.foreign) {
    for (const auto& program : programs) {
      auto* chained = config.add_chained();
      chained->set_key(key);
      chained->set_program(ToUtf8(program));
    }
  }
  EXPANSE_TRY(const std::string json, rpc::ToJson(config, true));
  EXPANSE_CHECK_OK(transaction->WriteFile(prefix + std::string(domain::kSharedSamplerConfig),
                                          json + "\n", 0644, root));
  return transaction->WriteFile(prefix + std::string(domain::kSharedSentinel),
                                "cluster=" + site.cluster + "\n", 0644, root);
}

Status WriteConfig(const Site& site, const data::v1::DaemonConfig& config,
                   Transaction* transaction) {
  EXPANSE_TRY(const std::string json, rpc::ToJson(config, true));
  const std::string directory = platform::DirName(site.config_path);
  EXPANSE_CHECK_OK(transaction->MakeDirs(directory, 0750, site.user.owner));
  // The directory may have been there, as somebody else's: the daemon needs a place of its own.
  EXPANSE_CHECK_OK(transaction->MakeDirs(directory + "/" + std::string(domain::kDaemonState), 0750,
                                         site.user.owner));
  return transaction->WriteFile(site.config_path, json + "\n", site.config_mode, site.user.owner);
}

Status WireHooks(const InstallOptions& options, const Site& site, Machine& machine,
                 Transaction* transaction) {
  if (site.wired_already) return {};
  if (!site.wire_now) {
    if (!site.hosts_without_hooks.empty()) {
      machine.print(
          "The hooks are not wired yet: SLURM drains a node whose Prolog is missing, and "
          "these hosts have no hook files: " +
          Join(site.hosts_without_hooks, ", "));
      machine.print(
          "Run on each: expanse compute install --type slurm --role sampler "
          "--shared-prefix " +
          ShellQuote(site.prefix));
      machine.print(
          "then here again with --reinstall --patch-slurm-conf=true. Until then jobs are "
          "captured from the scheduler's records alone.");
    } else {
      machine.print(
          "slurm.conf was left alone (--patch-slurm-conf is false). For exact peaks, when "
          "the hook files are on every node, have it say:");
      PrintLines(machine, DescribeWiring(site.conf, site.wiring));
    }
    return {};
  }
  const auto before = machine.fs.Stat(site.slurm_conf_path);
  if (!before.ok()) return before.error();
  const Owner owner{before->uid, before->gid};
  const mode_t mode = before->mode & 07777;
  const std::string backup = site.slurm_conf_path + ".before-expanse";
  transaction->BeginHeld();  // it is what an operator needs when slurm.conf cannot be restored
  const Status backed_up = transaction->WriteFile(backup, site.conf.text, mode, owner);
  transaction->EndHeld();
  if (!backed_up.ok()) return backed_up;

  const SlurmTools tools(machine, site.slurm_conf_path);
  auto reconfigured = std::make_shared<bool>(false);
  // Registered before the file is written, so that it runs after the file was restored.
  transaction->Guard("prepare to reconfigure", [tools, reconfigured]() -> Status {
    return *reconfigured ? tools.Reconfigure() : Status{};
  });
  // A file that is a link (site configuration management) is edited where it lies.
  EXPANSE_TRY(const std::string real, machine.fs.RealPath(site.slurm_conf_path));
  EXPANSE_CHECK_OK(transaction->WriteFile(real, Wire(site.conf, site.wiring), mode, owner));
  if (!options.reconfigure) {
    machine.print("Now run: scontrol reconfigure");
    return {};
  }
  *reconfigured = true;
  EXPANSE_CHECK_OK(tools.Reconfigure());
  EXPANSE_TRY(const auto shown, tools.ShowConfig());
  for (const auto& key : site.wiring.keys) {
    const auto value = shown.find(key);
    if (value == shown.end() || value->second != site.hook_directory + "/" + HookFileOf(key))
      return Error(Code::kFailedPrecondition,
                   "after `scontrol reconfigure` SLURM does not use our " + key + "; is " +
                       site.slurm_conf_path + " the file that slurmctld reads?");
  }
  return {};
}

Status Systemctl(Machine& machine, std::vector<std::string> words) {
  platform::ProcessSpec spec;
  spec.argv = {"systemctl"};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.env["PATH"] = "/usr/bin:/bin:/usr/sbin:/sbin";
  spec.timeout = kServiceTimeout;
  EXPANSE_TRY(const auto run, machine.runner.Run(spec));
  if (run.exit_code == 0) return {};
  return Error(Code::kFailedPrecondition,
               "`" + Join(spec.argv, " ") + "` failed: " + EscapeForTerminal(Trim(run.err)));
}

Status StartService(const InstallOptions& options, const Site& site, const std::string& name,
                    const std::string& unit, Machine& machine, Transaction* transaction) {
  if (!options.systemd || !site.systemd_running) {
    machine.print(options.systemd ? "systemd does not run here; start the program some other way. "
                                    "Its unit would be:"
                                  : "Unit " + name + " (not installed, --systemd=false):");
    PrintLines(machine, unit);
    return {};
  }
  const std::string path = std::string(kUnitDirectory) + "/" + name;
  EXPANSE_CHECK_OK(transaction->WriteFile(path, unit, 0644, SystemOwner(machine.fs, site)));
  transaction->Did("start " + name, [&machine, name]() -> Status {
    (void)Systemctl(machine, {"disable", "--now", name});
    return {};
  });
  EXPANSE_CHECK_OK(Systemctl(machine, {"daemon-reload"}));
  EXPANSE_CHECK_OK(Systemctl(machine, {"enable", name}));
  return Systemctl(machine, {"restart", name});
}

}  // namespace expanse::install
