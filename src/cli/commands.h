// SPDX-License-Identifier: Apache-2.0
// The commands of `expanse` and the way from a command line to one of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace expanse::cli {

/// Every command, in the order of help.
std::span<const Command* const> Commands();

/// The command that the first words name, and how many words that took.
struct Match {
  const Command* command = nullptr;
  size_t words = 0;
};
std::optional<Match> FindCommand(std::span<const std::string> words);

/// Runs one command line (without the program's name). Returns the exit code.
int Run(Context& context, std::span<const std::string> words);

}  // namespace expanse::cli
