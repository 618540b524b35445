// SPDX-License-Identifier: Apache-2.0
// The options that sbatch knows, and how it finds one by name. The table is that of SLURM 22.05
// (its own `sbatch --help` and getopt's lists of possibilities); later versions add rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace expanse::submission {

enum class SbatchArgument { kNone, kRequired, kOptional };

/// What an option is about, for the identity of a script and for messages.
enum class SbatchKind {
  kResource,   // amounts and limits: a recommendation may change it
  kPlacement,  // where and when: queue, account, nodes by name, order
  kProgram,    // what the script does or sees: name, files, export, array
};

struct SbatchOption {
  std::string_view name;  // long name without dashes
  char letter;            // short form, or 0
  SbatchArgument argument;
  SbatchKind kind;
};

/// Every option, sorted by name.
const std::vector<SbatchOption>& SbatchOptions();

/// By short letter; null when sbatch has no such option.
const SbatchOption* FindSbatchOption(char letter);

struct SbatchLookup {
  const SbatchOption* option = nullptr;
  std::vector<std::string> possibilities;  // more than one option begins with the name
};
/// By long name or an unambiguous beginning of one, as getopt_long does.
SbatchLookup FindSbatchOption(std::string_view name);

}  // namespace expanse::submission
