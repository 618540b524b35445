// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <fstream>
#include <sstream>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "cli/fakes.h"
#include "cli/help.h"
#include "platform/process/process.h"

namespace expanse::cli {
namespace {

std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words;
  while (!name.empty()) {
    const size_t space = name.find(' ');
    words.emplace_back(name.substr(0, space));
    if (space == std::string_view::npos) break;
    name.remove_prefix(space + 1);
  }
  return words;
}

TEST(Commands, EveryOneExplainsItselfWithExamples) {
  std::string all;
  for (const auto* command : Commands()) {
    FakeMachine machine;
    auto words = Words(command->name);
    words.emplace_back("--help");
    EXPECT_EQ(machine.Run(words), kExitOk) << command->name;
    EXPECT_NE(machine.terminal.out.find("\nExamples:\n"), std::string::npos) << command->name;
    EXPECT_EQ(machine.terminal.err, "");
    all += "$ expanse " + std::string(command->name) + " --help\n" + machine.terminal.out + "\n";
    words = Words(command->name);
    words.insert(words.begin(), "help");
    const std::string by_flag = machine.terminal.out;
    machine.terminal.out.clear();
    EXPECT_EQ(machine.Run(words), kExitOk) << command->name;
    EXPECT_EQ(machine.terminal.out, by_flag);
  }
  ExpectGolden("help.txt", all);
}

TEST(Commands, TheOverviewNamesEveryCommandAndExitCode) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"--help"}), kExitOk);
  EXPECT_EQ(machine.terminal.out, HelpOverview());
  ExpectGolden("overview.txt", machine.terminal.out);
  EXPECT_EQ(machine.Run({}), kExitUsage);
  EXPECT_EQ(machine.terminal.err, HelpOverview());
}

TEST(Commands, TextsFitATerminalAndFollowOneForm) {
  for (const auto* command : Commands()) {
    EXPECT_FALSE(command->summary.ends_with('.')) << command->name;
    for (const auto& flag : command->flags) {
      EXPECT_TRUE(flag.name.starts_with("--")) << flag.name;
      EXPECT_FALSE(flag.doc.ends_with('.')) << command->name << " " << flag.name;
    }
    const std::string help = HelpCommand(*command);
    size_t start = 0;
    for (size_t end = 0; (end = help.find('\n', start)) != std::string::npos; start = end + 1)
      EXPECT_LE(end - start, 100U) << command->name << ": " << help.substr(start, end - start);
  }
}

TEST(Commands, AnUnknownCommandNamesTheNearest) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"executoins"}), kExitUsage);
  EXPECT_NE(machine.terminal.err.find("did you mean `expanse executions`?"), std::string::npos);
}

TEST(Commands, TheReferencePageIsUpToDate) {
  const std::string path = std::string(EXPANSE_SOURCE_DIR) + "/docs/reference/cli.md";
  if (const char* update = std::getenv("EXPANSE_UPDATE_GOLDEN"); update != nullptr)
    std::ofstream(path, std::ios::binary) << MarkdownReference();
  std::ifstream file(path, std::ios::binary);
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(page, MarkdownReference())
      << "build/<preset>/bin/expanse man --format markdown > docs/reference/cli.md";
}

/// The command lines of `expanse` in a published shell file: continued lines joined, comments,
/// pipes and redirections cut off, quotes removed.
std::vector<std::vector<std::string>> PublishedLines(const std::string& file) {
  std::string text = TestData("published/" + file);
  for (size_t at = 0; (at = text.find("\\\n", at)) != std::string::npos;) text.replace(at, 2, " ");
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> command;
    bool found = false;
    for (std::string word; words >> word && word != "#" && word != "|" && word != ">";) {
      std::erase(word, '"');
      if (word == "<control-plane-url>" || word == "<data-plane-url>" || word == "$control_plane" ||
          word == "$data_plane")
        word = "https://plane.example.org";
      if (found)
        command.push_back(word);
      else if (word == "#" || word.front() == '#')
        break;
      found = found || word == "expanse";
    }
    if (found) lines.push_back(command);
  }
  return lines;
}

TEST(Commands, TakeEveryPublishedCommandLine) {
  size_t checked = 0;
  for (const char* file : {"invocations.sh", "install_slurm.sh", "install-expanse.sh"})
    for (const auto& words : PublishedLines(file)) {
      const std::string line =
          std::string(file) + ": expanse " + fmt::format("{}", fmt::join(words, " "));
      const auto match = FindCommand(words);
      ASSERT_TRUE(match.has_value()) << line;
      if (line.find("--api-key") != std::string::npos) continue;  // a secret; refused, see login
      const auto& c = *match->command;
      const auto args =
          ParseArgs(c.flags, c.positionals, c.rules, std::span(words).subspan(match->words));
      EXPECT_TRUE(args.ok()) << line << ": " << (args.ok() ? "" : args.error().message());
      ++checked;
    }
  EXPECT_GE(checked, 25U);
}

platform::ProcessResult Shell(const std::string& script) {
  platform::ProcessSpec spec;
  spec.argv = {"bash", "-c", script};
  spec.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  auto result = platform::SystemProcessRunner().Run(spec);
  EXPECT_TRUE(result.ok());
  return result.value_or(platform::ProcessResult());
}

/// What bash offers for a line whose last word is being completed.
std::string Complete(const std::string& words, int at) {
  return Shell(CompletionScript("bash") + "\nCOMP_WORDS=(" + words +
               ")\nCOMP_CWORD=" + std::to_string(at) + "\n_expanse\necho \"${COMPREPLY[@]}\"")
      .out;
}

TEST(Completion, BashOffersCommandsFlagsAndChoices) {
  EXPECT_EQ(Complete("expanse exec", 1), "executions\n");
  EXPECT_EQ(Complete("expanse executions --st", 2), "--status\n");
  EXPECT_EQ(Complete("expanse executions --status ca", 3), "cancelled\n");
}

TEST(Completion, ScriptsOfAllShellsAreWellFormed) {
  EXPECT_EQ(Shell(CompletionScript("bash")).exit_code, 0);
  EXPECT_NE(CompletionScript("zsh").find("#compdef expanse"), std::string::npos);
  EXPECT_NE(CompletionScript("fish").find("complete -c expanse"), std::string::npos);
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"completion", "tcsh"}), kExitUsage);
}

TEST(ManPage, HoldsEveryCommand) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"man"}), kExitOk);
  EXPECT_EQ(machine.terminal.out.rfind(".TH EXPANSE 1", 0), 0U);
  for (const auto* command : Commands())
    EXPECT_NE(machine.terminal.out.find(".SS expanse " + std::string(command->name)),
              std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
