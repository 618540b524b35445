// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose_text.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/labels.h"
#include "cli/result_rows.h"
#include "cli/text.h"

namespace expanse::cli {
namespace {

using intelligence::v1::DiagnoseResult;
using intelligence::v1::ResourceSnapshot;

Hue HueOf(intelligence::v1::PipelineStageStatus status) {
  switch (status) {
    case intelligence::v1::PIPELINE_STAGE_STATUS_OK:
      return Hue::kGreen;
    case intelligence::v1::PIPELINE_STAGE_STATUS_DEGRADED:
      return Hue::kYellow;
    default:
      return Hue::kNone;
  }
}

std::string Pipeline(const Context& context, const DiagnoseResult& result) {
  constexpr size_t kStatusWidth = 10;
  std::string out = SectionTitle(context, "PIPELINE DIAGNOSE");
  for (const auto& stage : result.pipeline()) {
    const std::string status = StageStatusText(stage.status());
    std::string value = Coloured(context, HueOf(stage.status()), status);
    if (status.size() < kStatusWidth) value.append(kStatusWidth - status.size(), ' ');
    out += Row(EscapeForTerminal(stage.name()), value + EscapeForTerminal(stage.summary()));
  }
  return out;
}

/// The least memory the run would have lived with, or the peak that the limit is enforced on: two
/// different numbers, so the row says which.
std::optional<std::string> HostPeak(const ResourceSnapshot& s) {
  auto value = Gib(s.has_host_ram_observed_peak_bytes(), s.host_ram_observed_peak_bytes());
  if (value && !s.host_ram_observed_peak_kind().empty())
    *value += " (" + EscapeForTerminal(s.host_ram_observed_peak_kind()) + ")";
  return value;
}

std::string Snapshot(const Context& context, const ResourceSnapshot& s) {
  OptionalRows rows(s.unknown());
  rows.Add("runtime_s", "runtime_seconds", Number(s.has_runtime_seconds(), s.runtime_seconds()),
           true);
  rows.Add("gpu_type", "gpu_type", Text(s.gpu_type()));
  rows.Add("cuda_version", "cuda_version", Text(s.cuda_version()));
  rows.Add("gpu_count", "gpu_count", Number(s.has_gpu_count(), s.gpu_count()));
  rows.Add("gpu_utilisation_pct", "gpu_utilisation_pct",
           Percent(s.has_gpu_utilisation_pct(), s.gpu_utilisation_pct()));
  rows.Add("gpu_memory_available_gb", "gpu_memory_available_bytes",
           Gib(s.has_gpu_memory_available_bytes(), s.gpu_memory_available_bytes()));
  rows.Add("gpu_memory_observed_gb", "gpu_memory_observed_bytes",
           Gib(s.has_gpu_memory_observed_bytes(), s.gpu_memory_observed_bytes()));
  rows.Add("cpu_requested", "cpu_requested", Number(s.has_cpu_requested(), s.cpu_requested()),
           true);
  rows.Add("host_ram_observed_peak_gb", "host_ram_observed_peak_bytes", HostPeak(s), true);
  rows.Add("host_ram_requested_gb", "host_ram_requested_bytes",
           Gib(s.has_host_ram_requested_bytes(), s.host_ram_requested_bytes()), true);
  return SectionTitle(context, "RESOURCE SNAPSHOT") + rows.text();
}

/// "What happened: ..." and, on its own line below it, "Why: ...".
std::string RootCause(const std::string& text) {
  constexpr std::string_view kWhy = " Why: ";
  const size_t why = text.find(kWhy);
  if (why == std::string::npos) return Row("root_cause", EscapeForTerminal(text));
  return Row("root_cause", EscapeForTerminal(text.substr(0, why))) +
         Row("", EscapeForTerminal(text.substr(why + 1)));
}

std::string Failure(const Context& context, const DiagnoseResult& result) {
  const auto& display = result.display();
  std::string out = SectionTitle(context, "FAILURE DETECTION");
  out +=
      Row("pattern", display.failure_class().empty() ? Unknown("no failure pattern matched")
                                                     : EscapeForTerminal(display.failure_class()));
  out += Row("confidence", ConfidenceText(result.confidence()));
  if (display.has_recurrence()) out += Row("recurrence", DistributionText(display.recurrence()));
  out += result.root_cause().empty() ? Row("root_cause", Unknown("no evidence explains it"))
                                     : RootCause(result.root_cause());
  return out;
}

}  // namespace

bool IsFailed(const DiagnoseResult& result) {
  return result.failed() || result.display().state() == "failed";
}

std::string DiagnoseText(const Context& context, const intelligence::v1::DiagnoseRun& run) {
  const auto& result = run.result();
  const auto& display = result.display();
  std::string out = Pipeline(context, result);
  out += "\n" + SectionTitle(context, "EXPANSE DIAGNOSE");
  out += Row("target", EscapeForTerminal(display.target()));
  out += Row("job_name", Text(display.job_name()).value_or("unknown"));
  const bool failed = IsFailed(result);
  out += Row("state", Coloured(context, failed ? Hue::kRed : Hue::kNone,
                               Text(display.state()).value_or("unknown")));
  if (failed || !display.failure_class().empty())
    out += Row("failure_class", Text(display.failure_class()).value_or("unknown"));
  out += Row("compute", Text(display.compute()).value_or("unknown"));
  out += "\n" + Snapshot(context, display.resource_snapshot());
  if (failed) out += "\n" + Failure(context, result);
  return out;
}

}  // namespace expanse::cli
