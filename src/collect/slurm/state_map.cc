// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/state_map.h"

#include <array>
#include <string_view>

namespace expanse::collect::slurm {
namespace {

using namespace std::string_view_literals;
namespace pb = expanse::common::v1;

/// What a job state means before steps, exit codes and reasons are looked at.
enum class Kind { kQueued, kRunning, kEnded };

struct StateRow {
  std::string_view state;
  Kind kind;
  pb::ExecutionStatus status;
  pb::ExecutionOutcome outcome;
  pb::EndingCause cause;
};

// JOB STATE CODES of sacct(1) and squeue(1), 22.05 to 26.05.
// LAUNCH_FAILED, RECONFIG_FAIL, POWER_UP_NODE and EXPEDITING are flags that only JSON shows.
constexpr std::array kStates = {
    StateRow{"PENDING"sv, Kind::kQueued, pb::EXECUTION_STATUS_QUEUED,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"REQUEUE_FED"sv, Kind::kQueued, pb::EXECUTION_STATUS_QUEUED,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"REQUEUE_HOLD"sv, Kind::kQueued, pb::EXECUTION_STATUS_QUEUED,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"RESV_DEL_HOLD"sv, Kind::kQueued, pb::EXECUTION_STATUS_QUEUED,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"SPECIAL_EXIT"sv, Kind::kQueued, pb::EXECUTION_STATUS_QUEUED,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"RUNNING"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"CONFIGURING"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"COMPLETING"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"POWER_UP_NODE"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"STAGE_OUT"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"SIGNALING"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"STOPPED"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"SUSPENDED"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"RESIZING"sv, Kind::kRunning, pb::EXECUTION_STATUS_RUNNING,
             pb::EXECUTION_OUTCOME_UNSPECIFIED, pb::ENDING_CAUSE_UNSPECIFIED},
    StateRow{"COMPLETED"sv, Kind::kEnded, pb::EXECUTION_STATUS_SUCCEEDED,
             pb::EXECUTION_OUTCOME_SUCCESS, pb::ENDING_CAUSE_EXITED},
    StateRow{"FAILED"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED, pb::EXECUTION_OUTCOME_FAILURE,
             pb::ENDING_CAUSE_EXITED},
    StateRow{"OUT_OF_MEMORY"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED,
             pb::EXECUTION_OUTCOME_OUT_OF_MEMORY, pb::ENDING_CAUSE_MEMORY_LIMIT},
    StateRow{"TIMEOUT"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED, pb::EXECUTION_OUTCOME_TIMEOUT,
             pb::ENDING_CAUSE_TIME_LIMIT},
    StateRow{"CANCELLED"sv, Kind::kEnded, pb::EXECUTION_STATUS_CANCELLED,
             pb::EXECUTION_OUTCOME_CANCELLED, pb::ENDING_CAUSE_UNSPECIFIED},
    // The deadline ended it before its time limit did: how long it would have taken is not known.
    StateRow{"DEADLINE"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED, pb::EXECUTION_OUTCOME_TIMEOUT,
             pb::ENDING_CAUSE_DEADLINE},
    StateRow{"NODE_FAIL"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_NODE_FAILURE},
    StateRow{"BOOT_FAIL"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_LAUNCH_FAILURE},
    StateRow{"LAUNCH_FAILED"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_LAUNCH_FAILURE},
    StateRow{"RECONFIG_FAIL"sv, Kind::kEnded, pb::EXECUTION_STATUS_FAILED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_LAUNCH_FAILURE},
    StateRow{"PREEMPTED"sv, Kind::kEnded, pb::EXECUTION_STATUS_CANCELLED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_PREEMPTED},
    StateRow{"REQUEUED"sv, Kind::kEnded, pb::EXECUTION_STATUS_CANCELLED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_REQUEUED},
    // A sibling of a federation: another cluster runs it.
    StateRow{"REVOKED"sv, Kind::kEnded, pb::EXECUTION_STATUS_CANCELLED,
             pb::EXECUTION_OUTCOME_UNKNOWN, pb::ENDING_CAUSE_NEVER_STARTED},
};

/// Flags that say more than the base state beside them, the weightiest first: this is the word that
/// squeue and sacct print in their text. A job that waits again was ended by the flag's cause.
constexpr std::array kFlagsFirst = {"COMPLETING"sv,   "STAGE_OUT"sv,     "CONFIGURING"sv,
                                    "RESIZING"sv,     "REQUEUED"sv,      "REQUEUE_FED"sv,
                                    "REQUEUE_HOLD"sv, "SPECIAL_EXIT"sv,  "STOPPED"sv,
                                    "REVOKED"sv,      "RESV_DEL_HOLD"sv, "SIGNALING"sv};

const StateRow* FindState(std::string_view state) {
  for (const auto& row : kStates)
    if (row.state == state) return &row;
  return nullptr;
}

bool HasOutOfMemoryStep(const JobRecord& job) {
  if (job.exit && job.exit->out_of_memory) return true;
  if (job.derived_exit && job.derived_exit->out_of_memory) return true;
  for (const auto& step : job.steps)
    if (step.state == "OUT_OF_MEMORY" || (step.exit && step.exit->out_of_memory)) return true;
  return false;
}

/// Reasons of a job that ended before its first instruction (job_reason_string of SLURM).
bool IsLaunchFailure(std::string_view reason) {
  constexpr std::array kReasons = {"JobLaunchFailure"sv, "launch_failed_requeued_held"sv,
                                   "Prolog"sv, "FedJobLock"sv, "BurstBufferStageIn"sv};
  for (std::string_view r : kReasons)
    if (reason == r) return true;
  return false;
}

Ending CancelledEnding(const JobRecord& job) {
  Ending out;
  out.status = pb::EXECUTION_STATUS_CANCELLED;
  if (!HasStarted(job)) {
    out.cause = pb::ENDING_CAUSE_NEVER_STARTED;
    out.outcome = job.cancelled_by_owner.value_or(false) ? pb::EXECUTION_OUTCOME_CANCELLED
                                                         : pb::EXECUTION_OUTCOME_UNKNOWN;
    return out;
  }
  if (!job.cancelled_by_owner) {
    out.outcome = pb::EXECUTION_OUTCOME_CANCELLED;
    out.unknown_cause = std::string(ToolName(job.tool)) + " does not tell who cancelled the job";
  } else if (*job.cancelled_by_owner) {
    out.outcome = pb::EXECUTION_OUTCOME_CANCELLED;
    out.cause = pb::ENDING_CAUSE_USER_CANCEL;
  } else {
    out.outcome = pb::EXECUTION_OUTCOME_UNKNOWN;
    out.cause = pb::ENDING_CAUSE_ADMIN_CANCEL;
  }
  return out;
}

}  // namespace

std::string OneState(const std::vector<std::string>& words) {
  for (const std::string_view flag : kFlagsFirst)
    for (const std::string& word : words)
      if (word == flag) return word;
  return words.empty() ? "" : words.front();
}

bool IsEnded(const JobRecord& job) {
  const StateRow* row = FindState(job.state);
  return row != nullptr && row->kind == Kind::kEnded;
}

bool HasStarted(const JobRecord& job) {
  const StateRow* row = FindState(job.state);
  if (row != nullptr && row->kind == Kind::kQueued) return false;
  // A start time alone is no run: a job cancelled in the queue or refused has start = end, and
  // SLURM prints the expected start of a pending one.
  return !job.node_list.empty() || !job.allocated.empty;
}

Ending EndingOf(const JobRecord& job) {
  Ending out;
  const StateRow* row = FindState(job.state);
  if (row == nullptr) {
    out.status = pb::EXECUTION_STATUS_UNKNOWN;
    out.unknown_cause = "the scheduler's state has no known meaning";
    return out;
  }
  if (row->state == "CANCELLED") return CancelledEnding(job);
  out = {row->status, row->outcome, row->cause, ""};
  // A requeued job that still gives its nodes back is COMPLETING without nodes; it waits again.
  if (row->state == "COMPLETING" && job.node_list.empty()) out.status = pb::EXECUTION_STATUS_QUEUED;
  if (row->kind != Kind::kEnded) return out;
  if (!HasStarted(job)) {
    out.outcome = pb::EXECUTION_OUTCOME_UNKNOWN;
    if (row->state != "NODE_FAIL" && row->state != "BOOT_FAIL" && row->state != "REQUEUED")
      out.cause = IsLaunchFailure(job.reason) ? pb::ENDING_CAUSE_LAUNCH_FAILURE
                                              : pb::ENDING_CAUSE_NEVER_STARTED;
    return out;
  }
  const bool by_itself = row->state == "COMPLETED" || row->state == "FAILED";
  if (!by_itself) return out;
  if (HasOutOfMemoryStep(job)) {
    out.status = pb::EXECUTION_STATUS_FAILED;
    out.outcome = pb::EXECUTION_OUTCOME_OUT_OF_MEMORY;
    out.cause = pb::ENDING_CAUSE_MEMORY_LIMIT;
    return out;
  }
  if (row->state == "FAILED" && IsLaunchFailure(job.reason) && job.tool != Tool::kSacct) {
    // sacct's Reason is why the job waited, not why it ended.
    out.outcome = pb::EXECUTION_OUTCOME_UNKNOWN;
    out.cause = pb::ENDING_CAUSE_LAUNCH_FAILURE;
  } else if (job.exit && job.exit->signal) {
    out.cause = pb::ENDING_CAUSE_SIGNAL;
  }
  return out;
}

pb::ExecutionOutcome StepOutcome(const StepRecord& step) {
  if (step.state == "OUT_OF_MEMORY" || (step.exit && step.exit->out_of_memory))
    return pb::EXECUTION_OUTCOME_OUT_OF_MEMORY;
  // A step that dies of a signal is CANCELLED 0:11 in sacct; only SIGTERM and SIGKILL are how
  // SLURM itself ends a step.
  const std::optional<int> signal = step.exit ? step.exit->signal : std::nullopt;
  if (step.state == "CANCELLED")
    return signal && *signal != 15 && *signal != 9 ? pb::EXECUTION_OUTCOME_FAILURE
                                                   : pb::EXECUTION_OUTCOME_CANCELLED;
  if (step.state == "TIMEOUT") return pb::EXECUTION_OUTCOME_TIMEOUT;
  if (step.state == "COMPLETED") return pb::EXECUTION_OUTCOME_SUCCESS;
  if (step.state == "FAILED") return pb::EXECUTION_OUTCOME_FAILURE;
  if (step.state == "NODE_FAIL" || step.state == "PREEMPTED" || step.state == "REQUEUED")
    return pb::EXECUTION_OUTCOME_UNKNOWN;
  return pb::EXECUTION_OUTCOME_UNSPECIFIED;
}

}  // namespace expanse::collect::slurm
