// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/analyser.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/strings.h"
#include "intelligence/analyse/outcome_rows.h"
#include "intelligence/analyse/recommend.h"
#include "intelligence/analyse/right_size.h"

namespace expanse::intelligence::analyse {
namespace {

/// Missing evidence is said aloud, each kind once.
void AddHistoryWarnings(const History& history, v1::AnalyseResult* result) {
  const size_t runs = history.runs.size();
  const std::string count = fmt::format("{} recorded run{}", runs, runs == 1 ? "" : "s");
  if (history.basis == "none") {
    result->add_warnings(
        "no recorded run of this source on this compute: the figures are the request's own, "
        "nothing was measured");
  } else if (history.basis == "similar_bundle") {
    std::string arguments;
    for (const auto& argument : history.arguments) arguments += " " + ShellQuote(argument);
    result->add_warnings(fmt::format(
        "no recorded run of this source with these arguments: {} with other arguments answer{}{}",
        count, runs == 1 ? "s" : "",
        arguments.empty() ? "" : " (the newest:" + ToUtf8(arguments) + ")"));
  } else if (history.basis == "user_history") {
    result->add_warnings(fmt::format(
        "no recorded run of this source on this compute: {} with the same job name and user but "
        "another source were looked at, and nothing is lowered on their evidence",
        count));
  } else if (runs == 1) {
    result->add_warnings(history.same_source()
                             ? "one recorded run only: margins are wide; the confidence label "
                               "means the same source, its score how few runs stand behind it"
                             : "one recorded run only: margins are wide");
  }
  if (history.unfinished > 0) {
    result->add_warnings(fmt::format("{} run{} of this source not ended yet and not counted",
                                     history.unfinished,
                                     history.unfinished == 1 ? " is" : "s are"));
  }
  if (history.excluded > 0) {
    result->add_warnings(
        fmt::format("{} recorded run{} left out: cancelled, or ended by no fault of the source",
                    history.excluded, history.excluded == 1 ? " was" : "s were"));
  }
}

void AddMeasurementWarnings(const History& history, v1::AnalyseResult* result) {
  if (history.runs.empty()) return;
  const auto without = std::count_if(history.runs.begin(), history.runs.end(),
                                     [](const ObservedRun& run) { return !run.memory; });
  if (without > 0) {
    result->add_warnings(fmt::format("{} of {} recorded runs have no memory measurement", without,
                                     history.runs.size()));
  }
  if (std::any_of(history.runs.begin(), history.runs.end(),
                  [](const ObservedRun& run) { return run.memory && run.memory_is_enforced; })) {
    result->add_warnings(
        "memory need was not measured in every run: there the enforced peak, which counts page "
        "cache, stands for it");
  }
}

void AddGpus(const SubmissionView& view, const History& history, v1::AnalyseResult* result) {
  auto* out = result->mutable_recommended_resources();
  const bool requested = view.requested.gpu_count.value_or(0) > 0;
  std::optional<double> peak;
  std::optional<double> floor;
  double utilisation = 0;
  int measured = 0;
  for (const auto& run : history.runs) {
    const auto& execution = run.run->execution();
    if (out->gpu_model().empty()) out->set_gpu_model(ToUtf8(execution.gpu_model()));
    if (!out->has_gpu_memory_available_bytes() && execution.gpu_memory_total_bytes() > 0) {
      out->set_gpu_memory_available_bytes(execution.gpu_memory_total_bytes());
    }
    if (run.gpu_memory_peak) {
      peak = std::max(peak.value_or(0), *run.gpu_memory_peak);
      // A run that completed with this much shows that no more is needed.
      if (run.succeeded)
        floor = std::min(floor.value_or(*run.gpu_memory_peak), *run.gpu_memory_peak);
    }
    if (run.gpu_utilisation) {
      utilisation += *run.gpu_utilisation;
      ++measured;
    }
  }
  if (!requested && !peak && measured == 0) {
    out->clear_gpu_model();
    out->clear_gpu_memory_available_bytes();
    return;
  }
  if (peak) out->set_gpu_memory_peak_bytes(std::llround(*peak));
  if (floor) out->set_gpu_memory_floor_bytes(std::llround(*floor));
  out->set_gpu_utilisation_known(measured > 0);
  if (measured > 0) out->set_gpu_utilisation_pct(std::round(utilisation / measured));
  auto& unknown = *result->mutable_unknown();
  const char* kReason = "no recorded run of this source measured it";
  if (!peak) unknown["gpu_memory_peak_bytes"] = kReason;
  if (!floor) unknown["gpu_memory_floor_bytes"] = kReason;
  if (measured == 0) unknown["gpu_utilisation_pct"] = kReason;
  if (out->gpu_model().empty()) unknown["gpu_model"] = kReason;
  if (!out->has_gpu_memory_available_bytes()) unknown["gpu_memory_available_bytes"] = kReason;
}

void AddResources(const SubmissionView& view, const Recommendation& recommendation,
                  v1::AnalyseResult* result) {
  auto* out = result->mutable_recommended_resources();
  auto& unknown = *result->mutable_unknown();
  const auto& asked = view.requested;
  const auto reason = [&asked](const char* field) {
    const auto found = asked.unknown.find(field);
    return found == asked.unknown.end() ? std::string("neither requested nor measured")
                                        : found->second;
  };
  if (recommendation.cpu_cores) {
    out->set_cpu_cores(*recommendation.cpu_cores);
  } else {
    unknown["cpu_cores"] = reason("cpu_cores");
  }
  if (recommendation.memory_bytes) {
    out->set_memory_bytes(*recommendation.memory_bytes);
  } else {
    unknown["memory_bytes"] = reason("host_ram_requested_bytes");
  }
  if (recommendation.gpu_count) out->set_gpu_count(*recommendation.gpu_count);
  if (recommendation.walltime_seconds) {
    out->set_walltime_seconds(*recommendation.walltime_seconds);
  } else {
    unknown["walltime_seconds"] = reason("walltime_seconds");
  }
  if (asked.memory_bytes) {
    out->set_host_ram_requested_bytes(*asked.memory_bytes);
  } else {
    unknown["host_ram_requested_bytes"] = reason("host_ram_requested_bytes");
  }
  out->set_rationale(Join(recommendation.rationale, " "));
}

}  // namespace

Result<AnalyseAnswer> Analyse(const AnalyseInputs& inputs) {
  const data::v1::ComputeFacts* facts = inputs.facts ? &*inputs.facts : nullptr;
  EXPANSE_TRY(const auto view, ReadSubmission(inputs.request, facts));
  const History history = ReadHistory(inputs.runs);
  const Recommendation recommendation = Recommend(view, history, facts, inputs.request.risk());

  AnalyseAnswer answer;
  answer.job_name = view.job_name;
  auto& result = answer.result;
  AddResources(view, recommendation, &result);
  AddGpus(view, history, &result);
  AddConfidence(view, history, recommendation, &result);
  AddOutcomes(history, &result);
  AddFailureRisk(view, history, &result);
  AddEvidence(history, &result);
  AddQuantiles(view, history, &result);

  AddHistoryWarnings(history, &result);
  AddMeasurementWarnings(history, &result);
  for (const auto& warning : view.warnings) result.add_warnings(warning);
  for (const auto& warning : recommendation.warnings) result.add_warnings(warning);
  if (facts == nullptr && !inputs.facts_unknown_reason.empty()) {
    result.add_warnings("the cluster's nodes and partitions are not known: " +
                        inputs.facts_unknown_reason);
  }

  result.mutable_right_size()->set_class_("none");
  if (inputs.request.no_patch()) return answer;
  auto sizing = MakePatch(view, recommendation, inputs.request.target(), inputs.artifact_id);
  *result.mutable_right_size() = std::move(sizing.right_size);
  for (const auto& warning : sizing.warnings) result.add_warnings(warning);
  if (sizing.patch) {
    auto* artifact = result.add_artifacts();
    artifact->set_artifact_id(sizing.patch->artifact_id());
    artifact->set_artifact_type(sizing.patch->artifact_type());
    artifact->set_content_hash(sizing.patch->content_hash());
    answer.patch = std::move(sizing.patch);
  }
  return answer;
}

}  // namespace expanse::intelligence::analyse
