// SPDX-License-Identifier: Apache-2.0
// A task failed and the evidence holds no error of its own. The answer says what was looked at.
#include <algorithm>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> TaskFailureUnattributed(const CaseView& view, const Runbook& runbook) {
  const Signal* told = view.Best(runbook.failure_class);
  const bool told_of_failure = told != nullptr && told->hit.strength >= 45;
  if (view.ending != Ending::kFailed && view.ending != Ending::kUnknown && !told_of_failure)
    return std::nullopt;
  Finding f;
  f.failure_class = runbook.failure_class;
  f.strength = 40;
  f.what.push_back(Opening(view));
  for (const auto& s : view.steps) {
    const bool failed = s.step->exit_code() != 0 || s.step->signal() != 0;
    if (!failed || s.step->step_id() == "batch" || s.exit == 0) continue;
    f.what.push_back({"Step " + s.step->step_id() + " (" + ToUtf8(s.step->name()) +
                          ") ended with " + ExitText(*s.step) + ".",
                      FactList({s.exit, s.state})});
    break;
  }
  const Signal* second_hand = view.Best(runbook.failure_class);
  if (second_hand != nullptr && second_hand->hit.strength > 0) {
    Claim quote = Quote(*second_hand);
    quote.text += ", which reports the failure and not its reason.";
    int more = 0;
    for (const auto& s : view.signals)
      if (s.hit.failure_class == runbook.failure_class && s.fact != second_hand->fact && more < 3) {
        quote.facts.push_back(s.fact);
        ++more;
      }
    f.why.push_back(std::move(quote));
    f.stream = second_hand->stream;
    f.at = second_hand->hit.begin;
  } else if (view.last_error_line != 0) {
    f.why.push_back({"no known error message is in the evidence; the last line of the log is \"" +
                         view.last_error_text + "\".",
                     {view.last_error_line}});
  } else if (view.logs_seen) {
    f.why.push_back(
        {"the program wrote nothing to its log, so the evidence holds no error of its "
         "own.",
         FactList({view.logs, view.exit})});
  } else {
    f.why.push_back(
        {"the program's log could not be read, so the evidence holds no error of its "
         "own.",
         FactList({view.logs, view.exit})});
  }
  // A last line that is not an error message is still where the program stopped.
  if (second_hand != nullptr && view.last_error_line != 0 &&
      view.last_error_line != second_hand->fact)
    f.why.push_back(
        {"The last line of the log is \"" + view.last_error_text + "\".", {view.last_error_line}});
  f.missing.push_back("the failing task's own error message");
  return f;
}

}  // namespace expanse::intelligence::diagnose
