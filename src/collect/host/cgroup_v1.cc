// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include <unistd.h>

#include "base/strings.h"
#include "collect/host/cgroup_tree.h"
#include "collect/host/cgroup_versions.h"
#include "collect/host/polled_file.h"

namespace expanse::collect::host {
namespace {

// "Unlimited" is the largest page-aligned number (kernel: PAGE_COUNTER_MAX * PAGE_SIZE).
constexpr int64_t kUnlimited = int64_t{1} << 62;
constexpr std::string_view kMount = "/sys/fs/cgroup/";

bool IsUser(std::string_view name) { return DigitsAfter(name, "uid_").has_value(); }
bool IsJob(std::string_view name) { return DigitsAfter(name, "job_").has_value(); }
bool IsStep(std::string_view name) { return name.starts_with("step_"); }
bool IsTask(std::string_view name) { return name.starts_with("task_"); }

/// What is kept of one cgroup between readings.
struct UnitFiles {
  PolledFile usage, peak, limit, failcnt, stat, kernel;
  PolledFile cpu_total, cpu_stat, quota, blkio;
  CgroupUsage last;                      // for what is not read again while usage stays the same
  CgroupDirectory memory;                // its tasks, by the memory controller
  std::map<std::string, int64_t> kills;  // by task, also of those gone; "": the step itself
};

class CgroupV1Reader final : public CgroupReader {
 public:
  CgroupV1Reader(const platform::Fs& fs, std::string node)
      : fs_(fs), pool_(fs), node_(std::move(node)) {
    memory_ = Mounted({"memory"});
    cpuacct_ = Mounted({"cpuacct", "cpu,cpuacct", "cpuacct,cpu"});
    cpu_ = Mounted({"cpu", "cpu,cpuacct", "cpuacct,cpu"});
    blkio_ = Mounted({"blkio"});
    freezer_ = Mounted({"freezer"});
    tops_ = {"/slurm_" + node_, "/slurm"};
    const long ticks = ::sysconf(_SC_CLK_TCK);
    if (ticks > 0) tick_ns_ = 1'000'000'000 / ticks;
  }

  int version() const override { return 1; }
  const std::vector<CgroupUnit>& units() const override { return units_; }

  Status Refresh() override {
    // A site that constrains only CPUs has no jobs below memory, and the other way round. Which
    // controller SLURM uses may change when it is configured anew, so that it is looked up again.
    const bool force = pool_.TakeGone() || refreshes_++ % kListAll == 0;
    if (force || top_.path.empty()) ChooseTop();
    if (top_.path.empty()) {
      units_.clear();
      files_.clear();
      return {};
    }
    static constexpr std::array<AcceptName, 3> kLevels = {IsUser, IsJob, IsStep};
    if (RefreshTree(fs_, kLevels, force, &top_)) RebuildUnits();
    return {};
  }

  CgroupUsage Read(const CgroupUnit& unit, Depth depth) override {
    UnitFiles& f = files_[unit.path];
    CgroupUsage now;
    now.is_all = depth == Depth::kAll;
    ReadMemory(unit, depth, &f, &now);
    now.cpu_ns = pool_.ReadCount(&f.cpu_total, cpuacct_ + unit.path, "cpuacct.usage");
    const bool is_near = IsNearLimit(now.peak, now.limit ? now.limit : f.last.limit);
    if (depth == Depth::kAll || is_near) ReadKills(unit, &f, &now);
    if (depth == Depth::kAll) ReadSlow(unit, &f, &now);
    // Of a cgroup that is not there nothing is kept.
    if (!now.usage && !now.cpu_ns) files_.erase(unit.path);
    return now;
  }

  std::vector<int32_t> Processes(const CgroupUnit& unit) const override {
    for (const std::string& controller : {freezer_, memory_, cpuacct_}) {
      if (controller.empty()) continue;
      const std::string step = controller + unit.path;
      const auto names = fs_.List(step);
      if (!names.ok()) continue;
      std::vector<int32_t> pids;
      bool has_tasks = false;
      for (const std::string& name : *names) {
        if (!IsTask(name)) continue;
        has_tasks = true;
        Append(step + "/" + name, &pids);
      }
      // The step's own list holds the step daemon beside its tasks, or the work itself where a
      // controller has no cgroup for each task (freezer).
      if (!has_tasks) Append(step, &pids);
      return pids;
    }
    return {};
  }

  std::string UnitOf(std::string_view proc_cgroup) const override {
    std::string best;
    while (!proc_cgroup.empty()) {
      const auto fields = Split(TakeLine(&proc_cgroup), ':');
      if (fields.size() != 3 || fields[1].empty()) continue;
      for (const std::string& top : tops_) {
        const size_t at = fields[2].find(top + "/uid_");
        if (at == std::string_view::npos) continue;
        std::string path = CutAfterStep(fields[2].substr(at));
        if (path.size() > best.size()) best = std::move(path);
      }
    }
    return best;
  }

 private:
  static constexpr uint64_t kListAll = 16;  // refreshes between two that list every directory

  std::string Mounted(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      std::string path = std::string(kMount) + std::string(name);
      if (fs_.Exists(path)) return path;
    }
    return "";
  }

  void ChooseTop() {
    for (const std::string& top : tops_) {
      for (const std::string& controller : {memory_, cpuacct_}) {
        if (controller.empty() || !fs_.Exists(controller + top)) continue;
        if (top_.path != controller + top) {
          top_ = CgroupDirectory{};
          top_.path = controller + top;
          top_name_ = top;
        }
        return;
      }
    }
    top_ = CgroupDirectory{};
  }

  void RebuildUnits() {
    units_.clear();
    for (const auto& [user, user_dir] : top_.children) {
      const auto uid = ParseInt64(*DigitsAfter(user, "uid_"));
      for (const auto& [job, job_dir] : user_dir.children) {
        CgroupUnit unit;
        unit.job_id = *DigitsAfter(job, "job_");
        if (uid) unit.uid = static_cast<uid_t>(*uid);
        unit.path = top_name_ + "/" + user + "/" + job;
        units_.push_back(unit);
        for (const auto& [step, step_dir] : job_dir.children) {
          CgroupUnit below = unit;
          below.step_id = step.substr(5);
          below.path += "/" + step;
          units_.push_back(std::move(below));
        }
      }
    }
    std::unordered_map<std::string, UnitFiles> kept;
    for (const CgroupUnit& unit : units_)
      if (auto node = files_.extract(unit.path)) kept.insert(std::move(node));
    files_ = std::move(kept);
  }

  void ReadMemory(const CgroupUnit& unit, Depth depth, UnitFiles* f, CgroupUsage* now) {
    if (memory_.empty()) return;
    const std::string memory = memory_ + unit.path;
    now->usage = pool_.ReadCount(&f->usage, memory, "memory.usage_in_bytes");
    now->peak = pool_.ReadCount(&f->peak, memory, "memory.max_usage_in_bytes");
    // The parts cost most: they are added up over every cgroup below and every CPU. A job's are its
    // steps'.
    if (depth != Depth::kAll && unit.step_id.empty()) return;
    if (depth != Depth::kAll && now->usage == f->last.usage && f->last.anon) {
      now->anon = f->last.anon;
      now->shmem = f->last.shmem;
      now->file = f->last.file;
      now->reclaimable = f->last.reclaimable;
      return;
    }
    std::optional<int64_t> inactive;
    std::optional<int64_t> active;
    std::optional<int64_t> swap;
    ReadKeyed(pool_.Read(&f->stat, memory, "memory.stat").value_or(std::string_view()),
              {{"total_rss", &now->anon},
               {"total_shmem", &now->shmem},
               {"total_cache", &now->file},
               {"total_inactive_file", &inactive},
               {"total_active_file", &active},
               {"total_swap", &swap}});
    now->reclaimable = Reclaimable(Sum(inactive, active), now->file, now->shmem);
    if (depth == Depth::kAll) now->swap = swap;
    now->limit = f->last.limit;
    f->last = *now;
    now->limit.reset();
  }

  void ReadKills(const CgroupUnit& unit, UnitFiles* f, CgroupUsage* now) {
    if (memory_.empty()) return;
    const std::string memory = memory_ + unit.path;
    now->limit_hits = pool_.ReadCount(&f->failcnt, memory, "memory.failcnt");
    if (unit.step_id.empty()) return;
    // memory.oom_control is not hierarchical: a kill counts in the victim's cgroup.
    static constexpr std::array<AcceptName, 1> kLevels = {IsTask};
    f->memory.path = memory;
    // Listed anew each time: one that came for one that went leaves the number of links as it was.
    RefreshTree(fs_, kLevels, true, &f->memory);
    // A task takes its count with it when it goes: what was seen of it stays in the sum.
    const auto see = [&](const std::string& name, const std::string& directory) {
      const auto kills = KeyedCount(ReadText(fs_, directory + "/memory.oom_control"), "oom_kill");
      if (!kills) return;
      int64_t& most = f->kills.try_emplace(name, *kills).first->second;
      most = std::max(most, *kills);
    };
    see("", memory);
    for (const auto& [name, task] : f->memory.children) see(name, task.path);
    for (const auto& [name, kills] : f->kills) now->oom_kills = now->oom_kills.value_or(0) + kills;
  }

  void ReadSlow(const CgroupUnit& unit, UnitFiles* f, CgroupUsage* now) {
    if (!memory_.empty()) {
      const std::string memory = memory_ + unit.path;
      now->limit = pool_.ReadCount(&f->limit, memory, "memory.limit_in_bytes");
      if (now->limit && *now->limit >= kUnlimited) now->limit.reset();
      f->last.limit = now->limit;
      now->kernel = pool_.ReadCount(&f->kernel, memory, "memory.kmem.usage_in_bytes");
    }
    std::optional<int64_t> user;
    std::optional<int64_t> system;
    ReadKeyed(pool_.Read(&f->cpu_stat, cpuacct_ + unit.path, "cpuacct.stat").value_or(""),
              {{"user", &user}, {"system", &system}});
    now->cpu_user_ns = Times(user, tick_ns_);
    now->cpu_system_ns = Times(system, tick_ns_);
    // SLURM makes no cgroups below these two; a site's own configuration may.
    if (!cpu_.empty())
      now->throttled_ns = KeyedCount(
          pool_.Read(&f->quota, cpu_ + unit.path, "cpu.stat").value_or(""), "throttled_time");
    if (blkio_.empty()) return;
    const auto io = pool_.Read(&f->blkio, blkio_ + unit.path, "blkio.throttle.io_service_bytes");
    if (io) now->io = ParseBlkio(*io);
  }

  void Append(const std::string& directory, std::vector<int32_t>* pids) const {
    constexpr size_t kMaxBytes = 4 << 20;
    const auto text = fs_.Read(directory + "/cgroup.procs", kMaxBytes);
    if (!text.ok()) return;
    const auto more = ParsePids(*text);
    pids->insert(pids->end(), more.begin(), more.end());
  }

  const platform::Fs& fs_;
  FilePool pool_;
  std::string node_;
  std::string memory_;
  std::string cpuacct_;
  std::string cpu_;
  std::string blkio_;
  std::string freezer_;
  std::vector<std::string> tops_;
  std::string top_name_;
  CgroupDirectory top_;
  std::vector<CgroupUnit> units_;
  std::unordered_map<std::string, UnitFiles> files_;
  uint64_t refreshes_ = 0;
  int64_t tick_ns_ = 10'000'000;
};

}  // namespace

std::unique_ptr<CgroupReader> NewCgroupV1Reader(const platform::Fs& fs, std::string node) {
  return std::make_unique<CgroupV1Reader>(fs, std::move(node));
}

}  // namespace expanse::collect::host
