// SPDX-License-Identifier: Apache-2.0
#include "install/site.h"

#include <array>

#include "base/strings.h"
#include "domain/layout.h"

namespace expanse::install {

Result<Account> FindAccount(const platform::Fs& fs, const std::string& name) {
  EXPANSE_TRY(const std::string passwd, fs.Read("/etc/passwd"));
  for (const auto line : Split(passwd, '\n')) {
    const auto fields = Split(line, ':');
    if (fields.size() < 6 || fields[0] != name) continue;
    const auto uid = ParseInt64(fields[2]);
    const auto gid = ParseInt64(fields[3]);
    if (!uid || !gid) break;
    Account account;
    account.name = name;
    account.owner = {static_cast<uid_t>(*uid), static_cast<gid_t>(*gid)};
    account.home = std::string(fields[5]);
    return account;
  }
  return Error(Code::kFailedPrecondition,
               "the OS account \"" + name +
                   "\" does not exist here; create it with the same UID and GID on every node, or "
                   "name another with --user");
}

std::string HostName(const platform::Fs& fs) {
  return std::string(Trim(fs.Read("/proc/sys/kernel/hostname", 4096).value_or("")));
}

bool SameHost(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

std::string FileSystemOf(const platform::Fs& fs, const std::string& path) {
  std::string existing = path;
  while (existing.size() > 1 && !fs.Exists(existing)) existing = platform::DirName(existing);
  if (const auto real = fs.RealPath(existing); real.ok()) existing = *real;
  const std::string mounts = fs.Read("/proc/self/mountinfo", 16 << 20).value_or("");
  std::string type;
  size_t longest = 0;
  for (const auto line : Split(mounts, '\n')) {
    // proc(5): id parent major:minor root mount-point options [tags] - type source options
    const auto dash = line.find(" - ");
    const auto fields = Split(line.substr(0, dash), ' ');
    if (dash == std::string_view::npos || fields.size() < 5) continue;
    const auto mount = fields[4];
    const bool holds = mount == "/" || existing == mount ||
                       (existing.starts_with(mount) && existing[mount.size()] == '/');
    if (!holds || mount.size() < longest) continue;
    longest = mount.size();
    type = std::string(Split(line.substr(dash + 3), ' ')[0]);
  }
  return type;
}

bool IsNetworkFileSystem(std::string_view type) {
  static constexpr std::array<std::string_view, 18> kNetwork{
      "nfs", "nfs4", "lustre", "gpfs",       "cifs",  "smb3",   "beegfs",   "ceph",  "glusterfs",
      "afs", "9p",   "pvfs2",  "fuse.sshfs", "panfs", "wekafs", "virtiofs", "ocfs2", "gfs2"};
  for (const auto known : kNetwork)
    if (type == known) return true;
  return type.starts_with("fuse.") && type != "fuse.fuse-overlayfs";
}

void SetHookPlaces(const Machine& machine, Site* site) {
  site->hook_directory = std::string(domain::kHookDirectory);
  const auto chosen = machine.environment.find("EXPANSE_HOOK_DIR");
  if (chosen != machine.environment.end() && !chosen->second.empty())
    site->hook_directory = chosen->second;
  site->hook_spool = platform::DirName(site->hook_directory) + "/hook-spool";
  // In memory where the host has /run there: events live for a second, and ext4 shuns the inodes
  // of files deleted in the last 5 s, which costs a busy node's hooks 0.4 ms each.
  const bool chosen_place = chosen != machine.environment.end() && !chosen->second.empty();
  if (!chosen_place && site->systemd_running && FileSystemOf(machine.fs, "/run") == "tmpfs")
    site->hook_spool = std::string(domain::kVolatileHookSpool);
}

Result<std::string> ConfigPath(const std::string& option, const std::string& home) {
  if (!option.empty()) {
    if (!option.starts_with('/'))
      return Error(Code::kInvalidArgument, "--config " + option + ": give an absolute path");
    return option;
  }
  if (home.empty() || home == "/" || home.starts_with("/nonexistent"))
    return Error(Code::kFailedPrecondition,
                 "the account has no home directory; say with --config where its credential lies");
  return home + "/.expanse/config.json";
}

Status RequireRoot(const Machine& machine) {
  if (machine.effective_uid == 0 || !machine.fs.root().empty()) return {};
  return Error(Code::kPermissionDenied,
               "installing on a cluster changes system paths: rerun with sudo (and pass the token "
               "on: sudo --preserve-env=EXPANSE_INSTALL_TOKEN ...)");
}

std::vector<std::string> DescribePlan(const InstallOptions& options, const Site& site) {
  std::vector<std::string> plan;
  const auto add = [&plan](std::string line) { plan.push_back("  " + std::move(line)); };
  plan.emplace_back("Plan:");
  if (options.role == Role::kController) {
    add("account      " + site.user.name + " (uid " + std::to_string(site.user.owner.uid) + ")");
    add("credential   " + site.config_path + " (0640)");
    add("daemon       " + site.prefix + "/" + std::string(domain::kSharedDaemon));
  }
  add("hooks        " + site.hook_directory + " (node-local)");
  add("hook spool   " + site.hook_spool + " (node-local)");
  if (options.role == Role::kController) {
    if (site.wired_already) {
      add("slurm.conf   names our hooks already");
    } else if (site.wire_now) {
      add("slurm.conf   " + site.slurm_conf_path + " (backup beside it):");
      const std::string wiring = DescribeWiring(site.conf, site.wiring);
      for (const auto line : Split(Trim(wiring), '\n')) add("  " + std::string(Trim(line)));
      for (const auto& [key, programs] : site.foreign)
        for (const auto& program : programs)
          add("chained      " + program + " runs before our " + key +
              " and its exit status counts");
    } else {
      add("slurm.conf   is not changed");
    }
    const bool service = options.systemd && site.systemd_running;
    add(service ? "service      expanse-daemon.service" : "service      none; the unit is printed");
  } else {
    const bool service = options.systemd && site.systemd_running;
    add(service ? "service      expanse-sampler.service"
                : "service      none; the unit is printed");
  }
  return plan;
}

}  // namespace expanse::install
