// SPDX-License-Identifier: Apache-2.0
// Reading and editing slurm.conf as text: everything but the hook lines stays byte for byte.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::install {

/// The hook settings we wire, in the order they are written.
inline constexpr std::string_view kHookKeys[] = {"Prolog", "Epilog", "TaskProlog", "TaskEpilog"};
/// "TaskProlog" -> "task_prolog": the name of our hook file.
std::string HookFileOf(std::string_view key);

/// One assignment of a hook setting in the file.
struct HookLine {
  std::string key;    // as in kHookKeys, whatever its case in the file
  std::string value;  // unquoted
  size_t begin = 0;   // bytes of the (possibly continued) line, without its newline
  size_t end = 0;
};

struct SlurmConf {
  std::string text;
  std::vector<HookLine> hooks;
  std::vector<std::string> includes;  // as written

  /// Values of one hook setting, in order (newer SLURM takes several Prolog lines).
  std::vector<std::string> Values(std::string_view key) const;
};

/// Never fails: what is no assignment is text.
SlurmConf ParseSlurmConf(std::string text);

/// What a site has to write, or we do: our hook for each key.
struct HookWiring {
  std::string hook_directory;
  std::vector<std::string> keys;  // those of kHookKeys that are wanted
};
/// True when every wanted key has our hook as its only value.
bool IsWired(const SlurmConf& conf, const HookWiring& wiring);
/// Values of the wanted keys that are not ours: key to foreign programs, in order.
std::map<std::string, std::vector<std::string>> ForeignHooks(const SlurmConf& conf,
                                                             const HookWiring& wiring);
/// The file with our hooks in: a foreign line becomes a comment "# expanse was: <line>" and the
/// first of a key is followed by ours; missing keys come in a marked block at the end.
std::string Wire(const SlurmConf& conf, const HookWiring& wiring);
/// The reverse, whatever else was edited in between: Unwire(Wire(x)) == x. kFailedPrecondition when
/// a line without our mark names our hooks (somebody else wrote it).
Result<std::string> Unwire(const std::string& text, const std::string& hook_directory);
/// Both versions' hook lines, for a person: "- Prolog=/old" and "+ Prolog=/new".
std::string DescribeWiring(const SlurmConf& conf, const HookWiring& wiring);

}  // namespace expanse::install
