// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/state_map.h"

#include <gtest/gtest.h>

#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/squeue_reader.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using namespace expanse::common::v1;

struct Case {
  const char* name;
  const char* state;
  bool started;
  const char* exit;     // as scontrol prints it; empty: none
  const char* derived;  // same
  const char* reason;
  std::optional<bool> by_owner;
  ExecutionStatus status;
  ExecutionOutcome outcome;
  EndingCause cause;
};

class StateMap : public ::testing::TestWithParam<Case> {};

TEST_P(StateMap, MapsTheEnding) {
  const Case& c = GetParam();
  JobRecord job;
  job.tool = Tool::kScontrol;
  job.state = c.state;
  job.reason = c.reason;
  if (c.started) job.node_list = "n1";
  job.exit = ParseScontrolExit(c.exit);
  job.derived_exit = ParseScontrolExit(c.derived);
  job.cancelled_by_owner = c.by_owner;
  const Ending ending = EndingOf(job);
  EXPECT_EQ(ExecutionStatus_Name(ending.status), ExecutionStatus_Name(c.status));
  EXPECT_EQ(ExecutionOutcome_Name(ending.outcome), ExecutionOutcome_Name(c.outcome));
  EXPECT_EQ(EndingCause_Name(ending.cause), EndingCause_Name(c.cause));
}

constexpr auto kQ = EXECUTION_STATUS_QUEUED, kR = EXECUTION_STATUS_RUNNING,
               kS = EXECUTION_STATUS_SUCCEEDED, kF = EXECUTION_STATUS_FAILED,
               kC = EXECUTION_STATUS_CANCELLED;
constexpr auto kNone = EXECUTION_OUTCOME_UNSPECIFIED, kUnknown = EXECUTION_OUTCOME_UNKNOWN;
constexpr auto kNoCause = ENDING_CAUSE_UNSPECIFIED;

const Case kCases[] = {
    {"Pending", "PENDING", false, "0:0", "0:0", "Resources", {}, kQ, kNone, kNoCause},
    {"RequeueHold", "REQUEUE_HOLD", false, "0:0", "", "", {}, kQ, kNone, kNoCause},
    {"RequeueFed", "REQUEUE_FED", false, "0:0", "", "", {}, kQ, kNone, kNoCause},
    {"ReservationDeleted", "RESV_DEL_HOLD", false, "0:0", "", "", {}, kQ, kNone, kNoCause},
    {"SpecialExit", "SPECIAL_EXIT", false, "0:0", "", "", {}, kQ, kNone, kNoCause},
    {"Running", "RUNNING", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Configuring", "CONFIGURING", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Completing", "COMPLETING", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"CompletingAfterARequeue", "COMPLETING", false, "0:0", "", "", {}, kQ, kNone, kNoCause},
    {"StageOut", "STAGE_OUT", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Signaling", "SIGNALING", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Stopped", "STOPPED", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"PowerUp", "POWER_UP_NODE", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"LaunchFailedState",
     "LAUNCH_FAILED",
     true,
     "1:0",
     "",
     "",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"ReconfigurationFailed",
     "RECONFIG_FAIL",
     true,
     "1:0",
     "",
     "",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"NodeFailureOf2411",
     "NODE_FAIL",
     true,
     "0:1",
     "0:0",
     "NodeDown",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_NODE_FAILURE},
    {"Suspended", "SUSPENDED", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Resizing", "RESIZING", true, "0:0", "", "", {}, kR, kNone, kNoCause},
    {"Completed",
     "COMPLETED",
     true,
     "0:0",
     "0:0",
     "",
     {},
     kS,
     EXECUTION_OUTCOME_SUCCESS,
     ENDING_CAUSE_EXITED},
    {"CompletedWithAFailedStep",
     "COMPLETED",
     true,
     "0:0",
     "5:0",
     "",
     {},
     kS,
     EXECUTION_OUTCOME_SUCCESS,
     ENDING_CAUSE_EXITED},
    {"CompletedWithAnOutOfMemoryStep",
     "COMPLETED",
     true,
     "0:0",
     "0:125",
     "",
     {},
     kF,
     EXECUTION_OUTCOME_OUT_OF_MEMORY,
     ENDING_CAUSE_MEMORY_LIMIT},
    {"Failed",
     "FAILED",
     true,
     "3:0",
     "0:0",
     "NonZeroExitCode",
     {},
     kF,
     EXECUTION_OUTCOME_FAILURE,
     ENDING_CAUSE_EXITED},
    {"FailedBySegfault",
     "FAILED",
     true,
     "139:0",
     "0:0",
     "NonZeroExitCode",
     {},
     kF,
     EXECUTION_OUTCOME_FAILURE,
     ENDING_CAUSE_SIGNAL},
    {"FailedWithAnOutOfMemoryStepLast",
     "FAILED",
     true,
     "1:0",
     "0:125",
     "NonZeroExitCode",
     {},
     kF,
     EXECUTION_OUTCOME_OUT_OF_MEMORY,
     ENDING_CAUSE_MEMORY_LIMIT},
    {"RefusedAtSubmission",
     "FAILED",
     false,
     "1:0",
     "0:0",
     "BadConstraints",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_NEVER_STARTED},
    {"LaunchFailedBeforeStart",
     "FAILED",
     false,
     "1:0",
     "",
     "JobLaunchFailure",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"LaunchFailedOnItsNode",
     "FAILED",
     true,
     "1:0",
     "",
     "JobLaunchFailure",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"OutOfMemory",
     "OUT_OF_MEMORY",
     true,
     "0:125",
     "0:0",
     "OutOfMemory",
     {},
     kF,
     EXECUTION_OUTCOME_OUT_OF_MEMORY,
     ENDING_CAUSE_MEMORY_LIMIT},
    {"Timeout",
     "TIMEOUT",
     true,
     "0:15",
     "0:0",
     "TimeLimit",
     {},
     kF,
     EXECUTION_OUTCOME_TIMEOUT,
     ENDING_CAUSE_TIME_LIMIT},
    {"CancelledByItsUser", "CANCELLED", true, "0:15", "", "", true, kC, EXECUTION_OUTCOME_CANCELLED,
     ENDING_CAUSE_USER_CANCEL},
    {"CancelledByAnAdministrator", "CANCELLED", true, "0:15", "", "", false, kC, kUnknown,
     ENDING_CAUSE_ADMIN_CANCEL},
    {"CancelledByWhom",
     "CANCELLED",
     true,
     "0:15",
     "",
     "",
     {},
     kC,
     EXECUTION_OUTCOME_CANCELLED,
     kNoCause},
    {"CancelledInTheQueueByItsUser", "CANCELLED", false, "0:0", "", "BeginTime", true, kC,
     EXECUTION_OUTCOME_CANCELLED, ENDING_CAUSE_NEVER_STARTED},
    {"CancelledInTheQueueByAnAdministrator", "CANCELLED", false, "0:0", "", "", false, kC, kUnknown,
     ENDING_CAUSE_NEVER_STARTED},
    {"DependencyNeverMet",
     "CANCELLED",
     false,
     "0:0",
     "",
     "DependencyNeverSatisfied",
     {},
     kC,
     kUnknown,
     ENDING_CAUSE_NEVER_STARTED},
    {"NodeFailure",
     "NODE_FAIL",
     true,
     "0:0",
     "",
     "NodeDown",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_NODE_FAILURE},
    {"BootFailure",
     "BOOT_FAIL",
     true,
     "1:0",
     "",
     "",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"BootFailureWithoutNodes",
     "BOOT_FAIL",
     false,
     "1:0",
     "",
     "",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_LAUNCH_FAILURE},
    {"Preempted", "PREEMPTED", true, "0:15", "", "", {}, kC, kUnknown, ENDING_CAUSE_PREEMPTED},
    {"Requeued", "REQUEUED", true, "0:0", "", "", {}, kC, kUnknown, ENDING_CAUSE_REQUEUED},
    {"DeadlineWhileRunning",
     "DEADLINE",
     true,
     "0:15",
     "",
     "DeadLine",
     {},
     kF,
     EXECUTION_OUTCOME_TIMEOUT,
     ENDING_CAUSE_DEADLINE},
    {"DeadlineInTheQueue",
     "DEADLINE",
     false,
     "0:0",
     "",
     "DeadLine",
     {},
     kF,
     kUnknown,
     ENDING_CAUSE_NEVER_STARTED},
    {"RevokedSibling",
     "REVOKED",
     false,
     "0:0",
     "",
     "",
     {},
     kC,
     kUnknown,
     ENDING_CAUSE_NEVER_STARTED},
    {"AStateOfALaterVersion",
     "FROZEN",
     true,
     "0:0",
     "",
     "",
     {},
     EXECUTION_STATUS_UNKNOWN,
     kNone,
     kNoCause},
};
INSTANTIATE_TEST_SUITE_P(EveryState, StateMap, ::testing::ValuesIn(kCases),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(StateMap, HasARowForEveryStateAndFlagOfTheThreeVersions) {
  // Base states and flags of slurm.h up to 26.05, but UPDATE_DB and EXPEDITING, which stand beside
  // a base state only.
  for (const char* state :
       {"PENDING",       "RUNNING",       "SUSPENDED",     "COMPLETED",   "CANCELLED",
        "FAILED",        "TIMEOUT",       "NODE_FAIL",     "PREEMPTED",   "BOOT_FAIL",
        "DEADLINE",      "OUT_OF_MEMORY", "LAUNCH_FAILED", "REQUEUED",    "REQUEUE_HOLD",
        "SPECIAL_EXIT",  "RESIZING",      "CONFIGURING",   "COMPLETING",  "STOPPED",
        "RECONFIG_FAIL", "POWER_UP_NODE", "REVOKED",       "REQUEUE_FED", "RESV_DEL_HOLD",
        "SIGNALING",     "STAGE_OUT"}) {
    JobRecord job;
    job.state = state;
    job.node_list = "n1";
    EXPECT_NE(EndingOf(job).status, EXECUTION_STATUS_UNKNOWN) << state;
  }
}

struct Recording {
  int64_t id;
  ExecutionOutcome outcome;
  EndingCause cause;
};

TEST(StateMapOnRecordings, EveryJobKindHasItsOutcomeFromSacctAlone) {
  auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  ASSERT_TRUE(batch.ok());
  const Recording want[] = {
      {6, EXECUTION_OUTCOME_TIMEOUT, ENDING_CAUSE_TIME_LIMIT},
      {7, EXECUTION_OUTCOME_CANCELLED, ENDING_CAUSE_USER_CANCEL},
      {8, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
      {9, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
      {10, EXECUTION_OUTCOME_OUT_OF_MEMORY, ENDING_CAUSE_MEMORY_LIMIT},
      {11, EXECUTION_OUTCOME_OUT_OF_MEMORY, ENDING_CAUSE_MEMORY_LIMIT},
      {12, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
      {28, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
      {15, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
      {16, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
      {17, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_REQUEUED},
      {23, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_ADMIN_CANCEL},
      {24, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
      {26, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_NEVER_STARTED},
  };
  for (const auto& w : want) {
    const JobRecord* job = FindJob(*batch, w.id);
    ASSERT_NE(job, nullptr) << w.id;
    const Ending ending = EndingOf(*job);
    EXPECT_EQ(ExecutionOutcome_Name(ending.outcome), ExecutionOutcome_Name(w.outcome)) << w.id;
    EXPECT_EQ(EndingCause_Name(ending.cause), EndingCause_Name(w.cause)) << w.id;
  }
}

TEST(StateMapOnRecordings, AStepThatDiedOfASegfaultFailedThoughSacctSaysCancelled) {
  auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  ASSERT_TRUE(batch.ok());
  const StepRecord* step = FindStep(*FindJob(*batch, 16), "0");
  EXPECT_EQ(step->state, "CANCELLED");
  EXPECT_EQ(StepOutcome(*step), EXECUTION_OUTCOME_FAILURE);
  EXPECT_EQ(StepOutcome(*FindStep(*FindJob(*batch, 11), "0")), EXECUTION_OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(StepOutcome(*FindStep(*FindJob(*batch, 7), "batch")), EXECUTION_OUTCOME_CANCELLED);
}

}  // namespace
}  // namespace expanse::collect::slurm
