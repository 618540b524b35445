// SPDX-License-Identifier: Apache-2.0
// Host memory: a kill by the out-of-memory handler, or a refused allocation.
#include <algorithm>

#include "base/strings.h"
#include "domain/failure_class.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {
namespace {

struct Proof {
  int strength = 0;
  bool killed = false;  // else an allocation was refused
  std::vector<FactId> facts;
  const StepView* step = nullptr;  // the victim, when it was a step of a job that went on
  const Signal* signal = nullptr;
};

void Raise(Proof& proof, int strength, FactId fact) {
  proof.strength = std::max(proof.strength, strength);
  if (fact != 0 && std::find(proof.facts.begin(), proof.facts.end(), fact) == proof.facts.end())
    proof.facts.push_back(fact);
}

Proof FindProof(const CaseView& view) {
  Proof proof;
  if (view.StateIs("OUT_OF_MEMORY")) Raise(proof, 97, view.state);
  if (view.run->ending_cause() == common::v1::ENDING_CAUSE_MEMORY_LIMIT)
    Raise(proof, 95, view.cause);
  if (view.run->outcome() == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY)
    Raise(proof, 95, view.outcome);
  if (view.oom_kills > 0) Raise(proof, 96, view.oom);
  FactId observed = 0;
  if (const auto count = view.Observed("oom_kill", &observed);
      count && *count != "0" && !count->empty())
    Raise(proof, 96, observed);
  for (const auto& s : view.steps) {
    const bool oom = StartsWithIgnoreCase(s.step->scheduler_state(), "OUT_OF_ME") ||
                     s.step->oom_kills() > 0 ||
                     s.step->outcome() == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY;
    if (!oom) continue;
    Raise(proof, 96, s.state);
    Raise(proof, 96, s.oom);
    if (s.step->step_id() != "batch" && proof.step == nullptr) proof.step = &s;
  }
  if (view.run->derived_exit_code() == 125 && view.StateIs("COMPLETED"))
    Raise(proof, 70, view.exit);
  proof.killed = proof.strength >= 95;
  for (const auto& s : view.signals) {
    if (s.hit.failure_class != "host_out_of_memory") continue;
    if (proof.signal == nullptr || s.hit.strength > proof.signal->hit.strength) proof.signal = &s;
    if (proof.facts.size() < 6) Raise(proof, s.hit.strength, s.fact);
    if (s.hit.strength >= 91) proof.killed = true;
  }
  return proof;
}

// A kill without a message, at the limit: usage within 2 % of the limit speaks for the limit.
void ConsiderUsage(const CaseView& view, Proof& proof) {
  if (proof.strength >= 90 || !view.peak_enforced || !view.memory_limit) return;
  const double share =
      static_cast<double>(*view.peak_enforced) / static_cast<double>(*view.memory_limit);
  const Signal* kill = view.Best("unknown_kill");
  const bool was_killed = kill != nullptr || (view.signal == 9 && !view.signal_is_guess);
  if (share >= 0.98 && was_killed) {
    proof.killed = true;
    Raise(proof, 86, view.peak);
    Raise(proof, 86, view.limit);
    Raise(proof, 86, kill != nullptr ? kill->fact : view.exit);
  } else if (share >= 0.95 && was_killed) {
    proof.killed = true;
    Raise(proof, 80, view.peak);
    Raise(proof, 80, view.limit);
  }
}

std::string LimitFlag(const common::v1::Execution& run) {
  const std::string& form = run.requested().memory_form();
  if (form == "default") return " (the partition's default)";
  if (!form.empty()) return " (--" + form + ")";
  return "";
}

Claim WhatHappened(const CaseView& view, const Proof& proof) {
  Claim claim;
  claim.facts = proof.facts;
  if (!proof.killed) {
    claim.text = "the program was refused host (CPU) memory";
    if (view.memory_limit)
      claim.text +=
          " under its " + MemoryText(*view.memory_limit) + " limit" + LimitFlag(*view.run);
    claim.text += " and ended.";
  } else {
    const bool job_went_on = proof.step != nullptr && !view.StateIs("OUT_OF_MEMORY");
    claim.text = job_went_on ? "step " + proof.step->step->step_id() + " (" +
                                   ToUtf8(proof.step->step->name()) + ") was killed at the run's "
                             : "the execution was killed at its ";
    if (view.memory_limit) claim.text += MemoryText(*view.memory_limit) + " ";
    claim.text += "host (CPU) RAM limit" + LimitFlag(*view.run) + " by the out-of-memory handler";
    if (job_went_on && !view.run->scheduler_state().empty())
      claim.text +=
          ", while the scheduler reports the job as " + ToUtf8(view.run->scheduler_state());
    claim.text += ".";
  }
  if (view.limit != 0) claim.facts.push_back(view.limit);
  return claim;
}

// The kernel's own counter misses nothing; a sampler misses what lies between two samples.
bool WasSampled(const common::v1::MeasuredInt64& peak) {
  return peak.bound() == common::v1::BOUND_AT_LEAST &&
         (peak.reason().empty() || peak.reason().find("sampled") != std::string::npos);
}

// A kill at the limit censors the peak: it is a floor.
Claim Demand(const CaseView& view, const Proof& proof) {
  const std::string bound = view.memory_limit ? MemoryText(*view.memory_limit) : "the limit";
  Claim claim;
  claim.facts = FactList({view.peak, view.limit});
  if (claim.facts.empty()) claim.facts = proof.facts;
  if (view.peak_enforced)
    claim.text =
        std::string(WasSampled(view.run->memory_peak_enforced()) ? "The sampled" : "The recorded") +
        " peak of " + MemoryText(*view.peak_enforced) +
        " is a floor, not the demand: the kill at the limit proves true demand exceeds " + bound +
        " by an unknown margin.";
  else
    claim.text = "The demand was not measured: the kill at the limit proves that it exceeds " +
                 bound + " by an unknown margin.";
  return claim;
}

std::optional<int64_t> PeakOf(const common::v1::Execution& run, bool* is_need) {
  *is_need = run.memory_need().has_value();
  if (*is_need) return run.memory_need().value();
  if (run.memory_peak_enforced().has_value()) return run.memory_peak_enforced().value();
  return std::nullopt;
}

bool Succeeded(const common::v1::Execution& run) {
  return run.outcome() == common::v1::EXECUTION_OUTCOME_SUCCESS;
}

// The most similar completed run that needed more than this run had; the newest of equals.
void AddEstimate(const CaseView& view, Finding& finding) {
  const data::v1::RecordedRun* best = nullptr;
  int64_t best_peak = 0;
  bool best_need = false;
  int completed = 0;
  for (const auto& r : view.in->similar) {
    if (!Succeeded(r.execution())) continue;
    bool is_need = false;
    const auto peak = PeakOf(r.execution(), &is_need);
    if (!peak) continue;
    ++completed;
    if (view.memory_limit && *peak <= *view.memory_limit) continue;
    if (best == nullptr || r.similarity() > best->similarity()) {
      best = &r;
      best_peak = *peak;
      best_need = is_need;
    }
  }
  if (best == nullptr) {
    finding.missing.push_back(completed == 0
                                  ? "a completed similar run, whose peak would estimate the demand"
                                  : "a completed similar run that needed more than this limit");
    return;
  }
  // The ledger is part of the view; facts of similar runs are added when the view is built.
  Claim claim;
  claim.text = "A completed similar run measured a " + MemoryText(best_peak) +
               (best_need ? " peak host RSS" : " peak of host memory with page cache") +
               ", the best available estimate of this workload's true demand.";
  for (size_t i = 0; i < view.ledger.facts().size(); ++i)
    if (view.ledger.facts()[i].source() == "execution:" + best->execution().execution_id())
      claim.facts.push_back(static_cast<FactId>(i + 1));
  if (!claim.facts.empty()) finding.what.push_back(std::move(claim));
}

}  // namespace

std::optional<Finding> HostOutOfMemory(const CaseView& view, const Runbook& runbook) {
  Proof proof = FindProof(view);
  ConsiderUsage(view, proof);
  if (proof.strength == 0) return std::nullopt;
  // "Exceeded memory limit at some point" and the like: nobody was killed.
  if (proof.strength < 60 && view.ending != Ending::kFailed) return std::nullopt;
  Finding f;
  f.failure_class = "host_out_of_memory";
  f.strength = proof.strength;
  if (proof.signal != nullptr) {
    f.stream = proof.signal->stream;
    f.at = proof.signal->hit.begin;
  }
  f.what.push_back(WhatHappened(view, proof));
  if (proof.killed) f.what.push_back(Demand(view, proof));
  if (proof.killed) AddEstimate(view, f);
  const Signal* device = view.Best("gpu_out_of_memory");
  Claim why;
  why.facts = proof.facts;
  if (proof.killed && view.exit_code.value_or(0) != 0) why.facts.push_back(view.exit);
  if (!proof.killed && proof.signal != nullptr) {
    why = Quote(*proof.signal);
    why.text += ": a request for host memory was refused.";
  } else if (device == nullptr) {
    why.text =
        "terminal status or logs report a host out-of-memory kill with no device-memory signal.";
  } else {
    why.text = "terminal status or logs report a host out-of-memory kill.";
  }
  f.why.push_back(std::move(why));
  if (proof.signal != nullptr && proof.killed) {
    Claim quote = Quote(*proof.signal);
    quote.text += ".";
    // The published form of the reason is one sentence; the line itself is among the facts.
    f.why.back().facts.push_back(quote.facts[0]);
  }
  for (const auto& s : view.signals)
    if ((s.hit.failure_class == "unknown_kill" || s.hit.failure_class == domain::kUnattributed) &&
        f.why.back().facts.size() < 8)
      f.why.back().facts.push_back(s.fact);
  (void)runbook;
  return f;
}

}  // namespace expanse::intelligence::diagnose
