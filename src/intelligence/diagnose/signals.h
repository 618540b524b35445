// SPDX-License-Identifier: Apache-2.0
// Messages that programs, kernels and schedulers print, and the failure class each one speaks for.
// Tables of data: a pattern belongs here when a framework, library or tool prints it in general,
// never because one job once did.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace expanse::intelligence::diagnose {

/// Where a pattern may match: a set of TextKind.
inline constexpr int kProgramText = 1;
inline constexpr int kKernelText = 2;
inline constexpr int kSchedulerText = 4;
inline constexpr int kAnyText = 7;

struct SignalRule {
  std::string_view failure_class;
  /// Lower case; `*` is any run of characters of one line, `#` one or more digits. Runs of blanks
  /// in the line count as one blank.
  std::string_view pattern;
  /// How far the message alone proves the class, 0 to 100: 90 and more is said by nothing else, 75
  /// is typical, 50 needs company, below 40 is a consequence of something else.
  int strength;
  int where = kAnyText;
  /// `|` separated fragments; a line with one of them does not match.
  std::string_view unless = "";
};

std::span<const SignalRule> MemorySignals();
std::span<const SignalRule> GpuSignals();
std::span<const SignalRule> CommunicationSignals();
std::span<const SignalRule> EndingSignals();
std::span<const SignalRule> EnvironmentSignals();
std::span<const SignalRule> StorageSignals();
std::span<const SignalRule> ContainerSignals();

/// What an NVIDIA XID of the kernel log says. Numbers and meanings: NVIDIA's XID catalogue.
struct XidRule {
  int xid;
  std::string_view failure_class;
  int strength;
};
/// Null for XIDs that do not end a job by themselves (63 and 92 count corrected errors, 45 and 154
/// follow another XID).
const XidRule* FindXid(int xid);

/// All tables above, in the order given.
const std::vector<const SignalRule*>& AllSignals();

}  // namespace expanse::intelligence::diagnose
