// SPDX-License-Identifier: Apache-2.0
// Runs in which nothing failed, that were requeued on purpose, or that have not ended.
#include "base/strings.h"
#include "domain/failure_class.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

Claim Unfinished(const CaseView& view) {
  if (view.ending == Ending::kQueued) {
    Claim claim{"the execution is queued and has not started", FactList({view.state, view.reason})};
    if (view.reason != 0)
      claim.text += "; the scheduler's reason is " + ToUtf8(view.run->scheduler_reason());
    claim.text += ".";
    return claim;
  }
  Claim claim{"the execution is still running", FactList({view.state, view.elapsed})};
  if (view.elapsed_s) claim.text += ", for " + DurationText(*view.elapsed_s) + " so far";
  claim.text += ".";
  return claim;
}

}  // namespace

Finding NothingFailed(const CaseView& view) {
  Finding f;
  f.failure_class = domain::kNoFailure;
  f.strength = 90;
  if (view.ending == Ending::kQueued || view.ending == Ending::kRunning) {
    f.what.push_back(Unfinished(view));
    Claim why{"it has not ended, and the evidence so far shows no failure.",
              FactList({view.state})};
    for (FactId id : view.last_lines)
      if (why.facts.size() < 5) why.facts.push_back(id);
    f.why.push_back(std::move(why));
    return f;
  }
  const bool requeued =
      view.run->ending_cause() == common::v1::ENDING_CAUSE_REQUEUED || view.StateIs("REQUEUED");
  f.what.push_back(Opening(view));
  if (requeued) {
    const int attempt = view.run->attempt();  // 0: not known
    f.why.push_back(
        {std::string("this attempt ended because the job was put back into the queue; ") +
             (attempt > 0 ? "attempt " + std::to_string(attempt + 1) + " follows it as"
                          : "the next attempt is") +
             " an execution of its own.",
         FactList({view.state, view.cause, view.reason})});
    for (const auto& r : view.in->similar) {
      const auto& other = r.execution();
      if (other.native_id() != view.run->native_id() ||
          other.attempt() != view.run->attempt() + 1 || other.scheduler_state().empty())
        continue;
      for (size_t i = 0; i < view.ledger.facts().size(); ++i)
        if (view.ledger.facts()[i].source() == "execution:" + other.execution_id())
          f.why.push_back({"The next attempt is execution " + other.execution_id() + ", in state " +
                               ToUtf8(other.scheduler_state()) + ".",
                           {static_cast<FactId>(i + 1)}});
    }
    return f;
  }
  Claim why{"the scheduler reports success", FactList({view.state, view.exit, view.outcome})};
  if (view.success_line != 0) {
    why.text += " and the log says that the work was finished";
    why.facts.push_back(view.success_line);
  }
  why.text += ".";
  // What the run and its surroundings said last is what a reader would look at.
  for (FactId id : view.last_lines)
    if (why.facts.size() < 6) why.facts.push_back(id);
  f.why.push_back(std::move(why));
  for (const auto& s : view.steps)
    if (s.step->exit_code() != 0 && s.exit != 0)
      f.why.push_back({"Step " + s.step->step_id() + " (" + ToUtf8(s.step->name()) +
                           ") ended with exit code " + std::to_string(s.step->exit_code()) +
                           " and the job went on.",
                       FactList({s.exit, s.state})});
  const Signal* alarming = nullptr;
  for (const auto& s : view.signals)
    if (s.hit.strength >= 50 && (alarming == nullptr || s.hit.strength > alarming->hit.strength))
      alarming = &s;
  if (alarming != nullptr) {
    Claim noise = Quote(*alarming);
    noise.text += ", and the run finished all the same.";
    noise.facts.push_back(view.state);
    f.why.push_back(std::move(noise));
  }
  return f;
}

}  // namespace expanse::intelligence::diagnose
