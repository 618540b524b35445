// SPDX-License-Identifier: Apache-2.0
// SIGSEGV, SIGILL, SIGFPE, SIGBUS: by the signal itself, by 128+n, by a step, or by a message.
#include <algorithm>

#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

int SignalOf(std::string_view failure_class) {
  if (failure_class == "segmentation_fault") return 11;
  if (failure_class == "illegal_instruction") return 4;
  if (failure_class == "floating_point_exception") return 8;
  return 7;  // bus_error
}

}  // namespace

std::optional<Finding> CrashSignal(const CaseView& view, const Runbook& runbook) {
  const int number = SignalOf(runbook.failure_class);
  auto f = PatternFinding(view, runbook);
  std::vector<FactId> proof;
  int strength = 0;
  if (view.signal == number) {
    // A bare sacct "11:0" is exit code 11 or signal 11; a message decides.
    strength = view.signal_is_guess ? 64 : 92;
    proof.push_back(view.exit);
  }
  for (const auto& s : view.steps)
    if (s.step->signal() == number || s.step->exit_code() == 128 + number) {
      strength = std::max(strength, 90);
      if (s.exit != 0) proof.push_back(s.exit);
      if (s.state != 0) proof.push_back(s.state);
    }
  if (!f && strength == 0) return std::nullopt;
  if (!f) {
    Finding bare;
    bare.failure_class = runbook.failure_class;
    bare.what.push_back(Opening(view));
    bare.why.push_back({"the exit status names signal " + std::to_string(number) + ": " +
                            DefinitionOf(runbook.failure_class) + ".",
                        proof});
    if (view.signal_is_guess)
      bare.why.back().text = "the scheduler reports " + std::to_string(number) +
                             ":0, which stands for signal " + std::to_string(number) +
                             " or for an exit code of that value: most likely " +
                             DefinitionOf(runbook.failure_class) + ".";
    bare.missing.push_back("a core dump or a stack at the crash, which would name the function");
    AddRelated(view, runbook, bare);
    f = std::move(bare);
  } else {
    for (FactId id : proof) f->why.front().facts.push_back(id);
    if (strength > 0) strength = std::max(strength, 92);  // message and status agree
    f->missing.push_back("a core dump or a stack at the crash, which would name the function");
  }
  f->strength = std::max(f->strength, strength);
  return f;
}

}  // namespace expanse::intelligence::diagnose
