// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/history.h"

#include <algorithm>

namespace expanse::intelligence::analyse {
namespace {

using common::v1::Execution;

bool HasEnded(const Execution& e) {
  return e.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED;
}

/// A cancel or the cluster's fault says nothing about the source.
bool Counts(const Execution& e) {
  switch (e.outcome()) {
    case common::v1::EXECUTION_OUTCOME_SUCCESS:
    case common::v1::EXECUTION_OUTCOME_FAILURE:
    case common::v1::EXECUTION_OUTCOME_TIMEOUT:
    case common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY:
      return true;
    default:
      return false;
  }
}

/// The memory limit of one node of the run; what was granted before what was asked.
std::optional<double> MemoryLimit(const Execution& e) {
  for (const auto* r : {&e.allocated(), &e.requested()}) {
    if (r->memory_bytes() <= 0) continue;
    const int nodes = std::max({e.allocated().nodes(), e.requested().nodes(), 1});
    return static_cast<double>(r->memory_bytes()) / nodes;
  }
  return std::nullopt;
}

/// Sampling once a second is trusted from this many seconds on; a shorter run's peak with page
/// cache is the safer figure.
constexpr int64_t kSampledSeconds = 120;

bool IsExact(const common::v1::MeasuredInt64& m) {
  return m.has_value() && m.value() > 0 && m.bound() == common::v1::BOUND_EXACT;
}

/// The limit of a run that was killed: sampling can miss the last allocation.
std::optional<Observation> KilledMemory(const Execution& e) {
  const double seen =
      static_cast<double>(std::max(e.memory_need().value(), e.memory_peak_enforced().value()));
  const double limit = std::max(seen, MemoryLimit(e).value_or(0));
  if (limit <= 0) return std::nullopt;
  return Observation{limit, Evidence::kKilled};
}

void ReadMemory(const Execution& e, ObservedRun* out) {
  if (e.outcome() == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY ||
      e.ending_cause() == common::v1::ENDING_CAUSE_MEMORY_LIMIT || e.oom_kills() > 0) {
    out->memory = KilledMemory(e);
    return;
  }
  const auto& need = e.memory_need();
  const auto& enforced = e.memory_peak_enforced();
  const auto need_value = static_cast<double>(need.value());
  const auto enforced_value = static_cast<double>(enforced.value());
  if (out->succeeded && IsExact(need)) {
    out->memory = Observation{need_value, Evidence::kExact};
  } else if (out->succeeded && IsExact(enforced)) {
    if (need.value() > 0 && e.runtime_seconds().value() >= kSampledSeconds) {
      out->memory = Observation{need_value, Evidence::kSampled, enforced_value};
    } else {
      out->memory = Observation{enforced_value, Evidence::kExact};
      out->memory_is_enforced = true;
    }
  } else if (need.value() > 0 || enforced.value() > 0) {
    out->memory_is_enforced = need.value() <= 0;
    out->memory =
        Observation{out->memory_is_enforced ? enforced_value : need_value, Evidence::kFloor};
  }
}

void ReadRuntime(const Execution& e, ObservedRun* out) {
  if (!e.runtime_seconds().has_value()) return;
  double value = static_cast<double>(e.runtime_seconds().value());
  if (e.outcome() == common::v1::EXECUTION_OUTCOME_TIMEOUT) {
    value = std::max(value, static_cast<double>(e.requested().walltime_seconds()));
    out->runtime = Observation{value, Evidence::kKilled};
    return;
  }
  const bool exact = out->succeeded && e.runtime_seconds().bound() != common::v1::BOUND_AT_LEAST;
  out->runtime = Observation{value, exact ? Evidence::kExact : Evidence::kFloor};
}

ObservedRun Observe(const data::v1::RecordedRun& run) {
  const Execution& e = run.execution();
  ObservedRun out;
  out.run = &run;
  out.succeeded = e.outcome() == common::v1::EXECUTION_OUTCOME_SUCCESS;
  ReadMemory(e, &out);
  ReadRuntime(e, &out);
  if (e.cpu_cores_used_peak().has_value()) out.cores_peak = e.cpu_cores_used_peak().value();
  if (e.cpu_seconds().has_value() && e.runtime_seconds().value() > 0) {
    out.cores_mean = e.cpu_seconds().value() / static_cast<double>(e.runtime_seconds().value());
  }
  if (e.gpu_memory_peak_bytes().has_value()) {
    out.gpu_memory_peak = static_cast<double>(e.gpu_memory_peak_bytes().value());
  }
  if (e.gpu_utilisation_pct().has_value()) out.gpu_utilisation = e.gpu_utilisation_pct().value();
  return out;
}

}  // namespace

History ReadHistory(const std::vector<data::v1::RecordedRun>& runs) {
  History history;
  for (const char* basis : {"exact_bundle", "similar_bundle", "user_history"}) {
    int excluded = 0;
    int unfinished = 0;
    for (const auto& run : runs) {
      if (run.basis() != basis) continue;
      if (!HasEnded(run.execution())) {
        ++unfinished;
      } else if (!Counts(run.execution())) {
        ++excluded;
      } else {
        history.runs.push_back(Observe(run));
        history.successes += history.runs.back().succeeded ? 1 : 0;
      }
    }
    // Left-out runs of the same source are worth naming even when a weaker basis answers.
    history.excluded += excluded;
    history.unfinished += unfinished;
    if (history.runs.empty()) continue;
    history.basis = basis;
    if (history.basis != "exact_bundle") {
      const auto& arguments = history.runs.front().run->arguments();
      history.arguments.assign(arguments.begin(), arguments.end());
    }
    break;
  }
  return history;
}

}  // namespace expanse::intelligence::analyse
