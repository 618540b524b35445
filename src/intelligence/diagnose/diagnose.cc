// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/diagnose.h"

#include <set>

#include "base/strings.h"
#include "domain/failure_class.h"
#include "intelligence/prompt/agent_prompt.h"

namespace expanse::intelligence::diagnose {
namespace {

void AddClaims(const std::vector<Claim>& claims, std::string* text, v1::DiagnoseResult* result) {
  for (const auto& claim : claims) {
    if (claim.facts.empty() || claim.text.empty()) continue;
    if (!text->empty() && text->back() != ' ') text->push_back(' ');
    text->append(claim.text);
    auto* out = result->add_claims();
    out->set_text(claim.text);
    std::set<FactId> cited;
    for (FactId id : claim.facts)
      if (id > 0 && cited.insert(id).second) out->add_fact_ids(Ledger::Name(id));
  }
}

// The first message of a consequence in the stream of the cause.
std::optional<Claim> Consequence(const CaseView& view, const Finding& finding) {
  if (finding.stream == 0) return std::nullopt;
  int depth = 0;
  FactId cause = 0;
  for (const auto& runbook : Runbooks())
    if (runbook.failure_class == finding.failure_class) depth = runbook.depth;
  for (const auto& s : view.signals)
    if (s.stream == finding.stream && s.hit.begin == finding.at) cause = s.fact;
  if (depth < 3 || cause == 0) return std::nullopt;
  for (const auto& s : view.signals) {
    if (s.stream != finding.stream || s.hit.begin <= finding.at || s.hit.strength < 50) continue;
    for (const auto& runbook : Runbooks())
      if (runbook.failure_class == s.hit.failure_class && runbook.depth < depth)
        return Claim{"The later message \"" + s.hit.line + "\" is read as its consequence.",
                     FactList({s.fact, cause})};
  }
  return std::nullopt;
}

}  // namespace

std::string_view StateName(const CaseView& view) {
  switch (view.ending) {
    case Ending::kQueued:
      return "queued";
    case Ending::kRunning:
      return "running";
    case Ending::kSucceeded:
      return "succeeded";
    case Ending::kFailed:
      return "failed";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kUnknown:
      return "unknown";
  }
  return "unknown";
}

void Compose(CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result) {
  std::vector<Claim> why = verdict.finding.why;
  if (auto later = Consequence(view, verdict.finding)) why.push_back(std::move(*later));
  std::vector<FactId> missing;
  std::string names;
  for (const auto& m : verdict.finding.missing) {
    missing.push_back(view.ledger.NotSeen("evidence", "missing", m));
    names += (names.empty() ? "" : "; ") + m;
  }
  if (!missing.empty() && verdict.confidence != v1::CONFIDENCE_LABEL_HIGH)
    why.push_back({"Not in the evidence: " + names + ".", missing});
  view.ledger.NotSeeable("stacks", "attribution", "no stack sampler is part of this collection");

  // A success has no cause to tell; its claims are kept beside the result all the same.
  std::string what_text;
  std::string why_text;
  AddClaims(verdict.finding.what, &what_text, result);
  AddClaims(why, &why_text, result);
  const bool nothing_to_tell =
      view.ending == Ending::kSucceeded && verdict.finding.failure_class == domain::kNoFailure;
  if (!nothing_to_tell && !what_text.empty())
    result->set_root_cause("What happened: " + what_text +
                           (why_text.empty() ? "" : " Why: " + why_text));
  result->set_confidence(verdict.confidence);
  for (const auto& fact : view.ledger.facts()) *result->add_facts() = fact;
}

v1::DiagnoseResult Diagnose(const CaseInputs& inputs) {
  v1::DiagnoseResult result;
  CaseView view = BuildView(inputs);
  const Verdict verdict = ChooseFirstCause(view);
  Compose(view, verdict, &result);
  FillDisplay(view, verdict, &result);
  result.set_failed(verdict.failed);
  if (verdict.for_agent) result.set_agent_prompt(prompt::BuildAgentPrompt(inputs, result));
  FillPipeline(view, verdict, &result);
  return result;
}

}  // namespace expanse::intelligence::diagnose
