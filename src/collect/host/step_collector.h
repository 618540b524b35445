// SPDX-License-Identifier: Apache-2.0
// Reads the steps of a node's jobs once a second: their cgroups, every ten seconds what changes
// slowly and their processes, and the exit records of processes that ended in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collect/host/cgroup_reader.h"
#include "collect/host/event_collector.h"
#include "collect/host/process_reader.h"
#include "collect/host/sample_batch.h"
#include "collect/host/taskstats.h"
#include "collect/host/unit_tracker.h"

namespace expanse::collect::host {

/// CPU seconds of this collector since its start, by source.
struct CollectorCost {
  double cgroup = 0;
  double processes = 0;
  double taskstats = 0;
};

/// What all jobs of the node use together.
struct JobsUse {
  int64_t jobs = 0;
  double cores = 0;
  int64_t memory = 0;  // bytes charged
};

class StepCollector {
 public:
  /// reader may be null: no cgroups. use_taskstats: false in a test, or to save its cost.
  StepCollector(const platform::Fs& fs, std::unique_ptr<CgroupReader> reader,
                EventCollector& events, bool use_taskstats);

  /// One round; adds the samples of the steps.
  void Read(WallTime now, MonoTime mono, SampleBatch* batch);
  /// What a step read and wrote so far.
  StepIo IoOf(const TrackedUnit& t);
  /// What was seen of a unit's memory until now; step "" is the whole job.
  MemorySeen SeenOf(const std::string& job_id, const std::string& step_id);
  /// The natural key of a unit's run, as far as this node knows it.
  expanse::common::v1::RunKey KeyOf(const CgroupUnit& unit, WallTime seen) const;
  /// Does the key hold all that is known of its job?
  bool IsCurrent(const expanse::common::v1::RunKey& key) const;
  /// Drops what is kept of a unit that ended.
  void Release(TrackedUnit& t);

  UnitTracker& tracker() { return tracker_; }
  const JobsUse& jobs() const { return jobs_; }
  CollectorCost cost() const;
  /// Why cgroups are not read; empty when they are.
  const std::string& cgroup_problem() const { return cgroup_problem_; }
  /// Whether exit records are read at all; they need a right that an operator may not give.
  bool has_taskstats() const { return taskstats_ != nullptr; }
  /// Why there are no exit records, or not all; empty when there are.
  const std::string& taskstats_problem() const { return taskstats_problem_; }

 private:
  void ReadProcesses(TrackedUnit* t);
  std::optional<int64_t> MostIo(TrackedUnit* t);
  bool HasAllRecords(const TrackedUnit& t, uint64_t unexplained) const;
  void AddSamples(TrackedUnit* t, const CgroupUsage& usage, bool with_processes, WallTime now,
                  SampleBatch* batch);
  void NoteBegin(TrackedUnit* t);
  std::optional<uint32_t> UserOf(const TrackedUnit& t) const;
  uint64_t Losses() const;

  const platform::Fs& fs_;
  std::unique_ptr<CgroupReader> reader_;
  EventCollector& events_;
  ProcessReader processes_;
  UnitTracker tracker_;
  std::unique_ptr<TaskstatsListener> taskstats_;
  std::string cgroup_problem_;
  std::string taskstats_problem_;
  JobsUse jobs_;
  CollectorCost cost_;
  uint64_t ticks_ = 0;
  // As of the round before: a step that is new now began after it.
  uint64_t losses_ = 0;
  ExitLedger::Unexplained unexplained_;
};

}  // namespace expanse::collect::host
