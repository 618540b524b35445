// SPDX-License-Identifier: Apache-2.0
// SIGKILL whose sender the evidence does not name.
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> UnknownKill(const CaseView& view, const Runbook&) {
  const Signal* line = view.Best("unknown_kill");
  const bool by_signal = view.signal == 9 && !view.signal_is_guess;
  if (line == nullptr && !by_signal) return std::nullopt;
  Finding f;
  f.failure_class = "unknown_kill";
  f.strength = by_signal && line != nullptr ? 72 : (by_signal ? 70 : line->hit.strength);
  f.what.push_back(Opening(view));
  Claim kill{
      "a process of the run was ended by SIGKILL, and nothing in the evidence names who "
      "sent it.",
      FactList({line != nullptr ? line->fact : 0, by_signal ? view.exit : 0})};
  if (line != nullptr) {
    f.stream = line->stream;
    f.at = line->hit.begin;
  }
  f.why.push_back(std::move(kill));
  if (view.peak_enforced && view.memory_limit && *view.memory_limit > 0) {
    const auto percent = *view.peak_enforced * 100 / *view.memory_limit;
    f.why.push_back({"The measured memory peak of " + MemoryText(*view.peak_enforced) + " is " +
                         std::to_string(percent) + " % of the " + MemoryText(*view.memory_limit) +
                         " limit, and no out-of-memory event was recorded.",
                     FactList({view.peak, view.limit})});
  } else {
    f.missing.push_back("the memory peak beside its limit");
  }
  f.missing.push_back("the out-of-memory counter of the cgroup and the node's kernel log");
  return f;
}

}  // namespace expanse::intelligence::diagnose
