// SPDX-License-Identifier: Apache-2.0
// The man page and docs/reference/cli.md.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/version.h"

namespace expanse::cli {
namespace {

/// Text for a man page: a hyphen is a minus, a backslash is itself, and no line begins with a
/// control character of roff.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-')
      out += "\\-";
    else if (c == '\\')
      out += "\\e";
    else
      out.push_back(c);
  }
  if (out.starts_with('.') || out.starts_with('\'')) out = "\\&" + out;
  return out;
}

/// Text for a cell of a markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

/// The same inside back-quotes, where only the pipe ends a cell.
std::string CodeCell(std::string_view text) {
  std::string out = "`";
  for (const char c : text) {
    if (c == '|') out.push_back('\\');
    out.push_back(c);
  }
  return out + "`";
}

std::string ManCommand(const Command& command) {
  std::string out = fmt::format(".SS {}\n{}.\n", Roff(UsageLine(command)), Roff(command.summary));
  if (!command.description.empty()) out += ".PP\n" + Roff(command.description) + "\n";
  for (const auto& p : command.positionals)
    out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", Roff(p.name), Roff(p.doc));
  for (const auto& flag : command.flags)
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(FlagWithValue(flag)), Roff(FlagDoc(flag)));
  for (const auto& rule : command.rules)
    out += fmt::format(".PP\n{} {} {}.\n", Roff(rule.flag),
                       rule.kind == Rule::kExcludes ? "excludes" : "needs", Roff(rule.other));
  if (!command.examples.empty()) {
    out += ".PP\nExamples:\n.PP\n.nf\n.RS\n";
    for (const auto& example : command.examples) out += Roff(example.command) + "\n";
    out += ".RE\n.fi\n";
  }
  return out;
}

std::string MarkdownCommand(const Command& command) {
  std::string out = fmt::format("## expanse {}\n\nIt {}.\n\n```\n{}\n```\n", command.name,
                                command.summary, UsageLine(command));
  if (!command.alias.empty()) out += fmt::format("\nAlias: `expanse {}`.\n", command.alias);
  if (!command.description.empty()) {
    std::string_view text = command.description;
    while (true) {
      const size_t end = text.find('\n');
      out += "\n" + std::string(text.substr(0, end)) + "\n";
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }
  if (!command.positionals.empty()) {
    out += "\n| Argument | Meaning |\n| --- | --- |\n";
    for (const auto& p : command.positionals)
      out += fmt::format("| {} | {}{} |\n", CodeCell(p.name), Cell(p.doc),
                         p.required ? "" : " (optional)");
  }
  if (!command.flags.empty()) {
    out += "\n| Flag | Meaning |\n| --- | --- |\n";
    for (const auto& flag : command.flags)
      out += fmt::format("| {} | {} |\n", CodeCell(FlagWithValue(flag)), Cell(FlagDoc(flag)));
  }
  if (!command.rules.empty()) out += "\n";
  for (const auto& rule : command.rules)
    out += fmt::format("- `{}` {} `{}`\n", rule.flag,
                       rule.kind == Rule::kExcludes ? "excludes" : "needs", rule.other);
  if (!command.examples.empty()) {
    out += "\n```sh\n";
    for (const auto& example : command.examples)
      out += fmt::format("{}{}{}\n", example.command, example.comment.empty() ? "" : "  # ",
                         example.comment);
    out += "```\n";
  }
  return out + "\n";
}

}  // namespace

std::string ManPage() {
  std::string out = fmt::format(
      ".TH EXPANSE 1 \"\" \"expanse {}\" \"User Commands\"\n.SH NAME\n"
      "expanse \\- what jobs asked for, what they used, why they failed\n"
      ".SH SYNOPSIS\n\\fBexpanse\\fR \\fIcommand\\fR [\\fIarguments\\fR] [\\fIflags\\fR]\n"
      ".SH COMMANDS\n",
      Version());
  for (const auto* command : Commands()) out += ManCommand(*command);
  out += ".SH ENVIRONMENT\n";
  for (const auto& row : EnvironmentVariables())
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", row.name, Roff(row.doc));
  out +=
      ".SH FILES\n.TP\n\\fI~/.expanse/credentials.json\\fR\nAPI key and cached session, "
      "mode 0600.\n.SH EXIT STATUS\n";
  for (const auto& row : ExitCodes())
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", row.name, Roff(row.doc));
  return out;
}

std::string MarkdownReference() {
  std::string out =
      "# Command reference\n\nPrinted by `expanse man --format markdown`; a test compares. Every "
      "command takes `--help`.\nBoolean flags accept `--flag` and `--flag=true|false`. Data goes "
      "to standard output; progress,\nwarnings and errors go to standard error. Questions are "
      "asked only on a terminal.\n\n| Exit code | Meaning |\n| --- | --- |\n";
  for (const auto& row : ExitCodes()) out += fmt::format("| {} | {} |\n", row.name, Cell(row.doc));
  out += "\n| Environment variable | Meaning |\n| --- | --- |\n";
  for (const auto& row : EnvironmentVariables())
    out += fmt::format("| {} | {} |\n", CodeCell(row.name), Cell(row.doc));
  out += "\n";
  for (const auto* command : Commands()) out += MarkdownCommand(*command);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace expanse::cli
