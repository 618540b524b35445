// SPDX-License-Identifier: Apache-2.0
// Running peaks of the jobs' and steps' cgroups of one node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "collect/host/cgroup_reader.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::host {

struct TrackedUnit {
  CgroupUnit unit;
  CgroupUsage last;                  // each field as last seen
  std::optional<int64_t> need_peak;  // largest sampled need
  std::optional<double> cores_now;   // over the time since the sample before
  std::optional<double> cores_peak;  // largest such value
  std::optional<MonoTime> cpu_time;  // when last.cpu_ns was read
  WallTime first_seen;
  WallTime last_seen;
  WallTime reported;                   // when its facts were last sent
  std::optional<WallTime> gone_since;  // its cgroup went away
};

class UnitTracker {
 public:
  /// Takes one reading of each unit that exists. A reading with nothing in it (the cgroup went
  /// away meanwhile) is ignored.
  TrackedUnit* Update(const CgroupUnit& unit, const CgroupUsage& usage, WallTime now,
                      MonoTime mono);
  /// Units that were not updated at `now` and are not marked yet; marks them gone.
  std::vector<TrackedUnit*> MarkGone(WallTime now);
  /// Forgets units gone for longer than keep: their floors serve hook events that come late.
  void Forget(WallTime now, Millis keep);
  std::optional<int64_t> NeedPeak(const std::string& job_id, const std::string& step_id) const;
  std::map<std::string, TrackedUnit>& units() { return units_; }
  size_t alive() const;

 private:
  std::map<std::string, TrackedUnit> units_;  // by path
};

/// Facts of one unit as a record body: origin CGROUP, everything a floor.
void SetCgroupFacts(const TrackedUnit& tracked, const std::string& node,
                    const expanse::common::v1::RunKey& key, data::v1::ExecutionFacts* facts);

}  // namespace expanse::collect::host
