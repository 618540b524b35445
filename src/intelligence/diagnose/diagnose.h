// SPDX-License-Identifier: Apache-2.0
// The diagnosis of one execution from its evidence: deterministic, without I/O, without a language
// model. Evidence becomes facts (case_view), runbooks turn facts into findings, the first cause is
// chosen, and the answer is composed of claims that each cite their facts.
//
// Confidence says how decisive the chosen finding is: high from strength 85 on, when no rival of
// another class comes close; medium from 60; low below, and then the answer names what is missing.
#pragma once

#include <string_view>
#include <vector>

#include "expanse/intelligence/v1/intelligence.pb.h"
#include "intelligence/diagnose/case_inputs.h"
#include "intelligence/diagnose/case_view.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

/// Part of every cache key: a new engine does not answer with an old one's words.
inline constexpr std::string_view kEngineVersion = "diagnose-1";

/// Never fails: thin evidence gives a weak answer that says so.
v1::DiagnoseResult Diagnose(const CaseInputs& inputs);

/// The finding that explains the others, and its label.
struct Verdict {
  Finding finding;
  v1::ConfidenceLabel confidence = v1::CONFIDENCE_LABEL_LOW;
  bool failed = false;     // the run failed or went wrong (DiagnoseResult.failed)
  bool for_agent = false;  // and an agent with the sources may find out more: a prompt is made
};
Verdict ChooseFirstCause(const CaseView& view);

/// Claims without a fact are dropped: nothing is printed that stands on nothing.
void Compose(CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result);
/// Snapshot, field status, recurrence, evidence list (display.cc).
void FillDisplay(const CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result);
/// The eight stages with what each found (pipeline.cc).
void FillPipeline(const CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result);

/// "failed", "succeeded", "cancelled", "running", "queued", "unknown".
std::string_view StateName(const CaseView& view);

}  // namespace expanse::intelligence::diagnose
