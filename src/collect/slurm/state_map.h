// SPDX-License-Identifier: Apache-2.0
// From what SLURM says about an ending to status, outcome and cause. The scheduler's own state is
// kept beside them; the outcome says what the ending tells about the source: an ending that is not
// the source's doing (node failure, preemption, an administrator, a failed launch) is `unknown`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/slurm/job_record.h"
#include "expanse/common/v1/execution.pb.h"

namespace expanse::collect::slurm {

struct Ending {
  expanse::common::v1::ExecutionStatus status = expanse::common::v1::EXECUTION_STATUS_UNSPECIFIED;
  expanse::common::v1::ExecutionOutcome outcome =
      expanse::common::v1::EXECUTION_OUTCOME_UNSPECIFIED;
  expanse::common::v1::EndingCause cause = expanse::common::v1::ENDING_CAUSE_UNSPECIFIED;
  /// Why outcome or cause are not known; empty when they are.
  std::string unknown_cause;
};

/// The state of a list of base state and flags, as data_parser prints it, in the one word that the
/// text forms print: a flag that says more than the base state wins ({"PENDING", "REQUEUED"} is
/// REQUEUED). Flags that only tell how a state came to be (LAUNCH_FAILED beside PENDING,
/// EXPEDITING) leave the base state.
std::string OneState(const std::vector<std::string>& words);

/// True when a job in this state will not run again under this record.
bool IsEnded(const JobRecord& job);
/// True when resources were ever allocated: only then are start and end times of an ended record
/// those of a run.
bool HasStarted(const JobRecord& job);

/// Status, outcome and cause of one row. Rows of sacct carry steps; those of scontrol and squeue do
/// not, so that an out-of-memory step shows there only as DerivedExitCode 0:125.
Ending EndingOf(const JobRecord& job);

/// Outcome of one step.
expanse::common::v1::ExecutionOutcome StepOutcome(const StepRecord& step);

}  // namespace expanse::collect::slurm
