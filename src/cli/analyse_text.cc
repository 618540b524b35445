// SPDX-License-Identifier: Apache-2.0
#include "cli/analyse_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/units.h"
#include "cli/labels.h"
#include "cli/result_rows.h"
#include "cli/text.h"

namespace expanse::cli {
namespace {

using intelligence::v1::AnalyseResult;
using intelligence::v1::AnalyseRun;

/// More job ids than this are counted, not listed.
constexpr int kListedJobs = 12;

std::optional<std::string> GpuUtilisation(const AnalyseResult& result) {
  const auto& r = result.recommended_resources();
  if (r.has_gpu_utilisation_known() && !r.gpu_utilisation_known()) {
    // Without a GPU there is nothing to know.
    const bool gpu = !r.gpu_model().empty() || r.gpu_count() > 0;
    return gpu ? std::optional<std::string>("unknown") : std::nullopt;
  }
  return Percent(r.has_gpu_utilisation_pct(), r.gpu_utilisation_pct());
}

std::string Confidence(const AnalyseResult& result) {
  std::string out = ConfidenceText(result.confidence());
  if (result.has_confidence_score() && result.confidence_score_runs() > 0)
    out += fmt::format(" ({:.2f}, {} of {} measured runs fit)", result.confidence_score(),
                       result.confidence_score_fit(), result.confidence_score_runs());
  return out;
}

std::string Recommendation(const Context& context, const AnalyseResult& result) {
  const auto& r = result.recommended_resources();
  OptionalRows rows(result.unknown());
  rows.Add("walltime_s", "walltime_seconds", Number(r.has_walltime_seconds(), r.walltime_seconds()),
           true);
  rows.Add("gpu_type", "gpu_model", Text(r.gpu_model()));
  rows.Add("gpu_count", "gpu_count", Number(r.has_gpu_count(), r.gpu_count()));
  rows.Add("gpu_memory_available_gb", "gpu_memory_available_bytes",
           Gib(r.has_gpu_memory_available_bytes(), r.gpu_memory_available_bytes()));
  rows.Add("gpu_memory_peak_gb", "gpu_memory_peak_bytes",
           Gib(r.has_gpu_memory_peak_bytes(), r.gpu_memory_peak_bytes()));
  rows.Add("gpu_utilisation_pct", "gpu_utilisation_pct", GpuUtilisation(result));
  rows.Add("cpu_cores", "cpu_cores", Number(r.has_cpu_cores(), r.cpu_cores()), true);
  rows.Add("host_ram_gb", "memory_bytes", Gib(r.has_memory_bytes(), r.memory_bytes()), true);
  rows.Add("gpu_memory_floor_gb", "gpu_memory_floor_bytes",
           Gib(r.has_gpu_memory_floor_bytes(), r.gpu_memory_floor_bytes()));
  rows.Add("host_ram_requested_gb", "host_ram_requested_bytes",
           Gib(r.has_host_ram_requested_bytes(), r.host_ram_requested_bytes()));
  return SectionTitle(context, "RESOURCE RECOMMENDATION") + rows.text() +
         Row("completion_probability", result.has_completion_probability()
                                           ? DistributionText(result.completion_probability())
                                           : "unknown") +
         Row("confidence", Confidence(result));
}

std::string FailureRisk(const Context& context, const AnalyseResult& result) {
  if (result.failure_risk().empty()) return "";
  std::string out = "\n" + SectionTitle(context, "FAILURE RISK");
  for (const auto& risk : result.failure_risk()) {
    out += Row("class", Text(risk.class_()).value_or("unknown"));
    out += Row("probability", DistributionText(risk.probability()));
    if (!risk.reason().empty()) out += Row("reason", EscapeForTerminal(risk.reason()));
  }
  return out;
}

std::string Optimisation(const Context& context, const AnalyseResult& result, bool no_patch) {
  const auto& size = result.right_size();
  std::string out = "\n" + SectionTitle(context, "OPTIMISATION");
  if (no_patch || size.class_().empty() || size.class_() == "none")
    return out + Row("class", "none");
  out += Row("class", EscapeForTerminal(size.class_()));
  out += Row("review_required", size.review_required() ? "yes" : "no");
  if (!size.source_file().empty()) out += Row("source_file", EscapeForTerminal(size.source_file()));
  return out;
}

/// Recorded runs of one kind: how many, their jobs, how alike they are.
struct Runs {
  int count = 0;
  int listed = 0;
  std::string ids;
  std::optional<double> least;
  std::optional<double> greatest;

  void Add(const intelligence::v1::Evidence& evidence) {
    ++count;
    if (!evidence.scheduler_job_id().empty() && ++listed <= kListedJobs)
      ids += (ids.empty() ? "" : ", ") + EscapeForTerminal(evidence.scheduler_job_id());
    if (!evidence.has_similarity()) return;
    least = std::min(least.value_or(evidence.similarity()), evidence.similarity());
    greatest = std::max(greatest.value_or(evidence.similarity()), evidence.similarity());
  }
};

/// "4 (SLURM jobs 4401, 4402, 4403, 4404; similarity 0.98)".
std::string RunsText(const Runs& runs, std::string_view jobs) {
  std::string detail;
  if (!runs.ids.empty()) detail = fmt::format("{} {}", jobs, runs.ids);
  // count can be more than what the answer lists.
  if (const int more = runs.count - std::min(runs.listed, kListedJobs);
      more > 0 && !runs.ids.empty())
    detail += fmt::format(" and {} more", more);
  if (runs.least) {
    const std::string low = fmt::format("{:.2f}", *runs.least);
    const std::string high = fmt::format("{:.2f}", *runs.greatest);
    detail += (detail.empty() ? "" : "; ") + std::string("similarity ") +
              (low == high ? low : low + " to " + high);
  }
  return detail.empty() ? std::to_string(runs.count) : fmt::format("{} ({})", runs.count, detail);
}

std::string Evidence(const Context& context, const AnalyseResult& result, std::string_view jobs) {
  Runs succeeded;
  Runs failed;
  for (const auto& evidence : result.evidence()) {
    const bool counts_as_success = evidence.outcome() == common::v1::EXECUTION_OUTCOME_SUCCESS ||
                                   evidence.outcome() == common::v1::EXECUTION_OUTCOME_UNSPECIFIED;
    (counts_as_success ? succeeded : failed).Add(evidence);
  }
  if (result.completion_probability().has_success_count())
    succeeded.count = result.completion_probability().success_count();
  std::string out = "\n" + SectionTitle(context, "EVIDENCE");
  if (succeeded.count + failed.count == 0)
    out += Row("successful_runs", "0 (no recorded runs of this source)");
  else
    out += Row("successful_runs", RunsText(succeeded, jobs));
  if (failed.count > 0) out += Row("failed_runs", RunsText(failed, jobs));
  if (result.excluded_runs() > 0)
    out += Row("excluded_runs", fmt::format("{} (cancelled, or ended by no fault of the source)",
                                            result.excluded_runs()));
  return out;
}

/// Row name and form of a predicted resource.
std::pair<std::string, std::string> QuantileValue(const std::string& resource, double value) {
  if (resource == "host_ram_bytes")
    return {"host_ram_gb", FormatGbRow(Bytes{static_cast<int64_t>(value)})};
  if (resource == "walltime_seconds") return {"walltime_s", fmt::format("{:.0f}", value)};
  return {resource, fmt::format("{:.1f}", value)};
}

std::string Prediction(const Context& context, const AnalyseResult& result) {
  if (result.quantiles().empty()) return "";
  std::string out = "\n" + SectionTitle(context, "PREDICTED NEED");
  for (const auto& q : result.quantiles()) {
    std::string text;
    const auto add = [&](const char* name, bool present, double value) {
      if (!present) return;
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                          QuantileValue(q.resource(), value).second);
    };
    add("p10", q.has_p10(), q.p10());
    add("p50", q.has_p50(), q.p50());
    add("p90", q.has_p90(), q.p90());
    add("p99", q.has_p99(), q.p99());
    if (!q.basis().empty()) text += fmt::format(" ({})", EscapeForTerminal(q.basis()));
    out += Row(EscapeForTerminal(QuantileValue(q.resource(), 0).first), text);
  }
  return out;
}

}  // namespace

std::string AnalyseHeader(const Context& context, const AnalyseRun& run) {
  return SectionTitle(context, "EXPANSE ANALYSE") +
         Row("target", Text(run.target()).value_or("unknown")) +
         Row("job_name", Text(run.job_name()).value_or("unknown")) +
         Row("run", EscapeForTerminal(run.run_id())) + Row("status", RunStatusText(run.status()));
}

std::string AnalyseText(const Context& context, const AnalyseRun& run, std::string_view jobs,
                        bool no_patch) {
  const auto& result = run.result();
  return AnalyseHeader(context, run) + "\n" + Recommendation(context, result) +
         FailureRisk(context, result) + Optimisation(context, result, no_patch) +
         Evidence(context, result, jobs) + Prediction(context, result);
}

bool HasPatch(const AnalyseResult& result) {
  return !result.right_size().artifact_id().empty() && !result.right_size().class_().empty() &&
         result.right_size().class_() != "none";
}

std::string FollowUpCommands(const AnalyseRun& run) {
  const std::string run_id = ShellQuote(run.run_id());
  const std::string artifact = ShellQuote(run.result().right_size().artifact_id());
  return fmt::format(
      "expanse analyse diff {0} --artefact {1}   # inspect\n"
      "expanse analyse apply {0} --artefact {1}  # apply locally\n",
      run_id, artifact);
}

}  // namespace expanse::cli
