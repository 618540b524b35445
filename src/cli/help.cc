// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"

namespace expanse::cli {
namespace {

constexpr size_t kWidth = 100;

constexpr std::array<NamedText, 10> kEnvironment{{
    {"EXPANSE_API_KEY", "personal API key (exp_user_...), read by `expanse login`"},
    {"EXPANSE_API_URL", "URL of the control plane instead of the saved one"},
    {"EXPANSE_INSTALL_TOKEN",
     "single-use install token for `expanse compute install`; wins over the prompt"},
    {"EXPANSE_CONSOLE_URL", "base URL of the console, for the links of `expanse executions`"},
    {"HTTPS_PROXY", "proxy for https; the installer copies it into the service's environment"},
    {"NO_PROXY", "hosts that are reached without the proxy; copied likewise"},
    {"SSL_CERT_FILE", "PEM file of the certificate authorities to trust; copied likewise"},
    {"EXPANSE_CA_FILE", "the same for Expanse alone; wins over SSL_CERT_FILE"},
    {"NO_COLOR", "when set: no colours"},
    {"HOME", "where .expanse/credentials.json lies"},
}};

constexpr std::array<NamedText, 6> kExitCodes{{
    {"0", "success"},
    {"1", "the request failed, nothing was found, or an analysis ended in failure"},
    {"2", "usage error: unknown flag, excluded combination, missing argument"},
    {"3", "not signed in, or the session was rejected"},
    {"4", "the server could not be reached"},
    {"130", "interrupted"},
}};

/// text broken at spaces so that no line, indented by indent columns, is longer than kWidth. The
/// first line starts at the column where the cursor is (already indented).
std::string Wrap(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return out;
}

/// Rows "  name  doc" with the docs in one column.
std::string Rows(std::span<const std::pair<std::string, std::string>> rows) {
  constexpr size_t kLongestName = 34;
  size_t widest = 0;
  for (const auto& [name, doc] : rows)
    if (name.size() <= kLongestName) widest = std::max(widest, name.size());
  std::string out;
  for (const auto& [name, doc] : rows) {
    out += "  " + name;
    if (name.size() > widest)
      out += "\n" + std::string(widest + 4, ' ');
    else
      out += std::string(widest - name.size() + 2, ' ');
    out += Wrap(doc, widest + 4) + "\n";
  }
  return out;
}

std::string Rows(std::span<const NamedText> rows) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& row : rows) pairs.emplace_back(row.name, row.doc);
  return Rows(pairs);
}

/// A command as a person would type it on several lines: broken before a flag.
std::string WrapCommand(std::string_view command) {
  std::string out = "  ";
  size_t column = 2;
  while (!command.empty()) {
    const size_t flag = command.find(" --", 1);
    const std::string_view part = command.substr(0, flag);
    if (column > 6 && column + part.size() + 2 > kWidth) {
      out += " \\\n     ";  // the part begins with a space
      column = 5;
    }
    out += part;
    column += part.size();
    if (flag == std::string_view::npos) break;
    command.remove_prefix(flag);
  }
  return out;
}

/// Comments beside the commands, or above them where that would not fit.
std::string Examples(const Command& command) {
  if (command.examples.empty()) return "";
  size_t widest = 0;
  size_t longest_comment = 0;
  for (const auto& example : command.examples) {
    if (example.comment.empty()) continue;
    widest = std::max(widest, example.command.size());
    longest_comment = std::max(longest_comment, example.comment.size());
  }
  const bool beside = widest + longest_comment + 6 <= kWidth;
  std::string out = "\nExamples:\n";
  for (const auto& example : command.examples) {
    if (example.comment.empty())
      out += WrapCommand(example.command);
    else if (beside)
      out += fmt::format("  {:<{}}  # {}", example.command, widest, example.comment);
    else
      out += fmt::format("  # {}\n{}", example.comment, WrapCommand(example.command));
    out += "\n";
  }
  return out;
}

}  // namespace

std::span<const NamedText> EnvironmentVariables() { return kEnvironment; }
std::span<const NamedText> ExitCodes() { return kExitCodes; }

std::string UsageLine(const Command& command) {
  std::string out = fmt::format("expanse {}", command.name);
  for (const auto& p : command.positionals)
    out += fmt::format(" {}<{}>{}{}", p.required ? "" : "[", p.name, p.repeat ? "..." : "",
                       p.required ? "" : "]");
  for (const auto& flag : command.flags)
    if (flag.required) out += fmt::format(" {} {}", flag.name, ValueName(flag));
  if (!command.flags.empty()) out += " [flags]";
  return out;
}

std::string FlagWithValue(const Flag& flag) {
  // Writing a flag that is true anyway says nothing; what one writes is the opposite.
  if (flag.kind == FlagKind::kBool && flag.default_text == "true")
    return std::string(flag.name) + "=false";
  const std::string value = ValueName(flag);
  return fmt::format("{}{}{}", flag.name, value.empty() ? "" : " ", value);
}

std::string FlagDoc(const Flag& flag) {
  std::string out(flag.doc);
  if (flag.repeat) out += "; may be repeated";
  if (flag.required) out += "; required";
  if (!flag.default_text.empty()) out += fmt::format(" (default {})", flag.default_text);
  if (!flag.alias.empty()) out += fmt::format(" (also {})", flag.alias);
  return out;
}

std::string HelpOverview() {
  std::string out =
      "expanse: registers compute, shows what jobs used, recommends resources before a job runs\n"
      "and explains why one failed.\n\nUsage:\n  expanse <command> [arguments] [flags]\n";
  constexpr std::array kGroups{kGroupAccount, kGroupCompute, kGroupWorkloads, kGroupIntelligence,
                               kGroupOther};
  for (const auto group : kGroups) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto* command : Commands())
      if (command->group == group) rows.emplace_back(command->name, command->summary);
    out += fmt::format("\n{}:\n{}", group, Rows(rows));
  }
  out += "\nEnvironment:\n" + Rows(kEnvironment);
  out += "\nExit codes:\n" + Rows(kExitCodes);
  out += "\nFlags of a command: `expanse help <command>` or `expanse <command> --help`.\n";
  return out;
}

std::string HelpGroup(std::string_view word) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto* command : Commands())
    if (command->name == word || command->name.starts_with(std::string(word) + " "))
      rows.emplace_back(command->name, command->summary);
  return fmt::format("Usage:\n  expanse {} <command> [flags]\n\nCommands:\n{}", word, Rows(rows));
}

std::string HelpCommand(const Command& command) {
  std::string out = fmt::format("expanse {}: {}\n", command.name, command.summary);
  if (!command.description.empty()) {
    // Paragraphs are separated by newlines.
    std::string_view text = command.description;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      out += "\n" + Wrap(text.substr(0, end), 0) + "\n";
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }
  out += "\nUsage:\n  " + UsageLine(command) + "\n";
  if (!command.alias.empty()) out += fmt::format("\nAlias: expanse {}\n", command.alias);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& p : command.positionals)
    rows.emplace_back(fmt::format("<{}>{}", p.name, p.repeat ? "..." : ""), p.doc);
  if (!rows.empty()) out += "\nArguments:\n" + Rows(rows);
  rows.clear();
  for (const auto& flag : command.flags) {
    rows.emplace_back(FlagWithValue(flag), FlagDoc(flag));
  }
  rows.emplace_back("--help", "print this text");
  out += "\nFlags:\n" + Rows(rows);
  std::string rules;
  for (const auto& rule : command.rules)
    rules += fmt::format("  {} {} {}\n", rule.flag,
                         rule.kind == Rule::kExcludes ? "excludes" : "needs", rule.other);
  if (!rules.empty()) out += "\nCombinations:\n" + rules;
  return out + Examples(command);
}

}  // namespace expanse::cli
