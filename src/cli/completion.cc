// SPDX-License-Identifier: Apache-2.0
// Completion scripts. They hold the whole table, so that completing starts no program.
#include <set>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/help.h"

namespace expanse::cli {
namespace {

/// Names under which a command can be written, aliases included.
std::vector<std::string> Spellings(const Command& command) {
  std::vector<std::string> out{std::string(command.name)};
  for (const auto* other : Commands()) {
    if (other->alias.empty()) continue;
    if (command.name == other->name) out.emplace_back(other->alias);
    const std::string prefix = std::string(other->name) + " ";
    if (command.name.starts_with(prefix))
      out.push_back(std::string(other->alias) + " " +
                    std::string(command.name.substr(prefix.size())));
  }
  return out;
}

std::string FirstWords() {
  std::set<std::string> words;
  for (const auto* command : Commands())
    for (const auto& name : Spellings(*command)) words.insert(name.substr(0, name.find(' ')));
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// First word -> second words.
std::vector<std::pair<std::string, std::string>> SecondWords() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto* command : Commands())
    for (const auto& name : Spellings(*command)) {
      const size_t space = name.find(' ');
      if (space == std::string::npos) continue;
      const std::string first = name.substr(0, space);
      const std::string second = name.substr(space + 1);
      if (!out.empty() && out.back().first == first) {
        out.back().second += " " + second;
        continue;
      }
      bool found = false;
      for (auto& [word, rest] : out)
        if (word == first) {
          rest += " " + second;
          found = true;
        }
      if (!found) out.emplace_back(first, second);
    }
  return out;
}

std::string FlagNames(const Command& command) {
  std::string out = "--help";
  for (const auto& flag : command.flags) {
    out += fmt::format(" {}", flag.name);
    if (!flag.alias.empty()) out += fmt::format(" {}", flag.alias);
  }
  return out;
}

std::string Choices(const Flag& flag) {
  std::string out;
  for (const auto choice : flag.choices) out += (out.empty() ? "" : " ") + std::string(choice);
  return out;
}

/// bash; zsh runs the same function through bashcompinit.
std::string BashFunction() {
  std::string out =
      "_expanse() {\n"
      "  local cur prev cmd flags\n"
      "  COMPREPLY=()\n"
      "  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
      "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
  out += fmt::format("    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$cur\"))\n",
                     FirstWords());
  out += "    return\n  fi\n  cmd=\"${COMP_WORDS[1]}\"\n  case \"$cmd\" in\n";
  for (const auto& [first, second] : SecondWords()) {
    out += fmt::format("    {})\n", first);
    out +=
        "      if [ \"$COMP_CWORD\" -gt 2 ]; then\n"
        "        case \" " +
        second +
        " \" in *\" ${COMP_WORDS[2]} \"*) cmd=\"$cmd ${COMP_WORDS[2]}\";; esac\n"
        "      elif [[ \"$cur\" != -* ]]; then\n";
    out += fmt::format(
        "        COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"){})\n        return\n      fi\n      "
        ";;\n",
        second, first == "compute" ? "" : " $(compgen -f -- \"$cur\")");
  }
  out += "  esac\n  case \"$cmd $prev\" in\n";
  for (const auto* command : Commands())
    for (const auto& name : Spellings(*command))
      for (const auto& flag : command->flags) {
        if (flag.kind == FlagKind::kChoice)
          out += fmt::format(
              "    \"{} {}\") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n", name,
              flag.name, Choices(flag));
        if (flag.kind == FlagKind::kPath)
          out += fmt::format("    \"{} {}\") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
                             name, flag.name);
      }
  out += "  esac\n  case \"$cmd\" in\n";
  for (const auto* command : Commands())
    for (const auto& name : Spellings(*command))
      out += fmt::format("    \"{}\") flags=\"{}\" ;;\n", name, FlagNames(*command));
  out +=
      "    *) flags=\"--help\" ;;\n  esac\n"
      "  if [[ \"$cur\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "  fi\n}\n";
  return out;
}

std::string FishQuote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "'";
}

std::string FishScript() {
  std::string out = "complete -c expanse -f\n";
  for (const auto* command : Commands())
    for (const auto& name : Spellings(*command)) {
      const size_t space = name.find(' ');
      const std::string first = name.substr(0, space);
      if (space == std::string::npos) {
        out += fmt::format("complete -c expanse -n __fish_use_subcommand -a {} -d {}\n", first,
                           FishQuote(command->summary));
      } else {
        out += fmt::format(
            "complete -c expanse -n '__fish_seen_subcommand_from {}; and not "
            "__fish_seen_subcommand_from {}' -a {} -d {}\n",
            first, name.substr(space + 1), name.substr(space + 1), FishQuote(command->summary));
      }
      std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", first);
      if (space != std::string::npos)
        condition =
            fmt::format("'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'",
                        first, name.substr(space + 1));
      for (const auto& flag : command->flags) {
        out += fmt::format("complete -c expanse -n {} -l {} -d {}", condition, flag.name.substr(2),
                           FishQuote(flag.doc));
        if (flag.kind == FlagKind::kChoice) out += fmt::format(" -x -a '{}'", Choices(flag));
        if (flag.kind == FlagKind::kPath) out += " -r -F";
        if (flag.kind != FlagKind::kBool && flag.kind != FlagKind::kChoice &&
            flag.kind != FlagKind::kPath)
          out += " -x";
        out += "\n";
      }
      if (first == "analyse" || first == "analyze")
        out += fmt::format("complete -c expanse -n {} -F\n", condition);
    }
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "fish") return FishScript();
  if (shell == "zsh")
    return "#compdef expanse\nautoload -U +X bashcompinit && bashcompinit\n" + BashFunction() +
           "complete -o default -F _expanse expanse\n";
  return BashFunction() + "complete -o default -F _expanse expanse\n";
}

}  // namespace expanse::cli
