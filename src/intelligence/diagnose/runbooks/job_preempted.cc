// SPDX-License-Identifier: Apache-2.0
// Preemption; and the requeue that a job asked for itself before its limit.
#include <algorithm>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> JobPreempted(const CaseView& view, const Runbook& runbook) {
  const bool state =
      view.StateIs("PREEMPTED") || view.run->ending_cause() == common::v1::ENDING_CAUSE_PREEMPTED;
  auto f = PatternFinding(view, runbook);
  // A node that its provider may take back, and that went away: it was taken back.
  const Signal* node = view.Best("node_failure");
  for (size_t i = 0; i < view.in->observations.size() && !f && node != nullptr; ++i) {
    const auto& o = view.in->observations[i];
    const std::string text = ToLower(o.key + "=" + o.value);
    if (text.find("preemptible") == std::string::npos && text.find("spot") == std::string::npos)
      continue;
    f = Finding{};
    f->failure_class = runbook.failure_class;
    f->strength = 90;
    f->what.push_back(Opening(view));
    Claim why = Quote(*node);
    why.text += " and the node is one that its provider may take back (" + Shorten(o.key, 60) +
                " = " + Shorten(o.value, 100) + "): " + DefinitionOf(runbook.failure_class) + ".";
    why.facts.push_back(view.observations[i]);
    for (const auto& s : view.signals)
      if (s.hit.failure_class == "node_failure" ||
          s.hit.failure_class == "pod_evicted_node_pressure")
        why.facts.push_back(s.fact);
    f->why.push_back(std::move(why));
  }
  if (!state) return f;
  if (!f) {
    f = Finding{};
    f->failure_class = runbook.failure_class;
    f->why.push_back({"the scheduler's final state is a preemption: " +
                          DefinitionOf(runbook.failure_class) + ".",
                      FactList({view.state, view.reason, view.cause})});
  }
  f->strength = 96;
  Claim what{"the scheduler preempted the execution",
             FactList({view.state, view.cause, view.elapsed})};
  if (view.elapsed_s) what.text += " after " + DurationText(*view.elapsed_s);
  what.text += ".";
  f->what = {std::move(what)};
  return f;
}

std::optional<Finding> RequeuedNearTimeLimit(const CaseView& view, const Runbook& runbook) {
  const bool requeued =
      view.run->ending_cause() == common::v1::ENDING_CAUSE_REQUEUED || view.StateIs("REQUEUED");
  // The request comes from the job: its trap prints the signal or calls scontrol requeue.
  static constexpr std::string_view kTraces[] = {"requeue",   "sigusr1", "sigusr2", "signal 10",
                                                 "signal 12", "usr1",    "usr2"};
  FactId trace = 0;
  std::string quoted;
  for (const auto& text : view.in->texts) {
    if (text.kind != TextKind::kProgram) continue;
    const std::string lower = ToLower(std::string_view(text.content).substr(0, 256U << 10));
    for (std::string_view word : kTraces) {
      const size_t at = lower.find(word);
      if (at == std::string::npos || trace != 0) continue;
      const size_t begin = text.content.rfind('\n', at) + 1;  // npos + 1 is 0
      const size_t end = std::min(text.content.find('\n', at), text.content.size());
      quoted = Shorten(std::string_view(text.content).substr(begin, end - begin), kMaxQuotedLine);
      trace = -1;
      for (size_t i = 0; i < view.ledger.facts().size(); ++i)
        if (view.ledger.facts()[i].value() == quoted) trace = static_cast<FactId>(i + 1);
    }
  }
  if (!requeued && trace == 0) return std::nullopt;
  if (!view.elapsed_s || !view.time_limit_s || *view.time_limit_s == 0) return std::nullopt;
  const double share =
      static_cast<double>(*view.elapsed_s) / static_cast<double>(*view.time_limit_s);
  if (share < 0.8 || trace == 0) return std::nullopt;
  if (!requeued && view.StateIs("COMPLETED")) return std::nullopt;
  Finding f;
  f.failure_class = runbook.failure_class;
  f.strength = requeued ? 90 : 86;
  f.what.push_back(Opening(view));
  Claim why{"the run had used " + std::to_string(static_cast<int>(share * 100)) +
                " % of its time limit, and its log speaks of the requeue: " +
                DefinitionOf(runbook.failure_class) + ".",
            FactList({view.elapsed, view.time_limit, trace > 0 ? trace : 0, view.state})};
  f.why.push_back(std::move(why));
  return f;
}

}  // namespace expanse::intelligence::diagnose
