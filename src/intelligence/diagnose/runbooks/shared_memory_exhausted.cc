// SPDX-License-Identifier: Apache-2.0
// /dev/shm full: a message, or a SIGBUS next to a small or full shared memory.
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> SharedMemoryExhausted(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (f) return f;
  const Signal* bus = view.Best("bus_error");
  if (bus == nullptr && view.signal != 7) return std::nullopt;
  FactId shm = 0;
  for (std::string_view key :
       {"shm.use_pct", "shm.used_bytes", "shm.size_bytes", "shm_bytes", "shm_size", "shm"})
    if (view.Observed(key, &shm)) break;
  if (shm == 0)
    for (size_t i = 0; i < view.in->observations.size() && shm == 0; ++i)
      if (view.in->observations[i].key.find("shm") != std::string::npos) shm = view.observations[i];
  if (shm == 0) return std::nullopt;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 88;
  out.what.push_back(Opening(view));
  Claim why{"a process received SIGBUS and the shared memory of the run was measured beside it: " +
                DefinitionOf(runbook.failure_class) + ".",
            FactList({bus != nullptr ? bus->fact : view.exit, shm})};
  if (bus != nullptr) {
    out.stream = bus->stream;
    out.at = bus->hit.begin;
  }
  out.why.push_back(std::move(why));
  AddRelated(view, runbook, out);
  return out;
}

}  // namespace expanse::intelligence::diagnose
