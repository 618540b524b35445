// SPDX-License-Identifier: Apache-2.0
// The time limit ended the run. Whether the work progressed or waited is said, not judged, unless
// JobHang finds more.
#include <algorithm>
#include <cstdio>

#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

// SLURM looks at limits now and then, so a run may outlive its own by up to a minute or so.
constexpr int64_t kDelayWorthSaying = 5;  // seconds

std::string Decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1 ? "%.2f" : "%.1f", value);
  return text;
}

}  // namespace

std::optional<Finding> WalltimeExceeded(const CaseView& view, const Runbook& runbook) {
  const Signal* line = view.Best(runbook.failure_class);
  const bool state = view.StateIs("TIMEOUT") || view.StateIs("DEADLINE") ||
                     view.run->outcome() == common::v1::EXECUTION_OUTCOME_TIMEOUT;
  if (!state && line == nullptr) return std::nullopt;
  Finding f;
  f.failure_class = runbook.failure_class;
  f.strength = state ? 95 : line->hit.strength;
  Claim what{"the scheduler ended the execution", FactList({view.state, view.outcome})};
  if (view.time_limit_s) {
    what.text += " at its time limit of " + DurationText(*view.time_limit_s);
    what.facts.push_back(view.time_limit);
  } else {
    what.text += " at its time limit";
  }
  if (view.elapsed_s) {
    what.text += ", after " + DurationText(*view.elapsed_s);
    what.facts.push_back(view.elapsed);
  }
  what.text += ".";
  f.what.push_back(std::move(what));
  if (view.run->source_type() == common::v1::SOURCE_TYPE_SLURM && view.elapsed_s &&
      view.time_limit_s && *view.elapsed_s > *view.time_limit_s + kDelayWorthSaying)
    f.what.push_back({"SLURM enforces time limits with a delay, so a run can go on past its own.",
                      FactList({view.elapsed, view.time_limit})});
  if (view.elapsed != 0)
    f.what.push_back({"The runtime is a floor: how long the work would have taken is not known.",
                      FactList({view.elapsed, view.state})});
  Claim why{"the run was still going when the limit passed", FactList({view.state})};
  if (line != nullptr) {
    why = Quote(*line);
    why.text += ": the run was still going when the limit passed";
    f.stream = line->stream;
    f.at = line->hit.begin;
  }
  why.text += ".";
  f.why.push_back(std::move(why));
  if (view.progress != 0)
    f.why.push_back({"It reported progress: the last such line is \"" + view.progress_text + "\".",
                     {view.progress}});
  else if (view.last_error_line != 0 && (line == nullptr || view.last_error_line != line->fact))
    f.why.push_back(
        {"The last line of its log is \"" + view.last_error_text + "\".", {view.last_error_line}});
  if (view.cpu != 0 && view.elapsed_s && *view.elapsed_s > 0) {
    const double cores = view.run->cpu_seconds().value() / static_cast<double>(*view.elapsed_s);
    if (cores < 0.05)
      f.why.push_back({"It used " + Decimal(view.run->cpu_seconds().value()) +
                           " s of processor time in all, so it was waiting rather than computing.",
                       FactList({view.cpu, view.elapsed})});
  } else {
    f.missing.push_back("processor use over the run, which tells computing from waiting");
  }
  return f;
}

}  // namespace expanse::intelligence::diagnose
