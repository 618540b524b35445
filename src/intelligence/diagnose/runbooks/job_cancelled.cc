// SPDX-License-Identifier: Apache-2.0
// A cancellation, and by whom as far as the scheduler says.
#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> JobCancelled(const CaseView& view, const Runbook& runbook) {
  const bool by_user = view.run->ending_cause() == common::v1::ENDING_CAUSE_USER_CANCEL;
  const bool by_admin = view.run->ending_cause() == common::v1::ENDING_CAUSE_ADMIN_CANCEL;
  const bool state = view.StateIs("CANCELLED");
  auto pattern = PatternFinding(view, runbook);
  // SIGINT comes from a person at a terminal or from a tool that stands for one.
  if (view.signal == 2 && !by_user && !by_admin && !state) {
    Finding f;
    f.failure_class = runbook.failure_class;
    f.strength = 80;
    f.what.push_back(Opening(view));
    f.why.push_back({"SIGINT is how a user at a terminal, or a tool for one, stops a program.",
                     FactList({view.exit})});
    for (const auto& text : view.in->texts)
      if (text.content.find("^C") != std::string::npos && pattern)
        for (FactId id : pattern->why.front().facts) f.why.front().facts.push_back(id);
    return f;
  }
  if (!by_user && !by_admin && !state) return pattern;
  Finding f;
  f.failure_class = runbook.failure_class;
  f.strength = by_user || by_admin ? 95 : 92;
  // Waiting for a dependency, never started, not removed by its owner: the dependency says more.
  if (NeverStarted(view) && StartsWithIgnoreCase(view.run->scheduler_reason(), "Dependency") &&
      view.run->outcome() != common::v1::EXECUTION_OUTCOME_CANCELLED)
    f.strength = 60;
  const bool started = view.run->has_start_time_ms() || view.elapsed_s.value_or(0) > 0;
  Claim what{"the execution was cancelled", FactList({view.state, view.cause, view.elapsed})};
  const std::string state_text = ToUtf8(view.run->scheduler_state());
  const std::string who = state_text.size() > 13 ? state_text.substr(13) : "";
  if (by_user)
    what.text += " by its own user";
  else if (by_admin)
    what.text += " by an administrator or operator";
  if (!who.empty()) what.text += by_user || by_admin ? " (" + who + ")" : " " + who;
  if (started && view.elapsed_s)
    what.text += " after " + DurationText(*view.elapsed_s);
  else if (!started)
    what.text += " before it started";
  what.text += ".";
  f.what.push_back(std::move(what));
  Claim why{"the scheduler records a cancellation and no failure of the program before it.",
            FactList({view.state, view.reason, view.cause})};
  if (pattern) {
    for (const auto& claim : pattern->why)
      for (FactId id : claim.facts) why.facts.push_back(id);
    f.stream = pattern->stream;
    f.at = pattern->at;
  }
  f.why.push_back(std::move(why));
  AddRelated(view, runbook, f);
  if (!by_user && !by_admin && who.empty())
    f.missing.push_back("who cancelled it: the scheduler did not record a user");
  f.missing.push_back("why it was cancelled: the scheduler records no reason");
  return f;
}

}  // namespace expanse::intelligence::diagnose
