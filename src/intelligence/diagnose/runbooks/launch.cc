// SPDX-License-Identifier: Apache-2.0
// Runs that never got to work: launch, dependency, refused request.
#include <algorithm>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

Claim NotStarted(const CaseView& view) {
  Claim claim{view.ending == Ending::kQueued ? "the execution is queued and has not started"
                                             : "the execution ended without having started",
              FactList({view.state, view.cause, view.elapsed})};
  if (view.reason != 0) {
    claim.text += "; the scheduler's reason is " + ToUtf8(view.run->scheduler_reason());
    claim.facts.push_back(view.reason);
  }
  claim.text += ".";
  return claim;
}

}  // namespace

std::optional<Finding> LaunchFailure(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (view.run->ending_cause() != common::v1::ENDING_CAUSE_LAUNCH_FAILURE) return f;
  if (!f) {
    f = Finding{};
    f->failure_class = runbook.failure_class;
    f->why.push_back(
        {"the scheduler records a failed launch: " + DefinitionOf(runbook.failure_class) + ".",
         FactList({view.cause, view.state, view.reason})});
    f->missing.push_back("the node daemon's log, which would name the step of the launch");
  }
  f->strength = 95;
  f->what = {NotStarted(view)};
  return f;
}

std::optional<Finding> DependencyNeverSatisfied(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  const bool waits = StartsWithIgnoreCase(view.run->scheduler_reason(), "Dependency");
  // Removed while it waited for a dependency, and not by its owner: most likely the scheduler's
  // kill_invalid_depend; an administrator's cancel looks the same.
  const bool removed = waits && NeverStarted(view) && view.run->scheduler_state() == "CANCELLED" &&
                       view.run->outcome() != common::v1::EXECUTION_OUTCOME_CANCELLED &&
                       view.run->ending_cause() != common::v1::ENDING_CAUSE_USER_CANCEL &&
                       view.run->ending_cause() != common::v1::ENDING_CAUSE_ADMIN_CANCEL;
  if (!f && !removed) return std::nullopt;
  if (f && !NeverStarted(view)) return std::nullopt;  // a dependency that was met in the end
  if (!f) {
    f = Finding{};
    f->failure_class = runbook.failure_class;
    f->strength = 66;
    f->why.push_back(
        {"it was removed while it waited for a dependency, and not by its own user; a "
         "scheduler removes jobs whose dependency can no longer be met.",
         FactList({view.reason, view.state})});
    f->missing.push_back("the dependency itself and how the other job ended");
  }
  f->what = {NotStarted(view)};
  return f;
}

std::optional<Finding> InvalidJobRequest(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (f) {
    if (NeverStarted(view)) f->what = {NotStarted(view)};
    return f;
  }
  // sbatch refuses, slurmdbd still gets a FAILED 1:0 job that never started and has no nodes.
  const bool refused = view.ending == Ending::kFailed && !view.run->has_start_time_ms() &&
                       view.run->nodes_size() == 0 && view.run->steps_size() == 0 &&
                       view.run->source_type() == common::v1::SOURCE_TYPE_SLURM &&
                       view.elapsed_s.has_value() && *view.elapsed_s == 0 && !view.logs_seen;
  if (!refused) return std::nullopt;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 62;
  out.what = {NotStarted(view)};
  out.why.push_back(
      {"the accounting has a failed job without start, nodes or steps, as the "
       "scheduler leaves it when it refuses a submission.",
       FactList({view.state, view.elapsed, view.exit})});
  out.missing.push_back("the message that sbatch printed when it refused the job");
  return out;
}

}  // namespace expanse::intelligence::diagnose
