// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"
#include "collect/host/cgroup_versions.h"

namespace expanse::collect::host {
namespace {

// "Unlimited" is the largest page-aligned number (kernel: PAGE_COUNTER_MAX * PAGE_SIZE).
constexpr int64_t kUnlimited = int64_t{1} << 62;

class CgroupV1Reader final : public CgroupReader {
 public:
  CgroupV1Reader(const platform::Fs& fs, std::string node) : fs_(fs), node_(std::move(node)) {
    const std::string mount = "/sys/fs/cgroup";
    memory_ = mount + "/memory";
    cpuacct_ = mount + "/cpuacct";
    if (!fs_.Exists(cpuacct_)) cpuacct_ = mount + "/cpu,cpuacct";
  }

  int version() const override { return 1; }

  Result<std::vector<CgroupUnit>> List() const override {
    // A site that constrains only CPUs has no jobs below memory, and the other way round.
    std::set<CgroupUnit> units;
    for (const auto& controller : {memory_, cpuacct_}) {
      for (const std::string& top : {"/slurm_" + node_, std::string("/slurm")})
        ListUsers(controller, top, &units);
    }
    return std::vector<CgroupUnit>(units.begin(), units.end());
  }

  CgroupUsage Read(const CgroupUnit& unit) const override {
    CgroupUsage usage;
    const std::string memory = memory_ + unit.path;
    usage.usage = ReadCount(fs_, memory + "/memory.usage_in_bytes");
    usage.peak = ReadCount(fs_, memory + "/memory.max_usage_in_bytes");
    usage.limit = ReadCount(fs_, memory + "/memory.limit_in_bytes");
    if (usage.limit && *usage.limit >= kUnlimited) usage.limit.reset();
    usage.limit_hits = ReadCount(fs_, memory + "/memory.failcnt");
    const std::string stat = ReadText(fs_, memory + "/memory.stat");
    usage.anon = KeyedCount(stat, "total_rss");
    usage.shmem = KeyedCount(stat, "total_shmem");
    usage.file = KeyedCount(stat, "total_cache");
    usage.reclaimable = Reclaimable(
        Sum(KeyedCount(stat, "total_inactive_file"), KeyedCount(stat, "total_active_file")),
        usage.file, usage.shmem);
    usage.cpu_ns = ReadCount(fs_, cpuacct_ + unit.path + "/cpuacct.usage");
    if (!unit.step_id.empty()) ReadTasks(unit, &usage);
    return usage;
  }

 private:
  void ListUsers(const std::string& controller, const std::string& top,
                 std::set<CgroupUnit>* units) const {
    const auto users = fs_.List(controller + top);
    if (!users.ok()) return;
    for (const auto& user : *users) {
      const auto uid = DigitsAfter(user, "uid_");
      if (!uid) continue;
      const std::string user_path = top + "/" + user;
      const auto jobs = fs_.List(controller + user_path);
      if (!jobs.ok()) continue;
      for (const auto& job : *jobs) {
        const auto id = DigitsAfter(job, "job_");
        if (!id) continue;
        CgroupUnit unit;
        unit.job_id = *id;
        unit.uid = static_cast<uid_t>(ParseInt64(*uid).value_or(0));
        unit.path = user_path + "/" + job;
        units->insert(unit);
        ListSteps(controller, unit, units);
      }
    }
  }

  void ListSteps(const std::string& controller, const CgroupUnit& job,
                 std::set<CgroupUnit>* units) const {
    const auto steps = fs_.List(controller + job.path);
    if (!steps.ok()) return;
    for (const auto& step : *steps) {
      if (!step.starts_with("step_")) continue;
      CgroupUnit unit = job;
      unit.step_id = step.substr(5);
      unit.path = job.path + "/" + step;
      units->insert(unit);
    }
  }

  /// Processes and kills are counted in the tasks' cgroups (memory.oom_control is not
  /// hierarchical).
  void ReadTasks(const CgroupUnit& unit, CgroupUsage* usage) const {
    for (const auto& controller : {memory_, cpuacct_}) {
      const std::string step = controller + unit.path;
      const auto names = fs_.List(step);
      if (!names.ok()) continue;
      std::vector<std::string> directories{step};
      for (const auto& name : *names)
        if (name.starts_with("task_")) directories.push_back(step + "/" + name);
      for (const auto& directory : directories) {
        if (const auto n = CountLines(fs_, directory + "/cgroup.procs"))
          usage->processes = usage->processes.value_or(0) + *n;
        const auto kills = KeyedCount(ReadText(fs_, directory + "/memory.oom_control"), "oom_kill");
        if (kills) usage->oom_kills = usage->oom_kills.value_or(0) + *kills;
      }
      return;
    }
  }

  const platform::Fs& fs_;
  std::string node_;
  std::string memory_;
  std::string cpuacct_;
};

}  // namespace

std::unique_ptr<CgroupReader> NewCgroupV1Reader(const platform::Fs& fs, std::string node) {
  return std::make_unique<CgroupV1Reader>(fs, std::move(node));
}

}  // namespace expanse::collect::host
