// SPDX-License-Identifier: Apache-2.0
// Which finding is the first cause. Failures cascade: the deeper class explains the others, and of
// two that are as deep the earlier line does.
#include "intelligence/diagnose/first_cause.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "domain/failure_class.h"
#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

const Signal* SignalOf(const CaseView& view, const Candidate& c) {
  for (const auto& s : view.signals)
    if (s.hit.failure_class == c.finding.failure_class && s.stream == c.finding.stream &&
        s.hit.begin == c.finding.at)
      return &s;
  return nullptr;
}

// The program went on after the line: it counted further steps or said that it finished.
bool WorkWentOn(const CaseView& view, const Candidate& c) {
  const Signal* signal = SignalOf(view, c);
  if (signal == nullptr || signal->kind != TextKind::kProgram) return false;
  for (FactId later : {view.progress, view.success_line}) {
    if (later == 0) continue;
    const auto& fact = view.ledger.Get(later);
    if (fact.source() != signal->source) return true;  // order unknown; do not accuse
    const size_t at = fact.position().find("bytes ");
    if (at == std::string::npos) continue;
    if (std::strtoll(fact.position().c_str() + at + 6, nullptr, 10) > signal->hit.begin)
      return true;
  }
  return false;
}

bool FromProgram(const CaseView& view, const Candidate& c) {
  const Signal* signal = SignalOf(view, c);
  return signal != nullptr && signal->kind == TextKind::kProgram;
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether a finding may name the cause of a run that ended as this one did.
bool Admissible(const CaseView& view, const Candidate& c) {
  const std::string_view name = c.finding.failure_class;
  const int strength = c.finding.strength;
  // What keeps a job from starting did not keep one that ran; a scheduler's early event is past.
  if (IsOneOf(name,
              {"scheduling_unsatisfiable", "invalid_job_request", "dependency_never_satisfied"}) &&
      (view.ending == Ending::kRunning || view.ending == Ending::kSucceeded))
    return false;
  switch (view.ending) {
    case Ending::kSucceeded:
      // The scheduler says success. A kill inside the run, or an error with which the log ends,
      // says otherwise.
      if (name == "gpu_idle_allocation") return strength >= 85;
      if (name == "host_out_of_memory" && strength >= 95) return !WorkWentOn(view, c);
      if (name == domain::kUnattributed) return view.success_line == 0;
      return strength >= 88 && c.depth >= 3 && c.depth <= 4 && FromProgram(view, c) &&
             !WorkWentOn(view, c) && view.success_line == 0;
    case Ending::kQueued:
      return (c.depth == 6 && strength >= 70) || strength >= 90;
    case Ending::kRunning:
      return strength >= 80 && !WorkWentOn(view, c) && name != "walltime_exceeded";
    case Ending::kCancelled:
      if (IsOneOf(name, {"job_cancelled", "dependency_never_satisfied", "gpu_idle_allocation",
                         "job_preempted", "node_failure", "requeued_near_time_limit", "job_hang"}))
        return true;
      return strength >= 93 && c.depth >= 4 && !WorkWentOn(view, c);
    case Ending::kFailed:
      if (view.run->outcome() == common::v1::EXECUTION_OUTCOME_TIMEOUT &&
          name != "walltime_exceeded")
        return strength >= 80 && !WorkWentOn(view, c);
      return true;
    case Ending::kUnknown:
      return true;
  }
  return true;
}

// True when a is the better one; a total order, by the class at last.
bool IsBetter(const Candidate& a, const Candidate& b) {
  const auto rank = [](const Candidate& c) { return std::tuple(c.Score(), c.depth); };
  if (rank(a) != rank(b)) return rank(a) > rank(b);
  return a.finding.failure_class < b.finding.failure_class;
}

v1::ConfidenceLabel Label(int strength, bool rivalled) {
  if (strength >= 85) return rivalled ? v1::CONFIDENCE_LABEL_MEDIUM : v1::CONFIDENCE_LABEL_HIGH;
  if (strength >= 60) return rivalled ? v1::CONFIDENCE_LABEL_LOW : v1::CONFIDENCE_LABEL_MEDIUM;
  return v1::CONFIDENCE_LABEL_LOW;
}

}  // namespace

const Candidate* ChooseAmong(const std::vector<Candidate>& candidates) {
  std::map<int, int> best_of_stream;
  for (const Candidate& c : candidates) {
    const auto [it, is_new] = best_of_stream.try_emplace(c.finding.stream, c.Score());
    if (!is_new) it->second = std::max(it->second, c.Score());
  }
  // "Close" is not transitive, so it is asked of the best of a stream alone.
  std::map<int, const Candidate*> winners;
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    const int stream = c.finding.stream;
    if (stream == 0) {  // of no stream: nothing is before it
      if (best == nullptr || IsBetter(c, *best)) best = &c;
      continue;
    }
    if (best_of_stream[stream] - c.Score() > kCloseScores) continue;
    const Candidate*& winner = winners[stream];
    if (winner == nullptr || c.finding.at < winner->finding.at ||
        (c.finding.at == winner->finding.at && IsBetter(c, *winner)))
      winner = &c;
  }
  for (const auto& [stream, winner] : winners)
    if (best == nullptr || IsBetter(*winner, *best)) best = winner;
  return best;
}

Verdict ChooseFirstCause(const CaseView& view) {
  std::vector<Candidate> candidates;
  for (const auto& runbook : Runbooks()) {
    auto finding =
        runbook.run != nullptr ? runbook.run(view, runbook) : PatternFinding(view, runbook);
    if (!finding) continue;
    Candidate c{std::move(*finding), runbook.depth};
    if (Admissible(view, c)) candidates.push_back(std::move(c));
  }
  Verdict verdict;
  const Candidate* best = ChooseAmong(candidates);
  if (best == nullptr) {
    verdict.finding = NothingFailed(view);
    const bool ended_well = view.ending == Ending::kSucceeded ||
                            view.run->ending_cause() == common::v1::ENDING_CAUSE_REQUEUED;
    verdict.confidence = ended_well ? v1::CONFIDENCE_LABEL_HIGH : v1::CONFIDENCE_LABEL_MEDIUM;
    return verdict;
  }
  // A rival is a finding about as good that the chosen one does not come before or explain.
  bool rivalled = false;
  for (const auto& c : candidates) {
    if (&c == best || c.finding.strength < 60) continue;
    const bool explained = c.depth < best->depth ||
                           (c.finding.stream != 0 && c.finding.stream == best->finding.stream &&
                            c.finding.at >= best->finding.at);
    if (!explained && best->Score() - c.Score() < kCloseScores) rivalled = true;
  }
  verdict.finding = best->finding;
  verdict.confidence = Label(best->finding.strength, rivalled);
  verdict.failed =
      view.ending != Ending::kQueued &&
      (view.ending != Ending::kCancelled || best->finding.failure_class != "job_cancelled");
  // What the cluster did to the run (preempted, node lost) is in none of its sources.
  verdict.for_agent =
      verdict.failed && view.ending != Ending::kCancelled && view.ending != Ending::kUnknown;
  return verdict;
}

}  // namespace expanse::intelligence::diagnose
