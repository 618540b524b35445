// SPDX-License-Identifier: Apache-2.0
// What the facts of hooks and cgroups say, in the contract's types.
#pragma once

#include <optional>
#include <string>

#include "collect/hook/event.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::host {

/// A memory peak in its two numbers.
struct MemoryPeak {
  expanse::common::v1::MeasuredInt64 enforced;  // no value when the kernel has none
  expanse::common::v1::MeasuredInt64 need;
};

/// What is known of a cgroup's memory at one time, from a hook or from the sampler.
struct PeakInput {
  std::optional<int64_t> peak;       // the kernel's, since the cgroup's creation
  std::optional<int64_t> cache_now;  // reclaimable now
  std::optional<int64_t> usage_now;
  std::optional<int64_t> need_floor;  // the largest sampled need
  std::optional<int64_t> cache_seen;  // the largest sampled reclaimable cache
  std::optional<int64_t> cache_most;  // no more than this was ever read or written
  std::optional<int64_t> limit;       // absent: none
  std::optional<int64_t> limit_hits;  // times the limit was reached; newer v1 kernels count none
  std::optional<int64_t> oom_kills;   // absent: not counted here (a job's cgroup on v1)
  bool ended = false;                 // nothing more will be charged
};

/// enforced: the kernel's peak; a floor when a process was killed for memory (it wanted more) or
/// the cgroup lives on; also when the limit was reached and kills are not counted here.
/// need: between the enforced peak less the page cache it can have held and the enforced peak. A
/// page becomes cache when it is read from storage or dirtied, so that the bytes read and written
/// bound it; where those are not known, the most that was charged at the end or sampled does (cache
/// goes with its file, so that the end alone says little). Exact when the two are within 1 % or
/// 1 MiB; else the lower end, or the largest sampled need, as a floor.
MemoryPeak MeasureMemory(const PeakInput& input);

/// What was seen of a unit's memory while it lived.
struct MemorySeen {
  std::optional<int64_t> need{};        // largest sampled need
  std::optional<int64_t> cache{};       // largest sampled reclaimable cache
  std::optional<int64_t> cache_most{};  // bytes read and written, when all of them are known
};

/// What the node knows beside one event.
struct EventContext {
  MemorySeen step{};
  MemorySeen job{};
  bool job_killed = false;  // some step of the job had a process killed for memory
  bool step_ended = false;  // the event is of the last task of its step on this node
};

/// TaskProlog and TaskEpilog: they run as the job's user, with the user's environment.
bool IsTaskKind(hook::HookKind kind);

/// How many tasks the event's step has on its node; nothing when the event does not tell.
std::optional<int64_t> TasksOnNode(const hook::HookEvent& event);

/// The facts of one event.
data::v1::Record FactsOfEvent(const hook::HookEvent& event, const std::string& node,
                              const EventContext& context);

/// Sets value, bound and reason.
void SetMeasured(std::optional<double> value, bool exact, const std::string& reason,
                 expanse::common::v1::MeasuredDouble* out);

}  // namespace expanse::collect::host
