// SPDX-License-Identifier: Apache-2.0
// GPU memory: messages, and library handles that cannot be created while the device is full.
#include <algorithm>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

// The fullest device that was observed, as a share; its facts.
double FullestDevice(const CaseView& view, std::vector<FactId>* facts) {
  double fullest = 0;
  for (size_t i = 0; i < view.in->observations.size(); ++i) {
    const auto& o = view.in->observations[i];
    const size_t at = o.key.rfind("mem_used_bytes");
    if (at == std::string::npos) continue;
    const std::string total_key = o.key.substr(0, at) + "mem_total_bytes";
    for (size_t j = 0; j < view.in->observations.size(); ++j) {
      if (view.in->observations[j].key != total_key) continue;
      const auto used = ParseDouble(o.value);
      const auto total = ParseDouble(view.in->observations[j].value);
      if (!used || !total || *total <= 0 || *used / *total <= fullest) continue;
      fullest = *used / *total;
      *facts = {view.observations[i], view.observations[j]};
    }
  }
  const auto& run = *view.run;
  if (run.gpu_memory_peak_bytes().has_value() && run.gpu_memory_total_bytes() > 0) {
    const double share = static_cast<double>(run.gpu_memory_peak_bytes().value()) /
                         static_cast<double>(run.gpu_memory_total_bytes());
    fullest = std::max(fullest, share);
  }
  return fullest;
}

}  // namespace

std::optional<Finding> GpuOutOfMemory(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (!f) return std::nullopt;
  std::vector<FactId> facts;
  const double fullest = FullestDevice(view, &facts);
  if (fullest >= 0.9) {
    f->strength = std::max(f->strength, std::min(97, f->strength + 30));
    if (!facts.empty())
      f->why.push_back({"The fullest observed device used " +
                            std::to_string(static_cast<int>(fullest * 100)) + " % of its memory.",
                        facts});
  }
  // Other processes on the device, when they were listed.
  for (size_t i = 0; i < view.in->observations.size(); ++i)
    if (view.in->observations[i].key.find("processes") != std::string::npos &&
        view.in->observations[i].key.find("name") != std::string::npos)
      f->why.push_back(
          {"A process " + Shorten(view.in->observations[i].value, 60) + " was on the device.",
           {view.observations[i]}});
  return f;
}

}  // namespace expanse::intelligence::diagnose
