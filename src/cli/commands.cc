// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/help.h"

namespace expanse::cli {
namespace {

constexpr std::array kCommands{
    &kLogin,
    &kStatus,
    &kRefresh,
    &kComputeRegister,
    &kComputeList,
    &kComputeInstall,
    &kComputeUninstall,
    &kExecutions,
    &kMetrics,
    &kAnalyse,
    &kAnalyseDiff,
    &kAnalyseApply,
    &kDiagnose,
    &kUp,
    &kCompletion,
    &kMan,
    &kVersion,
    &kHelp,
};

bool AsksForHelp(std::span<const std::string> words) {
  for (const auto& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h" || word == "--help=true") return true;
  }
  return false;
}

int UnknownCommand(Context& context, std::span<const std::string> words) {
  std::vector<std::string> names;
  for (const auto* command : kCommands) {
    names.emplace_back(command->name);
    if (!command->alias.empty()) names.emplace_back(command->alias);
  }
  // Two words first: "compute instal" is nearer to "compute install" than to anything else.
  std::optional<std::string> nearest;
  if (words.size() > 1) nearest = NearestName(words[0] + " " + words[1], names);
  if (!nearest) nearest = NearestName(words[0], names);
  context.terminal.Err(fmt::format("expanse: unknown command '{}'{}\nSee `expanse help`.\n",
                                   EscapeForTerminal(words[0]),
                                   nearest ? ", did you mean `expanse " + *nearest + "`?" : ""));
  return kExitUsage;
}

/// "compute" alone: the commands below it.
bool IsGroup(std::string_view word) {
  return std::any_of(kCommands.begin(), kCommands.end(), [&](const Command* command) {
    return command->name.starts_with(word) && command->name.size() > word.size() &&
           command->name[word.size()] == ' ';
  });
}

int Dispatch(Context& context, std::span<const std::string> words) {
  if (words.empty()) {
    context.terminal.Err(HelpOverview());
    return kExitUsage;
  }
  if (words[0] == "--version" || words[0] == "-V") return *kVersion.run(context, Args());
  if (words[0] == "--help" || words[0] == "-h") {
    context.terminal.Out(HelpOverview());
    return kExitOk;
  }
  const auto match = FindCommand(words);
  if (!match) {
    if (!IsGroup(words[0])) return UnknownCommand(context, words);
    if (AsksForHelp(words.subspan(1))) {
      context.terminal.Out(HelpGroup(words[0]));
      return kExitOk;
    }
    if (words.size() > 1 && !words[1].starts_with("-")) return UnknownCommand(context, words);
    context.terminal.Err(HelpGroup(words[0]));
    return kExitUsage;
  }
  const Command& command = *match->command;
  const auto rest = words.subspan(match->words);
  Result<int> result = kExitOk;
  if (command.run_words != nullptr) {
    result = command.run_words(context, rest);
  } else if (AsksForHelp(rest)) {
    context.terminal.Out(HelpCommand(command));
  } else {
    auto args = ParseArgs(command.flags, command.positionals, command.rules, rest);
    if (!args.ok()) return UsageFailure(context, command, args.error().message());
    result = command.run(context, *args);
  }
  if (result.ok()) return *result;
  context.terminal.Err("expanse: " + EscapeForTerminal(result.error().message()) + "\n");
  return ExitStatusOf(result.error().code());
}

}  // namespace

std::span<const Command* const> Commands() { return kCommands; }

std::optional<Match> FindCommand(std::span<const std::string> words) {
  const auto find = [](std::string_view name) -> const Command* {
    for (const auto* command : kCommands)
      if (command->name == name) return command;
    return nullptr;
  };
  const auto canonical = [](const std::string& word) -> std::string {
    for (const auto* command : kCommands)
      if (!command->alias.empty() && command->alias == word) return std::string(command->name);
    return word;
  };
  if (words.empty()) return std::nullopt;
  const std::string first = canonical(words[0]);
  if (words.size() > 1)
    if (const auto* command = find(first + " " + words[1])) return Match{command, 2};
  if (const auto* command = find(first)) return Match{command, 1};
  return std::nullopt;
}

int UsageFailure(Context& context, const Command& command, std::string_view message) {
  context.terminal.Err(fmt::format("expanse {}: {}\nSee `expanse {} --help`.\n", command.name,
                                   EscapeForTerminal(message), command.name));
  return kExitUsage;
}

int Run(Context& context, std::span<const std::string> words) {
  const int exit_code = Dispatch(context, words);
  const auto flushed = context.terminal.Flush();
  if (flushed.ok() || exit_code != kExitOk) return exit_code;
  context.terminal.Err("expanse: " + flushed.error().message() + "\n");
  return kExitFailed;
}

}  // namespace expanse::cli
