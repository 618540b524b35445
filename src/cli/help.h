// SPDX-License-Identifier: Apache-2.0
// The table of commands as text: help, man page, markdown reference, shell completion.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace expanse::cli {

/// `expanse --help`: every command with its summary, environment, exit codes.
std::string HelpOverview();
/// `expanse compute --help`: the commands below one word.
std::string HelpGroup(std::string_view word);
std::string HelpCommand(const Command& command);

/// A whole man page, expanse(1), in man(7) macros.
std::string ManPage();
/// docs/reference/cli.md.
std::string MarkdownReference();

/// A completion script; shell is "bash", "zsh" or "fish".
std::string CompletionScript(std::string_view shell);

struct NamedText {
  std::string_view name;
  std::string_view doc;
};
std::span<const NamedText> EnvironmentVariables();
std::span<const NamedText> ExitCodes();

/// "expanse metrics [execution-id] metric... [flags]"
std::string UsageLine(const Command& command);
/// "--limit N", "--json", "--systemd=false".
std::string FlagWithValue(const Flag& flag);
/// The doc of a flag with its default, alias and repetition.
std::string FlagDoc(const Flag& flag);

}  // namespace expanse::cli
