// SPDX-License-Identifier: Apache-2.0
// Recorded runs as observations: which runs count, and what each says about need. A run that was
// killed at a limit says only that it needs more than that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expanse/data/v1/data.pb.h"

namespace expanse::intelligence::analyse {

/// How a measured value bounds the need of a complete run.
enum class Evidence {
  kExact,    // a completed run's own value
  kSampled,  // of a completed run, sampled often enough to stand on; `at_most` bounds it exactly
  kFloor,    // the run ended early or was hardly sampled: a complete run needs at least this
  kKilled,   // killed at this limit: a complete run needs more
};

struct Observation {
  double value = 0;
  Evidence evidence = Evidence::kExact;
  double at_most = 0;  // kSampled: the exact peak with page cache
};

struct ObservedRun {
  const data::v1::RecordedRun* run = nullptr;
  bool succeeded = false;
  std::optional<Observation> memory;   // bytes on the worst node
  bool memory_is_enforced = false;     // memory_need was not measured; page cache may be in it
  std::optional<Observation> runtime;  // seconds
  std::optional<double> cores_peak;
  std::optional<double> cores_mean;  // CPU seconds over runtime
  std::optional<double> gpu_memory_peak;
  std::optional<double> gpu_utilisation;
};

struct History {
  std::string basis = "none";     // "exact_bundle", "similar_bundle", "user_history", "none"
  std::vector<ObservedRun> runs;  // those that count, of that basis, newest first
  int successes = 0;
  int excluded = 0;    // ended, but no observation of the source: cancelled or unknown outcome
  int unfinished = 0;  // still queued or running
  std::vector<std::string> arguments;  // of the newest similar run, when they differ

  bool same_source() const { return basis == "exact_bundle"; }
};

/// Takes the strongest basis that has at least one run that counts. `runs` outlives the result.
History ReadHistory(const std::vector<data::v1::RecordedRun>& runs);

}  // namespace expanse::intelligence::analyse
