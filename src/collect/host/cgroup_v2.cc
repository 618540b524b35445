// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <unordered_map>

#include "base/strings.h"
#include "collect/host/cgroup_tree.h"
#include "collect/host/cgroup_versions.h"
#include "collect/host/polled_file.h"

namespace expanse::collect::host {
namespace {

constexpr std::string_view kMount = "/sys/fs/cgroup";
constexpr std::string_view kScope = "slurmstepd.scope";
constexpr int kMaxSlices = 3;  // depth of nested *.slice directories

bool IsJob(std::string_view name) { return IsSluid(name) || DigitsAfter(name, "job_").has_value(); }
bool IsStep(std::string_view name) { return name.starts_with("step_"); }

/// What is kept of one cgroup between readings.
struct UnitFiles {
  std::string limited;  // where limit and peak are: step_<s>/user, for a job the job itself
  PolledFile usage, peak, limit, stat, events, events_below, swap, cpu, io, pids;
  PolledFile cpu_pressure, memory_pressure, io_pressure;
  CgroupUsage last;
};

class CgroupV2Reader final : public CgroupReader {
 public:
  CgroupV2Reader(const platform::Fs& fs, std::string node)
      : fs_(fs), pool_(fs), node_(std::move(node)), own_scope_(node_ + "_" + std::string(kScope)) {}

  int version() const override { return 2; }
  const std::vector<CgroupUnit>& units() const override { return units_; }

  Status Refresh() override {
    const bool force = pool_.TakeGone() || refreshes_++ % kListAll == 0;
    bool changed = false;
    if (force || scopes_.empty()) changed = FindScopes();
    static constexpr std::array<AcceptName, 2> kLevels = {IsJob, IsStep};
    for (auto& [path, scope] : scopes_)
      changed = RefreshTree(fs_, kLevels, force, &scope) || changed;
    if (changed) RebuildUnits();
    return {};
  }

  CgroupUsage Read(const CgroupUnit& unit, Depth depth) override {
    UnitFiles& f = files_[unit.path];
    const std::string whole = std::string(kMount) + unit.path;
    if (f.limited.empty()) {
      f.limited = whole;
      // Beside user/ lies SLURM's own daemon. A step whose user/ is not made yet is looked at
      // again the next time.
      if (!unit.step_id.empty()) {
        if (!fs_.Exists(whole + "/user")) {
          files_.erase(unit.path);
          return {};
        }
        f.limited += "/user";
      }
    }
    CgroupUsage now;
    now.is_all = depth == Depth::kAll;
    ReadMemory(unit, depth, &f, &now);
    ReadCpu(depth, &f, &now);
    const bool is_near = IsNearLimit(now.peak, f.last.limit);
    if (depth == Depth::kAll || is_near) {
      const auto text = pool_.Read(&f.events, f.limited, "memory.events");
      if (text) ReadKeyed(*text, {{"max", &now.limit_hits}, {"oom_kill", &now.oom_kills}});
      if (f.limited != whole) {
        const auto below = pool_.Read(&f.events_below, whole, "memory.events");
        if (below) now.oom_kills = KeyedCount(*below, "oom_kill");
      }
    }
    if (depth == Depth::kAll) ReadSlow(&f, &now);
    if (!now.usage && !now.cpu_ns) files_.erase(unit.path);
    return now;
  }

  std::vector<int32_t> Processes(const CgroupUnit& unit) const override {
    std::vector<int32_t> pids;
    AppendBelow(std::string(kMount) + unit.path + "/user", 0, &pids);
    return pids;
  }

  std::string UnitOf(std::string_view proc_cgroup) const override {
    while (!proc_cgroup.empty()) {
      const std::string_view line = TakeLine(&proc_cgroup);
      if (!line.starts_with("0::")) continue;
      const std::string_view path = line.substr(3);
      for (const std::string_view scope : {std::string_view(own_scope_), kScope}) {
        const size_t at = path.find(std::string("/") + std::string(scope) + "/");
        if (at != std::string_view::npos) return CutAfterStep(path);
      }
    }
    return "";
  }

 private:
  static constexpr uint64_t kListAll = 16;  // refreshes between two that list every directory

  /// Of this node's step daemons: <node>_slurmstepd.scope where there is one (several daemons on a
  /// host, and Debian's), else slurmstepd.scope; below the mount or a slice.
  bool FindScopes() {
    std::map<std::string, CgroupDirectory> found;
    for (const std::string& name : {own_scope_, std::string(kScope)}) {
      FindScopes("", name, kMaxSlices, &found);
      if (!found.empty()) break;
    }
    bool changed = false;
    for (auto& [path, scope] : found) {
      const auto known = scopes_.find(path);
      changed = changed || known == scopes_.end();
      if (known != scopes_.end()) scope = std::move(known->second);
    }
    changed = changed || found.size() != scopes_.size();
    scopes_ = std::move(found);
    return changed;
  }

  void FindScopes(const std::string& below, const std::string& name, int depth,
                  std::map<std::string, CgroupDirectory>* found) const {
    const auto names = fs_.List(std::string(kMount) + below);
    if (!names.ok()) return;
    for (const std::string& entry : *names) {
      const std::string path = below + "/" + entry;
      if (entry == name) (*found)[path].path = std::string(kMount) + path;
      if (depth > 0 && entry.ends_with(".slice")) FindScopes(path, name, depth - 1, found);
    }
  }

  void RebuildUnits() {
    units_.clear();
    for (const auto& [scope, directory] : scopes_) {
      for (const auto& [name, job] : directory.children) {
        CgroupUnit unit;
        if (auto id = DigitsAfter(name, "job_"))
          unit.job_id = std::move(*id);
        else
          unit.sluid = name;
        unit.path = scope + "/" + name;
        units_.push_back(unit);
        for (const auto& [step, below] : job.children) {
          CgroupUnit of_step = unit;
          of_step.step_id = step.substr(5);
          of_step.path += "/" + step;
          units_.push_back(std::move(of_step));
        }
      }
    }
    std::unordered_map<std::string, UnitFiles> kept;
    for (const CgroupUnit& unit : units_)
      if (auto node = files_.extract(unit.path)) kept.insert(std::move(node));
    files_ = std::move(kept);
  }

  void ReadMemory(const CgroupUnit& unit, Depth depth, UnitFiles* f, CgroupUsage* now) {
    now->usage = pool_.ReadCount(&f->usage, f->limited, "memory.current");
    now->peak = pool_.ReadCount(&f->peak, f->limited, "memory.peak");
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
    std::optional<int64_t> slab;
    std::optional<int64_t> kernel;
    ReadKeyed(pool_.Read(&f->stat, f->limited, "memory.stat").value_or(std::string_view()),
              {{"anon", &now->anon},
               {"shmem", &now->shmem},
               {"file", &now->file},
               {"inactive_file", &inactive},
               {"active_file", &active},
               {"slab_reclaimable", &slab},
               {"kernel", &kernel}});
    now->reclaimable = Reclaimable(Sum(inactive, active), now->file, now->shmem);
    if (now->reclaimable) now->reclaimable = Sum(now->reclaimable, slab.value_or(0));
    if (depth == Depth::kAll) now->kernel = kernel;
    now->limit = f->last.limit;
    f->last = *now;
    now->limit.reset();
  }

  void ReadCpu(Depth depth, UnitFiles* f, CgroupUsage* now) {
    std::optional<int64_t> total;
    std::optional<int64_t> user;
    std::optional<int64_t> system;
    std::optional<int64_t> throttled;
    ReadKeyed(pool_.Read(&f->cpu, f->limited, "cpu.stat").value_or(std::string_view()),
              {{"usage_usec", &total},
               {"user_usec", &user},
               {"system_usec", &system},
               {"throttled_usec", &throttled}});
    now->cpu_ns = Times(total, 1000);
    if (depth != Depth::kAll) return;
    now->cpu_user_ns = Times(user, 1000);
    now->cpu_system_ns = Times(system, 1000);
    now->throttled_ns = Times(throttled, 1000);
  }

  void ReadSlow(UnitFiles* f, CgroupUsage* now) {
    const std::string& path = f->limited;
    now->limit = pool_.ReadCount(&f->limit, path, "memory.max");
    f->last.limit = now->limit;
    now->swap = pool_.ReadCount(&f->swap, path, "memory.swap.current");
    // These two need controllers that SLURM enables only with EnableExtraControllers (26.05).
    now->threads = pool_.ReadCount(&f->pids, path, "pids.current");
    if (const auto io = pool_.Read(&f->io, path, "io.stat")) now->io = ParseIoStat(*io);
    const auto pressure = [&](PolledFile* file, const char* name) {
      return ParsePressure(pool_.Read(file, path, name).value_or(std::string_view()));
    };
    now->cpu_pressure = pressure(&f->cpu_pressure, "cpu.pressure");
    now->memory_pressure = pressure(&f->memory_pressure, "memory.pressure");
    now->io_pressure = pressure(&f->io_pressure, "io.pressure");
  }

  void AppendBelow(const std::string& directory, int depth, std::vector<int32_t>* pids) const {
    constexpr size_t kMaxBytes = 4 << 20;
    constexpr int kMaxDepth = 4;  // a job may have cgroups of its own below its task's
    if (const auto text = fs_.Read(directory + "/cgroup.procs", kMaxBytes); text.ok()) {
      const auto more = ParsePids(*text);
      pids->insert(pids->end(), more.begin(), more.end());
    }
    if (depth >= kMaxDepth) return;
    const auto names = fs_.List(directory);
    if (!names.ok()) return;
    for (const std::string& name : *names)
      if (name.find('.') == std::string::npos) AppendBelow(directory + "/" + name, depth + 1, pids);
  }

  const platform::Fs& fs_;
  FilePool pool_;
  std::string node_;
  std::string own_scope_;
  std::map<std::string, CgroupDirectory> scopes_;  // by path below the mount
  std::vector<CgroupUnit> units_;
  std::unordered_map<std::string, UnitFiles> files_;
  uint64_t refreshes_ = 0;
};

}  // namespace

std::unique_ptr<CgroupReader> NewCgroupV2Reader(const platform::Fs& fs, std::string node) {
  return std::make_unique<CgroupV2Reader>(fs, std::move(node));
}

}  // namespace expanse::collect::host
