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
  std::optional<int64_t> limit;       // absent: none
  std::optional<int64_t> limit_hits;  // times the limit was reached; newer v1 kernels count none
  std::optional<int64_t> oom_kills;   // absent: not counted here (a job's cgroup on v1)
  bool ended = false;                 // nothing more will be charged
};

/// enforced: the kernel's peak; a floor when a process was killed for memory (it wanted more) or
/// the cgroup lives on; also when the limit was reached and kills are not counted here.
/// need: between the enforced peak less the cache charged now (page cache stays charged until the
/// limit is reached, so at the peak there was no more of it) and the enforced peak. Exact when the
/// two are within 1 % or 1 MiB; else the lower end, or the largest sampled need, as a floor.
MemoryPeak MeasureMemory(const PeakInput& input);

/// What the node knows beside one event.
struct EventContext {
  std::optional<int64_t> step_need_floor{};  // largest sampled need
  std::optional<int64_t> job_need_floor{};
  bool job_killed = false;  // some step of the job had a process killed for memory
};
/// The facts of one event.
data::v1::Record FactsOfEvent(const hook::HookEvent& event, const std::string& node,
                              const EventContext& context);

/// Sets value, bound and reason.
void SetMeasured(std::optional<double> value, bool exact, const std::string& reason,
                 expanse::common::v1::MeasuredDouble* out);

}  // namespace expanse::collect::host
