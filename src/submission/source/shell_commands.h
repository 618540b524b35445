// SPDX-License-Identifier: Apache-2.0
// Simple commands of a shell script, read without running it: words with quotes removed, variables
// that the script itself sets to a constant filled in, comments and here-documents left out. What
// only a running shell knows makes a word not literal; it is never guessed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::submission {

enum class ShellWordRole { kArgument, kOutput, kInput };

struct ShellWord {
  std::string text;  // unquoted and expanded; the raw text when not literal
  /// All texts that the word has in turn, when it holds the variable of a loop over known words;
  /// text is the first of them.
  std::vector<std::string> alternatives;
  bool literal = true;
  ShellWordRole role = ShellWordRole::kArgument;  // kOutput: target of > or >>
  size_t begin = 0;                               // raw bytes in the script
  size_t end = 0;
};

struct ShellCommand {
  std::vector<ShellWord> words;  // assignments before the command are left out
  int line = 0;
  int depth = 0;  // of subshells "( ... )" around it
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, std::string> variables;  // with known values at the end
};

/// `variables`: known before the script starts (HOME, SLURM_SUBMIT_DIR, ...).
ShellScript ReadShellCommands(std::string_view script,
                              std::map<std::string, std::string> variables = {});

}  // namespace expanse::submission
