// SPDX-License-Identifier: Apache-2.0
#include "cli/question.h"

#include "base/strings.h"

namespace expanse::cli {

Result<bool> Ask(Context& context, std::string_view question) {
  for (int tries = 0; tries < 3; ++tries) {
    context.terminal.Out(std::string(question) + " ");
    const auto line = context.terminal.ReadLine(false);
    if (!line.ok()) {
      context.terminal.Out("\n");
      return false;
    }
    const std::string answer = ToLower(Trim(*line));
    if (answer == "y" || answer == "yes") return true;
    if (answer == "n" || answer == "no") return false;
  }
  return false;
}

void PrintText(Context& context, std::string_view text) {
  if (!context.terminal.out_is_terminal()) {
    context.terminal.Out(text);
    return;
  }
  context.terminal.Out(EscapeForTerminal(text, true));
  if (!text.ends_with('\n')) context.terminal.Out("\n");
}

}  // namespace expanse::cli
