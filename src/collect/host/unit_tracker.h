// SPDX-License-Identifier: Apache-2.0
// Running peaks of the jobs' and steps' cgroups of one node.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "collect/host/cgroup_reader.h"
#include "collect/host/process_reader.h"
#include "collect/host/sample_batch.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::host {

/// The metrics of a step that the sampler fills, in the order of TrackedUnit::series.
enum class StepMetric {
  kCpu,
  kMemory,
  kAnon,
  kShmem,
  kFile,
  kNeed,
  kLimit,
  kKernel,
  kSwap,
  kSlope,
  kCpuUser,
  kCpuSystem,
  kThrottled,
  kProcesses,
  kThreads,
  kOomKills,
  kLimitHits,
  kIoRead,
  kIoWrite,
  kNetworkReceive,
  kNetworkTransmit,
  kExits,
  kCpuPressure,
  kMemoryPressure,
  kIoPressure,
  kCount,
};

/// Bytes read and written by a step so far, and why that is not all.
struct StepIo {
  IoBytes bytes;
  std::string reason;  // empty: exact
};

struct TrackedUnit {
  CgroupUnit unit;
  CgroupUsage last;                   // each field as last seen
  std::optional<int64_t> need_peak;   // largest sampled need
  std::optional<int64_t> cache_peak;  // largest sampled reclaimable cache
  std::optional<double> cores_now;    // over the time since the sample before
  std::optional<double> cores_peak;   // largest such value
  std::optional<MonoTime> cpu_time;   // when last.cpu_ns was read
  WallTime first_seen;
  WallTime last_seen;
  WallTime reported;                   // when its facts were last sent
  std::optional<WallTime> gone_since;  // its cgroup went away
  bool is_whole = false;               // it began while this sampler ran

  // Need over the last minutes: seconds since first_seen, bytes.
  std::vector<std::pair<double, double>> needs;
  // From the processes, at a slower cadence.
  StepProcesses processes;
  IoBytes process_io;  // largest sums of what living processes read and wrote
  std::optional<int64_t> ended_steps_io = 0;  // of a job: bytes of its ended steps, when all known
  uint64_t losses_before = 0;                 // exit records lost before it was first seen
  uint64_t unexplained_before = 0;  // ends of its user that belong to no step, at that time

  expanse::common::v1::RunKey key;  // as of the batch that series belongs to
  std::array<SeriesHandle, static_cast<size_t>(StepMetric::kCount)> series;

  /// Growth of the need in bytes a second over the last minutes (least squares); nothing with less
  /// than a minute to go by.
  std::optional<double> NeedSlope() const;
};

class UnitTracker {
 public:
  /// Takes one reading of each unit that exists. A reading with nothing in it (the cgroup went
  /// away meanwhile) is ignored.
  TrackedUnit* Update(const CgroupUnit& unit, const CgroupUsage& usage, WallTime now,
                      MonoTime mono);
  /// A living unit; null when there is none.
  TrackedUnit* Find(const std::string& path);
  /// Units that were not updated at `now` and are not marked yet; marks them gone.
  std::vector<TrackedUnit*> MarkGone(WallTime now);
  /// Forgets units gone for longer than keep: their floors serve hook events that come late.
  void Forget(WallTime now, Millis keep);
  /// A unit that lives or went lately; null when there is none.
  TrackedUnit* FindOf(const std::string& job_id, const std::string& step_id);
  std::map<std::string, TrackedUnit>& units() { return units_; }
  size_t alive() const;

 private:
  std::map<std::string, TrackedUnit> units_;  // by path
};

/// Facts of one unit as a record body: origin CGROUP, everything a floor but io without a reason.
void SetCgroupFacts(const TrackedUnit& tracked, const StepIo& io, const std::string& node,
                    const expanse::common::v1::RunKey& key, data::v1::ExecutionFacts* facts);

}  // namespace expanse::collect::host
