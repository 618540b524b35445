// SPDX-License-Identifier: Apache-2.0
// GPUs that were held and not used: by a site's policy message, or by measured utilisation.
#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr int64_t kIdleAfterSeconds = 1800;  // shorter than this, loading data explains it
constexpr double kIdleUtilisation = 1.0;     // percent, mean over the run

// Every observed device idle and empty. Nothing when no device was observed.
bool AllDevicesIdle(const CaseView& view, std::vector<FactId>* facts) {
  bool any = false;
  for (size_t i = 0; i < view.in->observations.size(); ++i) {
    const auto& o = view.in->observations[i];
    const bool util = o.key.find("util_pct") != std::string::npos;
    const bool memory = o.key.find("mem_used_bytes") != std::string::npos;
    if (!util && !memory) continue;
    const auto value = ParseDouble(o.value);
    if (!value) continue;
    if (util && *value > kIdleUtilisation) return false;
    if (memory && *value > 1e9) return false;
    any = any || util;
    if (facts->size() < 4) facts->push_back(view.observations[i]);
  }
  return any;
}

}  // namespace

std::optional<Finding> GpuIdleAllocation(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (f) return f;
  if (view.gpus == 0 || !view.elapsed_s || *view.elapsed_s < kIdleAfterSeconds) return std::nullopt;
  if (view.ending != Ending::kRunning && view.ending != Ending::kCancelled &&
      view.ending != Ending::kSucceeded)
    return std::nullopt;
  std::vector<FactId> facts;
  const auto& util = view.run->gpu_utilisation_pct();
  const bool measured_idle = util.has_value() && util.value() <= kIdleUtilisation;
  if (!measured_idle && !AllDevicesIdle(view, &facts)) return std::nullopt;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 88;
  out.what.push_back({"the execution has held " + std::to_string(view.gpus) + " GPUs for " +
                          DurationText(*view.elapsed_s) + ".",
                      FactList({view.gpu_request, view.elapsed})});
  if (facts.empty()) facts = FactList({view.gpu_request});
  out.why.push_back(
      {"the observed devices did no work: " + DefinitionOf(runbook.failure_class) + ".", facts});
  AddRelated(view, runbook, out);
  if (view.last_error_line != 0)
    out.why.push_back(
        {"The last line of the log is \"" + view.last_error_text + "\".", {view.last_error_line}});
  return out;
}

}  // namespace expanse::intelligence::diagnose
