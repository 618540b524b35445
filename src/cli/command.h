// SPDX-License-Identifier: Apache-2.0
// One command of `expanse`: a row of kCommands (commands.cc). Help, completion, the man page and
// docs/reference/cli.md are printed from the same row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/context.h"
#include "cli/exit_status.h"
#include "cli/flags.h"

namespace expanse::cli {

struct Example {
  std::string_view command;
  std::string_view comment = {};
};

struct Command;

struct Command {
  std::string_view name;  // "compute register"
  std::string_view alias = {};
  std::string_view group;    // heading in the list of commands
  std::string_view summary;  // begins with a verb, no full stop
  std::string_view description = {};
  std::span<const Positional> positionals = {};
  std::span<const Flag> flags = {};
  std::span<const Rule> rules = {};
  std::span<const Example> examples = {};
  /// The exit code, or an error that Run prints and turns into one.
  Result<int> (*run)(Context& context, const Args& args) = nullptr;
  /// Takes every word as it is, --help included (a front to another program).
  Result<int> (*run_words)(Context& context, std::span<const std::string> words) = nullptr;
};

/// Prints a usage error the way the parser's own look, for rules a table cannot hold.
/// Returns kExitUsage.
int UsageFailure(Context& context, const Command& command, std::string_view message);

inline constexpr std::string_view kGroupAccount = "Account";
inline constexpr std::string_view kGroupCompute = "Compute";
inline constexpr std::string_view kGroupWorkloads = "Workloads";
inline constexpr std::string_view kGroupIntelligence = "Intelligence";
inline constexpr std::string_view kGroupOther = "Other";

extern const Command kLogin;
extern const Command kStatus;
extern const Command kRefresh;
extern const Command kComputeRegister;
extern const Command kComputeList;
extern const Command kComputeInstall;
extern const Command kComputeUninstall;
extern const Command kExecutions;
extern const Command kMetrics;
extern const Command kAnalyse;
extern const Command kAnalyseDiff;
extern const Command kAnalyseApply;
extern const Command kDiagnose;
extern const Command kUp;
extern const Command kCompletion;
extern const Command kMan;
extern const Command kVersion;
extern const Command kHelp;

}  // namespace expanse::cli
