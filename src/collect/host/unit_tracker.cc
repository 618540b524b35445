// SPDX-License-Identifier: Apache-2.0
#include "collect/host/unit_tracker.h"

#include <algorithm>

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

}  // namespace

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
  t.unit = unit;
  t.last_seen = now;
  UpdateCores(usage, mono, &t);
  CgroupUsage& last = t.last;
  Keep(usage.usage, &last.usage);
  KeepLargest(usage.peak, &last.peak);
  last.limit = usage.limit;
  Keep(usage.anon, &last.anon);
  Keep(usage.shmem, &last.shmem);
  Keep(usage.file, &last.file);
  Keep(usage.reclaimable, &last.reclaimable);
  Keep(usage.limit_hits, &last.limit_hits);
  // A task's cgroup takes its count of kills with it when it goes (v1).
  KeepLargest(usage.oom_kills, &last.oom_kills);
  Keep(usage.cpu_ns, &last.cpu_ns);
  Keep(usage.processes, &last.processes);
  KeepLargest(usage.Need(), &t.need_peak);
  return &t;
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

std::optional<int64_t> UnitTracker::NeedPeak(const std::string& job_id,
                                             const std::string& step_id) const {
  for (const auto& [path, t] : units_)
    if (t.unit.job_id == job_id && t.unit.step_id == step_id) return t.need_peak;
  return std::nullopt;
}

size_t UnitTracker::alive() const {
  return static_cast<size_t>(std::count_if(
      units_.begin(), units_.end(), [](const auto& entry) { return !entry.second.gone_since; }));
}

void SetCgroupFacts(const TrackedUnit& tracked, const std::string& node,
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
}

}  // namespace expanse::collect::host
