// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"
#include "collect/host/cgroup_versions.h"

namespace expanse::collect::host {
namespace {

constexpr std::string_view kMount = "/sys/fs/cgroup";
constexpr std::string_view kScope = "slurmstepd.scope";

/// "s" and 13 characters of Crockford base32 (SLURM 26.05 names job directories so).
bool IsSluid(std::string_view name) {
  if (name.size() != 14 || name[0] != 's') return false;
  return name.substr(1).find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ") ==
         std::string_view::npos;
}

class CgroupV2Reader final : public CgroupReader {
 public:
  CgroupV2Reader(const platform::Fs& fs, std::string node) : fs_(fs), node_(std::move(node)) {}

  int version() const override { return 2; }

  Result<std::vector<CgroupUnit>> List() const override {
    std::vector<CgroupUnit> units;
    for (const auto& scope : Scopes()) {
      const auto jobs = fs_.List(std::string(kMount) + scope);
      if (!jobs.ok()) continue;
      for (const auto& name : *jobs) {
        CgroupUnit unit;
        if (const auto id = DigitsAfter(name, "job_")) {
          unit.job_id = *id;
        } else if (IsSluid(name)) {
          unit.sluid = name;
        } else {
          continue;
        }
        unit.path = scope + "/" + name;
        units.push_back(unit);
        ListSteps(unit, &units);
      }
    }
    return units;
  }

  CgroupUsage Read(const CgroupUnit& unit) const override {
    CgroupUsage usage;
    const std::string whole = std::string(kMount) + unit.path;
    // Limit and peak of a step are those of step_S/user; beside it lies SLURM's own daemon.
    std::string limited = whole;
    if (!unit.step_id.empty() && fs_.Exists(whole + "/user")) limited = whole + "/user";
    usage.usage = ReadCount(fs_, limited + "/memory.current");
    usage.peak = ReadCount(fs_, limited + "/memory.peak");
    usage.limit = ReadCount(fs_, limited + "/memory.max");
    const std::string stat = ReadText(fs_, limited + "/memory.stat");
    usage.anon = KeyedCount(stat, "anon");
    usage.shmem = KeyedCount(stat, "shmem");
    usage.file = KeyedCount(stat, "file");
    usage.reclaimable =
        Reclaimable(Sum(KeyedCount(stat, "inactive_file"), KeyedCount(stat, "active_file")),
                    usage.file, usage.shmem);
    if (usage.reclaimable) *usage.reclaimable += KeyedCount(stat, "slab_reclaimable").value_or(0);
    usage.limit_hits = KeyedCount(ReadText(fs_, limited + "/memory.events"), "max");
    usage.oom_kills = KeyedCount(ReadText(fs_, whole + "/memory.events"), "oom_kill");
    if (const auto micros = KeyedCount(ReadText(fs_, limited + "/cpu.stat"), "usage_usec"))
      usage.cpu_ns = *micros * 1000;
    if (!unit.step_id.empty()) usage.processes = Processes(limited);
    return usage;
  }

 private:
  /// Of this node's step daemons: <slice>/<node>_slurmstepd.scope or <slice>/slurmstepd.scope.
  std::vector<std::string> Scopes() const {
    std::vector<std::string> scopes;
    const auto slices = fs_.List(std::string(kMount));
    if (!slices.ok()) return scopes;
    for (const auto& slice : *slices) {
      if (!slice.ends_with(".slice")) continue;
      for (const std::string& name : {node_ + "_" + std::string(kScope), std::string(kScope)}) {
        const std::string scope = "/" + slice + "/" + name;
        if (fs_.Exists(std::string(kMount) + scope)) scopes.push_back(scope);
      }
    }
    return scopes;
  }

  void ListSteps(const CgroupUnit& job, std::vector<CgroupUnit>* units) const {
    const auto steps = fs_.List(std::string(kMount) + job.path);
    if (!steps.ok()) return;
    for (const auto& step : *steps) {
      if (!step.starts_with("step_")) continue;
      CgroupUnit unit = job;
      unit.step_id = step.substr(5);
      unit.path = job.path + "/" + step;
      units->push_back(unit);
    }
  }

  /// pids.current needs a controller that SLURM does not enable by default.
  std::optional<int64_t> Processes(const std::string& user) const {
    if (const auto pids = ReadCount(fs_, user + "/pids.current")) return pids;
    std::optional<int64_t> total = CountLines(fs_, user + "/cgroup.procs");
    const auto names = fs_.List(user);
    if (!names.ok()) return total;
    for (const auto& name : *names) {
      if (!name.starts_with("task_")) continue;
      if (const auto n = CountLines(fs_, user + "/" + name + "/cgroup.procs"))
        total = total.value_or(0) + *n;
    }
    return total;
  }

  const platform::Fs& fs_;
  std::string node_;
};

}  // namespace

std::unique_ptr<CgroupReader> NewCgroupV2Reader(const platform::Fs& fs, std::string node) {
  return std::make_unique<CgroupV2Reader>(fs, std::move(node));
}

}  // namespace expanse::collect::host
