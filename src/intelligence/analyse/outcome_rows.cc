// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/outcome_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"
#include "intelligence/statistics/outcome_distribution.h"

namespace expanse::intelligence::analyse {
namespace {

constexpr int kMostEvidence = 50;
constexpr int kNamedJobs = 5;

std::string SizeText(double bytes) { return FormatSizeProse(Bytes{std::llround(bytes)}); }
std::string TimeText(double seconds) {
  return FormatDuration(std::chrono::duration_cast<Millis>(Seconds(std::llround(seconds))));
}

/// The class of the taxonomy that an outcome alone supports; diagnose says more.
std::string ClassOf(common::v1::ExecutionOutcome outcome) {
  if (outcome == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY) return "host_out_of_memory";
  if (outcome == common::v1::EXECUTION_OUTCOME_TIMEOUT) return "walltime_exceeded";
  return "task_failure_unattributed";
}

std::string OutcomeText(common::v1::ExecutionOutcome outcome) {
  switch (outcome) {
    case common::v1::EXECUTION_OUTCOME_SUCCESS:
      return "completed";
    case common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY:
      return "killed for memory";
    case common::v1::EXECUTION_OUTCOME_TIMEOUT:
      return "ended by the time limit";
    default:
      return "failed";
  }
}

/// "SLURM jobs 4401, 4402 and 3 more".
std::string JobsText(const std::vector<std::string>& ids) {
  std::string out = ids.size() == 1 ? "job " : "jobs ";
  for (size_t i = 0; i < ids.size() && i < kNamedJobs; ++i) out += (i > 0 ? ", " : "") + ids[i];
  if (ids.size() > kNamedJobs) out += fmt::format(" and {} more", ids.size() - kNamedJobs);
  return out;
}

struct RiskQuestion {
  std::string failure_class;
  std::optional<double> limit;  // requested
  std::optional<Observation> ObservedRun::*observation;
  std::string (*text)(double);
  std::string_view noun;
};

void AddRisk(const RiskQuestion& question, const History& history, v1::AnalyseResult* result) {
  if (!question.limit) return;
  int runs = 0;
  int successes = 0;
  double largest = 0;
  std::vector<std::string> harmed;
  for (const auto& run : history.runs) {
    const auto& seen = run.*question.observation;
    if (!seen) continue;
    ++runs;
    successes += run.succeeded ? 1 : 0;
    // A run killed at exactly the requested limit would be killed again.
    const bool over = seen->evidence == Evidence::kKilled ? seen->value >= *question.limit
                                                          : seen->value > *question.limit;
    if (!over) continue;
    largest = std::max(largest, seen->value);
    harmed.push_back(EscapeForTerminal(run.run->execution().native_id()));
  }
  if (harmed.empty()) return;
  auto* risk = result->add_failure_risk();
  risk->set_class_(question.failure_class);
  *risk->mutable_probability() = ToDistribution(
      JeffreysPosterior(static_cast<int>(harmed.size()), runs), successes, history.basis);
  risk->set_reason(
      fmt::format("{} of {} measured runs needed more than the {} of {} requested: "
                  "up to {} ({})",
                  harmed.size(), runs, question.noun, question.text(*question.limit),
                  question.text(largest), JobsText(harmed)));
}

/// Whether a run would have lived within the recommendation; nothing when that cannot be said.
std::optional<bool> Fits(const std::optional<Observation>& seen, std::optional<double> limit) {
  if (!seen || !limit) return std::nullopt;
  if (seen->evidence == Evidence::kKilled) {
    if (seen->value >= *limit) return false;
    return std::nullopt;
  }
  return seen->value <= *limit;
}

}  // namespace

void AddOutcomes(const History& history, v1::AnalyseResult* result) {
  // Runs of another source say nothing about how often this one completes.
  const int runs = history.basis == "user_history" ? 0 : static_cast<int>(history.runs.size());
  if (runs < kMinRecordedRuns) {
    result->set_completion_probability_known(false);
    (*result->mutable_unknown())["completion_probability"] =
        fmt::format("{} recorded run{} of this source; two are needed", runs, runs == 1 ? "" : "s");
    return;
  }
  const auto posterior = JeffreysPosterior(history.successes, runs);
  *result->mutable_completion_probability() =
      ToDistribution(posterior, history.successes, history.basis);
  auto* residual = result->mutable_residual_failure_risk();
  *residual->mutable_probability() =
      ToDistribution(Complement(posterior), history.successes, history.basis);
  residual->set_class_("none");
  std::map<std::string, int> classes;
  for (const auto& run : history.runs)
    if (!run.succeeded) ++classes[ClassOf(run.run->execution().outcome())];
  int most = 0;
  std::string reason;
  for (const auto& [name, count] : classes) {
    if (count > most) residual->set_class_(name);
    most = std::max(most, count);
    reason += fmt::format("{}{} {}", reason.empty() ? "" : ", ", count, name);
  }
  if (!reason.empty()) {
    residual->set_reason(fmt::format("{} of {} recorded runs did not complete: {}",
                                     runs - history.successes, runs, reason));
  }
}

void AddFailureRisk(const SubmissionView& view, const History& history, v1::AnalyseResult* result) {
  const auto& asked = view.requested;
  std::optional<double> memory;
  if (asked.memory_bytes) memory = static_cast<double>(*asked.memory_bytes) / view.nodes;
  std::optional<double> walltime;
  if (asked.walltime_seconds) walltime = static_cast<double>(*asked.walltime_seconds);
  AddRisk({"host_out_of_memory", memory, &ObservedRun::memory, SizeText, "memory"}, history,
          result);
  AddRisk({"walltime_exceeded", walltime, &ObservedRun::runtime, TimeText, "walltime"}, history,
          result);
}

void AddConfidence(const SubmissionView& view, const History& history,
                   const Recommendation& recommendation, v1::AnalyseResult* result) {
  if (history.basis != "exact_bundle" && history.basis != "similar_bundle") {
    result->set_confidence(v1::CONFIDENCE_LABEL_LOW);
    return;
  }
  // The label says whose runs they are, however few; the score says how many stand behind it.
  result->set_confidence(history.same_source() ? v1::CONFIDENCE_LABEL_HIGH
                                               : v1::CONFIDENCE_LABEL_MEDIUM);
  std::optional<double> memory;
  if (recommendation.memory_bytes) {
    memory = static_cast<double>(*recommendation.memory_bytes) / view.nodes;
  }
  std::optional<double> walltime;
  if (recommendation.walltime_seconds) {
    walltime = static_cast<double>(*recommendation.walltime_seconds);
  }
  int runs = 0;
  int fit = 0;
  int memory_measured = 0;
  for (const auto& run : history.runs) {
    const auto memory_fits = Fits(run.memory, memory);
    const auto time_fits = Fits(run.runtime, walltime);
    const bool known_bad = (memory_fits && !*memory_fits) || (time_fits && !*time_fits) ||
                           (run.cores_peak && recommendation.cpu_cores &&
                            *run.cores_peak > *recommendation.cpu_cores + kCoreTolerance);
    if (known_bad) {
      ++runs;
    } else if (memory_fits && time_fits) {
      ++runs;
      ++fit;
      memory_measured += run.memory->evidence == Evidence::kFloor ? 0 : 1;
    }
  }
  if (runs == 0) return;
  if (memory_measured < fit) {
    result->add_warnings(
        fmt::format("confidence: {} run{}; memory was measured in {}, {} only a floor was seen",
                    fit, fit == 1 ? " fits" : "s fit", memory_measured,
                    memory_measured == 0 ? "otherwise" : "in the others"));
  }
  result->set_confidence_score(RoundTo2(SuccessionScore(fit, runs)));
  result->set_confidence_score_fit(fit);
  result->set_confidence_score_runs(runs);
}

void AddEvidence(const History& history, v1::AnalyseResult* result) {
  for (const auto& run : history.runs) {
    if (result->evidence_size() == kMostEvidence) break;
    const auto& execution = run.run->execution();
    auto* evidence = result->add_evidence();
    evidence->set_execution_id(execution.execution_id());
    evidence->set_scheduler_job_id(ToUtf8(execution.native_id()));
    evidence->set_similarity(run.run->similarity());
    evidence->set_outcome(execution.outcome());
    std::string text = OutcomeText(execution.outcome());
    if (run.runtime) text += " after " + TimeText(run.runtime->value);
    if (run.memory) {
      const bool killed = run.memory->evidence == Evidence::kKilled;
      const bool floor = run.memory->evidence == Evidence::kFloor;
      text += fmt::format(", {} {}{}", run.memory_is_enforced ? "memory peak" : "memory need",
                          killed  ? "above "
                          : floor ? "at least "
                                  : "",
                          SizeText(run.memory->value));
    }
    if (run.cores_peak) text += fmt::format(", {:.1f} cores at most", *run.cores_peak);
    evidence->set_summary(text);
  }
  if (history.excluded > 0) result->set_excluded_runs(history.excluded);
}

void AddQuantiles(const SubmissionView& view, const History& history, v1::AnalyseResult* result) {
  struct Row {
    std::string_view resource;
    std::vector<Observation> observations;
    double scale;
  };
  std::vector<Observation> cores;
  for (const auto& run : history.runs)
    if (run.succeeded && run.cores_peak) cores.push_back({*run.cores_peak, Evidence::kExact});
  for (const Row& row :
       {Row{"host_ram_bytes", MemoryObservations(history), static_cast<double>(view.nodes)},
        Row{"walltime_seconds", RuntimeObservations(history), 1},
        Row{"cpu_cores", std::move(cores), 1}}) {
    const auto quantiles = PredictiveQuantiles(row.observations);
    if (!quantiles) continue;
    auto* out = result->add_quantiles();
    out->set_resource(std::string(row.resource));
    const bool whole = row.resource != "cpu_cores";
    const auto value = [&row, whole](double v) {
      return whole ? std::ceil(v * row.scale) : RoundTo2(v * row.scale);
    };
    out->set_p10(value(quantiles->p10));
    out->set_p50(value(quantiles->p50));
    out->set_p90(value(quantiles->p90));
    if (quantiles->p99) out->set_p99(value(*quantiles->p99));
    out->set_basis(fmt::format("{}, {} measured runs", history.basis, quantiles->runs));
  }
}

}  // namespace expanse::intelligence::analyse
