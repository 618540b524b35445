// SPDX-License-Identifier: Apache-2.0
// help, completion and man: the table of commands as text.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace expanse::cli {
namespace {

Result<int> RunHelp(Context& context, const Args& args) {
  const auto& words = args.positionals();
  if (words.empty()) {
    context.terminal.Out(HelpOverview());
    return kExitOk;
  }
  const auto match = FindCommand(words);
  if (match && match->words == words.size()) {
    context.terminal.Out(HelpCommand(*match->command));
    return kExitOk;
  }
  for (const auto* command : Commands()) {
    if (words.size() != 1 || !command->name.starts_with(words[0] + " ")) continue;
    context.terminal.Out(HelpGroup(words[0]));
    return kExitOk;
  }
  return UsageFailure(context, kHelp, fmt::format("there is no command '{}'", Join(words, " ")));
}

Result<int> RunCompletion(Context& context, const Args& args) {
  const std::string& shell = args.positionals()[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    return UsageFailure(context, kCompletion,
                        fmt::format("no completion for '{}'; bash, zsh or fish", shell));
  context.terminal.Out(CompletionScript(shell));
  return kExitOk;
}

Result<int> RunMan(Context& context, const Args& args) {
  const bool markdown = args.Text("--format").value_or("man") == "markdown";
  context.terminal.Out(markdown ? MarkdownReference() : ManPage());
  return kExitOk;
}

constexpr Positional kHelpWords[] = {
    {.name = "command", .doc = "whose flags to show", .required = false, .repeat = true}};
constexpr Example kHelpExamples[] = {{"expanse help"}, {"expanse help compute install"}};

constexpr Positional kShell[] = {{.name = "shell", .doc = "bash, zsh or fish"}};
constexpr Example kCompletionExamples[] = {
    {"source <(expanse completion bash)", "this shell only"},
    {"expanse completion bash > /etc/bash_completion.d/expanse", "every shell"},
    {"expanse completion zsh > \"${fpath[1]}/_expanse\""},
    {"expanse completion fish > ~/.config/fish/completions/expanse.fish"},
};

constexpr std::string_view kFormats[] = {"man", "markdown"};
constexpr Flag kManFlags[] = {{.name = "--format",
                               .kind = FlagKind::kChoice,
                               .doc = "man page source or a markdown page",
                               .default_text = "man",
                               .choices = kFormats}};
constexpr Example kManExamples[] = {{"expanse man | man -l -"},
                                    {"expanse man > /usr/local/share/man/man1/expanse.1"}};

}  // namespace

const Command kHelp{
    .name = "help",
    .group = kGroupOther,
    .summary = "explains a command",
    .positionals = kHelpWords,
    .examples = kHelpExamples,
    .run = RunHelp,
};

const Command kCompletion{
    .name = "completion",
    .group = kGroupOther,
    .summary = "prints a completion script for a shell",
    .positionals = kShell,
    .examples = kCompletionExamples,
    .run = RunCompletion,
};

const Command kMan{
    .name = "man",
    .group = kGroupOther,
    .summary = "prints the manual of every command",
    .flags = kManFlags,
    .examples = kManExamples,
    .run = RunMan,
};

}  // namespace expanse::cli
