// SPDX-License-Identifier: Apache-2.0
// The figures to ask for, with the sentence that says what each stands on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expanse/data/v1/ingest.pb.h"
#include "intelligence/analyse/history.h"
#include "intelligence/analyse/limits.h"
#include "intelligence/analyse/submission_view.h"

namespace expanse::intelligence::analyse {

struct Recommendation {
  std::optional<int64_t> memory_bytes;  // of the whole job
  std::optional<int64_t> walltime_seconds;
  std::optional<int32_t> cpu_cores;
  std::optional<int32_t> gpu_count;
  std::optional<Limit> memory_limit;  // of one node; nothing without observations
  std::optional<Limit> walltime_limit;
  std::vector<std::string> rationale;
  std::vector<std::string> warnings;
};

/// facts may be null. Never invents: without observations a figure is the request's own, and what
/// was not requested either stays unset.
Recommendation Recommend(const SubmissionView& view, const History& history,
                         const data::v1::ComputeFacts* facts, v1::RiskTolerance risk);

/// Values of one resource over the runs that have one.
std::vector<Observation> MemoryObservations(const History& history);
std::vector<Observation> RuntimeObservations(const History& history);

/// A peak of cores this far above a whole number is still that number (sampling noise).
inline constexpr double kCoreTolerance = 0.15;

}  // namespace expanse::intelligence::analyse
