// SPDX-License-Identifier: Apache-2.0
// What a shell reports by exit code: 127 not found, 126 not executable; and environments that a
// script activates in vain.
#include <algorithm>

#include "base/strings.h"
#include "intelligence/diagnose/runbooks/runbook.h"

namespace expanse::intelligence::diagnose {

std::optional<Finding> CommandNotFound(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  const bool code = view.exit_code == 127;
  if (!f && !code) return std::nullopt;
  if (!f) {
    f = Finding{};
    f->failure_class = runbook.failure_class;
    f->strength = 74;
    f->what.push_back(Opening(view));
    f->why.push_back(
        {"exit code 127 is a shell's report that a command was not found; the message "
         "with its name is not in the evidence.",
         FactList({view.exit})});
    f->missing.push_back("the shell's message, which names the command");
    return f;
  }
  if (code) {
    f->strength = std::max(f->strength, 95);
    if (view.exit != 0) f->why.front().facts.push_back(view.exit);
    return f;
  }
  // A shell goes on after a missing command: unless the run ended with it, it may not matter.
  const Signal* line = view.Best(runbook.failure_class);
  const bool exec_refused = line->hit.line.find("execve") != std::string::npos ||
                            line->hit.line.find("executable file") != std::string::npos;
  if (!exec_refused && line->fact != view.last_error_line) f->strength -= 14;
  return f;
}

std::optional<Finding> PermissionDenied(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (f && view.exit_code == 126) {
    f->strength = std::max(f->strength, 95);
    if (view.exit != 0) f->why.front().facts.push_back(view.exit);
  }
  return f;
}

namespace {

// Name of the environment that a script activates: "conda activate NAME", "source
// DIR/bin/activate".
std::string ActivatedEnvironment(const CaseView& view, std::string* path) {
  const auto search = [&](const std::string& text) -> std::string {
    for (std::string_view verb : {"conda activate ", "mamba activate ", "source activate "}) {
      const size_t at = text.find(verb);
      if (at == std::string::npos) continue;
      size_t end = at + verb.size();
      while (end < text.size() && text[end] > ' ' && text[end] != ';' && text[end] != '&') ++end;
      return text.substr(at + verb.size(), end - at - verb.size());
    }
    return "";
  };
  if (view.in->bundle)
    for (const auto& file : view.in->bundle->files())
      if (const std::string name = search(file.content()); !name.empty()) {
        *path = file.path();
        return name;
      }
  return "";
}

}  // namespace

std::optional<Finding> EnvironmentActivation(const CaseView& view, const Runbook& runbook) {
  auto f = PatternFinding(view, runbook);
  if (f) return f;
  const Signal* module = view.Best("missing_python_module");
  if (module == nullptr) return std::nullopt;
  FactId which = 0;
  const auto python = view.Observed("which_python", &which);
  std::string script;
  const std::string name = ActivatedEnvironment(view, &script);
  if (!python || name.empty() || python->find(name) != std::string::npos) return std::nullopt;
  Finding out;
  out.failure_class = runbook.failure_class;
  out.strength = 95;
  out.stream = module->stream;
  out.at = module->hit.begin;
  out.what.push_back(Opening(view));
  out.why.push_back({"the script activates the environment " + ToUtf8(name) +
                         ", yet the interpreter that ran was " + Shorten(*python, 120) + ": " +
                         DefinitionOf(runbook.failure_class) + ".",
                     FactList({which, module->fact})});
  AddRelated(view, runbook, out);
  return out;
}

}  // namespace expanse::intelligence::diagnose
