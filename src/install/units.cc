// SPDX-License-Identifier: Apache-2.0
#include "install/units.h"

#include "base/strings.h"
#include "domain/layout.h"

namespace expanse::install {
namespace {

std::string Daemon(const Site& site) {
  return site.prefix + "/" + std::string(domain::kSharedDaemon);
}

/// Python stack sampling needs CAP_SYS_PTRACE; CAP_SYS_ADMIN is an operator's drop-in.
std::string Service(const Site& site, const std::string& description, const std::string& after,
                    const std::string& command, const std::string& environment) {
  return "[Unit]\n"
         "Description=" +
         description +
         "\n"
         "Wants=network-online.target\n"
         "After=network-online.target " +
         after +
         "\n"
         "RequiresMountsFor=" +
         site.prefix +
         "\n"
         "\n"
         "[Service]\n"
         "User=" +
         site.user.name +
         "\n"
         "EnvironmentFile=-" +
         std::string(domain::kServiceEnvironment) + "\n" + environment + "ExecStart=" + command +
         "\n"
         "Restart=on-failure\n"
         "RestartSec=5\n"
         "AmbientCapabilities=CAP_SYS_PTRACE\n"
         "CapabilityBoundingSet=CAP_SYS_PTRACE\n"
         "NoNewPrivileges=yes\n"
         "\n"
         "[Install]\n"
         "WantedBy=multi-user.target\n";
}

}  // namespace

std::string ControllerUnit(const Site& site) {
  return Service(site, "Expanse daemon (SLURM controller)", "slurmctld.service",
                 Daemon(site) + " run --role controller --config " + site.config_path,
                 "Environment=EXPANSE_DAEMON_CONFIG=" + site.config_path +
                     "\nEnvironment=SLURM_CONF=" + site.slurm_conf_path + "\n");
}

std::string SamplerUnit(const Site& site) {
  return Service(site, "Expanse sampler (SLURM worker)", "slurmd.service",
                 Daemon(site) + " run --role sampler --shared-prefix " + site.prefix, "");
}

std::string HookConf(const Site& site) {
  std::string text =
      "# Written by `expanse compute install`. Read by the hook programs in this directory.\n"
      "spool = " +
      site.hook_spool + "\n";
  for (const auto& [key, programs] : site.foreign)
    for (const auto& program : programs)
      text += "chain." + HookFileOf(key) + " = " + program + "\n";
  return text;
}

std::string AddServiceEnvironment(const std::string& existing,
                                  const std::map<std::string, std::string>& environment) {
  std::string text = existing;
  bool changed = false;
  for (const std::string key : {"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "EXPANSE_CA_FILE"}) {
    const auto value = environment.find(key);
    if (value == environment.end() || value->second.empty()) continue;
    bool present = false;
    for (const auto line : Split(existing, '\n')) present = present || line.starts_with(key + "=");
    // A newline would add entries of its own.
    if (present || value->second.find('\n') != std::string::npos) continue;
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    text += key + "=" + value->second + "\n";
    changed = true;
  }
  return changed ? text : "";
}

}  // namespace expanse::install
