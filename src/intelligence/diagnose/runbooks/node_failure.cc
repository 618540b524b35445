// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> NodeFailure(const CaseView& view, const Runbook& runbook) {
  const bool state = view.StateIs("NODE_FAIL") || view.StateIs("BOOT_FAIL") ||
                     view.run->ending_cause() == common::v1::ENDING_CAUSE_NODE_FAILURE;
  auto f = PatternFinding(view, runbook);
  if (!state) return f;
  if (!f) {
    f = Finding{};
    f->failure_class = runbook.failure_class;
  }
  f->strength = 96;
  Claim what{"the scheduler ended the execution because a node of it failed",
             FactList({view.state, view.cause, view.elapsed})};
  if (view.run->nodes_size() == 1) what.text += " (" + ToUtf8(view.run->nodes(0)) + ")";
  if (view.elapsed_s) what.text += ", after " + DurationText(*view.elapsed_s);
  what.text += ".";
  f->what = {std::move(what)};
  if (f->why.empty())
    f->why.push_back(
        {"the scheduler's final state is a node failure; the program itself reported "
         "no error in the evidence.",
         FactList({view.state, view.reason, view.cause})});
  for (const auto& node : view.in->nodes) {
    if (node.reason().empty()) continue;
    const std::string position = "node " + node.name();
    for (size_t i = 0; i < view.ledger.facts().size(); ++i)
      if (view.ledger.facts()[i].position() == position)
        f->why.push_back({"Node " + ToUtf8(node.name()) + " is now " + ToUtf8(node.state()) +
                              " with the reason \"" + Shorten(node.reason(), 120) + "\".",
                          {static_cast<FactId>(i + 1)}});
  }
  f->missing.push_back("the node's own log, which would say why it failed");
  return f;
}

}  // namespace expanse::intelligence::diagnose
