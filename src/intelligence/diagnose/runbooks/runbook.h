// SPDX-License-Identifier: Apache-2.0
// A runbook turns evidence into a finding with cited facts and a strength, or into nothing. One row
// of the table for each failure class; a row without a function is decided by signal patterns
// alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/case_view.h"
#include "intelligence/diagnose/evidence.h"

namespace expanse::intelligence::diagnose {

struct Finding {
  std::string failure_class;
  int strength = 0;                  // 0 to 100, as SignalRule::strength
  std::vector<Claim> what;           // sentences after "What happened:"
  std::vector<Claim> why;            // sentences after "Why:"
  std::vector<std::string> missing;  // evidence that would have shown more
  int stream = 0;                    // of the earliest signal behind it; 0: not from a stream
  int64_t at = 0;                    // where in that stream
};

struct Runbook {
  std::string_view failure_class;
  /// What lies deeper explains what lies higher: a full disk explains a Python error, not the
  /// reverse. 6 nothing started or hardware, 5 the ground under the run (node, priority), 4
  /// resources, environment, storage, 3 crashes of a process, 2 communication, 1 generic endings, 0
  /// no cause.
  int depth;
  std::optional<Finding> (*run)(const CaseView&, const Runbook&);  // null: PatternFinding
  /// Observations that belong into the answer of this class: `|` separated parts of keys.
  std::string_view related = "";
};

/// One row for each class of domain::FailureClasses() except "none".
std::span<const Runbook> Runbooks();

/// The finding that signal patterns alone support; nothing when no signal of the class was seen.
std::optional<Finding> PatternFinding(const CaseView& view, const Runbook& runbook);

// Sentences that several runbooks share.

/// "the execution ended in state FAILED with exit code 1 after 20s"
Claim Opening(const CaseView& view);
/// `stderr line 3 says "…"` with its fact.
Claim Quote(const Signal& signal);
/// Definition of the class as a sentence's end.
std::string DefinitionOf(std::string_view failure_class);
/// GiB with one decimal; below 1 GiB the unit that keeps figures readable.
std::string MemoryText(int64_t bytes);
std::string DurationText(int64_t seconds);
/// Adds the observations named by runbook.related to why.
void AddRelated(const CaseView& view, const Runbook& runbook, Finding& finding);
/// Joined facts without zeros and repeats.
std::vector<FactId> FactList(std::initializer_list<FactId> ids);

// One function for each class that needs more than patterns; one file each.
std::optional<Finding> HostOutOfMemory(const CaseView&, const Runbook&);
std::optional<Finding> UnknownKill(const CaseView&, const Runbook&);
std::optional<Finding> SharedMemoryExhausted(const CaseView&, const Runbook&);
std::optional<Finding> CrashSignal(const CaseView&, const Runbook&);
std::optional<Finding> GpuOutOfMemory(const CaseView&, const Runbook&);
std::optional<Finding> GpuIdleAllocation(const CaseView&, const Runbook&);
std::optional<Finding> WalltimeExceeded(const CaseView&, const Runbook&);
std::optional<Finding> JobHang(const CaseView&, const Runbook&);
std::optional<Finding> DataLoaderStalled(const CaseView&, const Runbook&);
std::optional<Finding> JobCancelled(const CaseView&, const Runbook&);
std::optional<Finding> NodeFailure(const CaseView&, const Runbook&);
std::optional<Finding> JobPreempted(const CaseView&, const Runbook&);
std::optional<Finding> RequeuedNearTimeLimit(const CaseView&, const Runbook&);
std::optional<Finding> LaunchFailure(const CaseView&, const Runbook&);
std::optional<Finding> DependencyNeverSatisfied(const CaseView&, const Runbook&);
std::optional<Finding> InvalidJobRequest(const CaseView&, const Runbook&);
std::optional<Finding> CommandNotFound(const CaseView&, const Runbook&);
std::optional<Finding> PermissionDenied(const CaseView&, const Runbook&);
std::optional<Finding> EnvironmentActivation(const CaseView&, const Runbook&);
std::optional<Finding> TaskFailureUnattributed(const CaseView&, const Runbook&);

/// For runs in which nothing failed, or that have not ended: what can be said of them.
Finding NothingFailed(const CaseView& view);

}  // namespace expanse::intelligence::diagnose
