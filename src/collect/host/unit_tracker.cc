// SPDX-License-Identifier: Apache-2.0
#include "collect/host/unit_tracker.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "collect/host/event_facts.h"

namespace expanse::collect::host {
namespace {

template <typename T>
void Keep(const std::optional<T>& now, std::optional<T>* last) {
  if (now) *last = now;
}

template <typename T>
void KeepLargest(const std::optional<T>& now, std::optional<T>* largest) {
  if (now && (!*largest || **largest < *now)) *largest = now;
}

void UpdateCores(const CgroupUsage& usage, MonoTime mono, TrackedUnit* t) {
  t->cores_now.reset();
  if (!usage.cpu_ns) return;
  if (t->cpu_time && t->last.cpu_ns && mono > *t->cpu_time && *usage.cpu_ns >= *t->last.cpu_ns) {
    const std::chrono::duration<double, std::nano> elapsed = mono - *t->cpu_time;
    t->cores_now = static_cast<double>(*usage.cpu_ns - *t->last.cpu_ns) / elapsed.count();
    KeepLargest(t->cores_now, &t->cores_peak);
  }
  t->cpu_time = mono;
}

void KeepPressure(const Pressure& now, Pressure* last) {
  Keep(now.some_us, &last->some_us);
  Keep(now.full_us, &last->full_us);
}

void KeepNeed(const CgroupUsage& usage, WallTime now, TrackedUnit* t) {
  constexpr size_t kMost = 30;   // five minutes
  constexpr double kEvery = 10;  // seconds between two
  const auto need = usage.Need();
  if (!need) return;
  const double at = std::chrono::duration<double>(now - t->first_seen).count();
  if (!t->needs.empty() && at - t->needs.back().first < kEvery) return;
  if (t->needs.size() == kMost) t->needs.erase(t->needs.begin());
  t->needs.emplace_back(at, static_cast<double>(*need));
}

}  // namespace

std::optional<double> TrackedUnit::NeedSlope() const {
  constexpr double kLeastSeconds = 50;
  if (needs.empty() || needs.back().first - needs.front().first < kLeastSeconds)
    return std::nullopt;
  const auto n = static_cast<double>(needs.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const auto& [x, y] : needs) {
    mean_x += x / n;
    mean_y += y / n;
  }
  double xx = 0;
  double xy = 0;
  for (const auto& [x, y] : needs) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  return xx > 0 ? std::optional<double>(xy / xx) : std::nullopt;
}

TrackedUnit* UnitTracker::Update(const CgroupUnit& unit, const CgroupUsage& usage, WallTime now,
                                 MonoTime mono) {
  if (!usage.usage && !usage.peak && !usage.cpu_ns) return nullptr;
  auto [it, added] = units_.try_emplace(unit.path);
  // The same path after it was gone is the next attempt of a requeued job.
  if (!added && it->second.gone_since) it->second = TrackedUnit{};
  TrackedUnit& t = it->second;
  if (added || t.unit.path.empty()) {
    t.first_seen = now;
    t.reported = now;
  }
  if (t.unit != unit) t.unit = unit;  // a SLUID's job may become known later
  t.last_seen = now;
  UpdateCores(usage, mono, &t);
  CgroupUsage& last = t.last;
  Keep(usage.usage, &last.usage);
  KeepLargest(usage.peak, &last.peak);
  if (usage.is_all) last.limit = usage.limit;
  Keep(usage.anon, &last.anon);
  Keep(usage.shmem, &last.shmem);
  Keep(usage.file, &last.file);
  Keep(usage.reclaimable, &last.reclaimable);
  Keep(usage.limit_hits, &last.limit_hits);
  // v1 sums over tasks, of which one may not be readable now.
  KeepLargest(usage.oom_kills, &last.oom_kills);
  Keep(usage.cpu_ns, &last.cpu_ns);
  Keep(usage.kernel, &last.kernel);
  Keep(usage.swap, &last.swap);
  Keep(usage.cpu_user_ns, &last.cpu_user_ns);
  Keep(usage.cpu_system_ns, &last.cpu_system_ns);
  Keep(usage.throttled_ns, &last.throttled_ns);
  Keep(usage.threads, &last.threads);
  Keep(usage.io.read, &last.io.read);
  Keep(usage.io.written, &last.io.written);
  KeepPressure(usage.cpu_pressure, &last.cpu_pressure);
  KeepPressure(usage.memory_pressure, &last.memory_pressure);
  KeepPressure(usage.io_pressure, &last.io_pressure);
  KeepLargest(usage.Need(), &t.need_peak);
  KeepLargest(usage.reclaimable, &t.cache_peak);
  KeepNeed(usage, now, &t);
  return &t;
}

TrackedUnit* UnitTracker::Find(const std::string& path) {
  const auto found = units_.find(path);
  return found == units_.end() || found->second.gone_since ? nullptr : &found->second;
}

std::vector<TrackedUnit*> UnitTracker::MarkGone(WallTime now) {
  std::vector<TrackedUnit*> gone;
  for (auto& [path, t] : units_) {
    if (t.gone_since || t.last_seen == now) continue;
    t.gone_since = now;
    gone.push_back(&t);
  }
  return gone;
}

void UnitTracker::Forget(WallTime now, Millis keep) {
  std::erase_if(units_, [&](const auto& entry) {
    return entry.second.gone_since && now - *entry.second.gone_since > keep;
  });
}

TrackedUnit* UnitTracker::FindOf(const std::string& job_id, const std::string& step_id) {
  for (auto& [path, t] : units_)
    if (t.unit.job_id == job_id && t.unit.step_id == step_id) return &t;
  return nullptr;
}

size_t UnitTracker::alive() const {
  return static_cast<size_t>(std::count_if(
      units_.begin(), units_.end(), [](const auto& entry) { return !entry.second.gone_since; }));
}

namespace {

void SetBytes(std::optional<int64_t> bytes, const std::string& reason,
              expanse::common::v1::MeasuredInt64* out) {
  if (bytes) {
    out->set_value(*bytes);
    out->set_bound(reason.empty() ? expanse::common::v1::BOUND_EXACT
                                  : expanse::common::v1::BOUND_AT_LEAST);
  }
  out->set_reason(reason);
}

void SetProcesses(const TrackedUnit& tracked, const std::string& node,
                  expanse::common::v1::ExecutionStep* step) {
  constexpr size_t kMost = 64;
  static const double ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  std::vector<const Process*> busiest;
  for (const Process& process : tracked.processes.processes) busiest.push_back(&process);
  std::sort(busiest.begin(), busiest.end(), [](const Process* a, const Process* b) {
    return std::pair(-a->cpu_ticks, a->pid) < std::pair(-b->cpu_ticks, b->pid);
  });
  if (busiest.size() > kMost) busiest.resize(kMost);
  for (const Process* process : busiest) {
    auto* out = step->add_processes();
    out->set_node(node);
    out->set_pid(process->pid);
    out->set_parent_pid(process->parent);
    out->set_command(process->command);
    out->set_threads(process->threads);
    out->set_cpu_seconds(static_cast<double>(process->cpu_ticks) / ticks);
    out->set_resident_bytes(process->resident_bytes);
  }
}

}  // namespace

void SetCgroupFacts(const TrackedUnit& tracked, const StepIo& io, const std::string& node,
                    const expanse::common::v1::RunKey& key, data::v1::ExecutionFacts* facts) {
  *facts->mutable_key() = key;
  facts->set_origin(data::v1::FACT_ORIGIN_CGROUP);
  facts->set_step_id(tracked.unit.step_id);
  auto* execution = facts->mutable_execution();
  execution->set_source_type(key.source_type());

  PeakInput input;
  input.peak = tracked.last.peak;
  input.usage_now = tracked.last.usage;
  input.cache_now = tracked.last.reclaimable;
  input.need_floor = tracked.need_peak;
  input.cache_seen = tracked.cache_peak;
  input.limit = tracked.last.limit;
  input.limit_hits = tracked.last.limit_hits;
  input.oom_kills = tracked.last.oom_kills;
  const MemoryPeak peak = MeasureMemory(input);
  std::optional<double> cpu_seconds;
  if (tracked.last.cpu_ns) cpu_seconds = static_cast<double>(*tracked.last.cpu_ns) / 1e9;
  const std::string reason = "sampled once a second";

  const auto fill = [&](auto* out) {
    if (peak.enforced.has_value()) *out->mutable_memory_peak_enforced() = peak.enforced;
    if (peak.need.has_value()) *out->mutable_memory_need() = peak.need;
    if (cpu_seconds) SetMeasured(cpu_seconds, false, reason, out->mutable_cpu_seconds());
    if (tracked.last.oom_kills) out->set_oom_kills(*tracked.last.oom_kills);
  };
  if (tracked.unit.step_id.empty()) {
    fill(execution);
    if (tracked.cores_peak)
      SetMeasured(tracked.cores_peak, false, reason, execution->mutable_cpu_cores_used_peak());
    return;
  }
  auto* step = execution->add_steps();
  step->set_step_id(tracked.unit.step_id);
  step->add_nodes(node);
  fill(step);
  SetBytes(io.bytes.read, io.reason, step->mutable_io_read_bytes());
  SetBytes(io.bytes.written, io.reason, step->mutable_io_write_bytes());
  const StepProcesses& p = tracked.processes;
  const std::string reason_network = p.network.read              ? "sampled"
                                     : p.network_problem.empty() ? "no process was seen"
                                                                 : p.network_problem;
  SetBytes(p.network.read, reason_network, step->mutable_network_receive_bytes());
  SetBytes(p.network.written, reason_network, step->mutable_network_transmit_bytes());
  SetProcesses(tracked, node, step);
}

}  // namespace expanse::collect::host
