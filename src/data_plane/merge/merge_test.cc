// SPDX-License-Identifier: Apache-2.0
#include "data_plane/merge/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_plane/fact_builder.h"
#include "data_plane/merge/fold.h"
#include "data_plane/merge/peaks.h"

namespace expanse::data_plane {
namespace {

using common::v1::BOUND_AT_LEAST;
using common::v1::BOUND_EXACT;
using common::v1::Execution;
using data::v1::StoredFacts;
using testing::ElementsAre;

constexpr int64_t kGiB = int64_t{1} << 30;

StoredFacts Row(data::v1::FactOrigin origin, int64_t at_ms, const Fill& fill,
                const std::string& node = "", const std::string& step = "") {
  StoredFacts row;
  row.set_node(node);
  FoldFacts(Facts(origin, Job("7"), at_ms, fill, node, step).facts(), at_ms, &row);
  return row;
}

Fill State(common::v1::ExecutionStatus status, common::v1::ExecutionOutcome outcome,
           const std::string& text, const Fill& more = {}) {
  return [=](Execution& e) {
    e.set_status(status);
    e.set_outcome(outcome);
    e.set_scheduler_state(text);
    if (more) more(e);
  };
}
Fill Completed(const Fill& more = {}) {
  return State(common::v1::EXECUTION_STATUS_SUCCEEDED, common::v1::EXECUTION_OUTCOME_SUCCESS,
               "COMPLETED", more);
}
Fill Running(const Fill& more = {}) {
  return State(common::v1::EXECUTION_STATUS_RUNNING, common::v1::EXECUTION_OUTCOME_UNSPECIFIED,
               "RUNNING", more);
}

template <typename M, typename T>
void Set(M* measured, T value, bool exact, const std::string& reason = "") {
  measured->set_value(value);
  measured->set_bound(exact ? BOUND_EXACT : BOUND_AT_LEAST);
  measured->set_reason(reason);
}

Execution MergeOf(const std::vector<StoredFacts>& rows, MergeContext context = {}) {
  context.execution_id = "e";
  context.native_id = "7";
  return Merge(context, rows);
}

TEST(Merge, TakesAccountingBeforeScontrolBeforeSqueueAndNamesFromScontrol) {
  const auto e = MergeOf({
      Row(data::v1::FACT_ORIGIN_SQUEUE, 1,
          [](Execution& x) {
            x.set_user("squeue");
            x.set_partition("p");
            x.set_work_dir("/w");
          }),
      Row(data::v1::FACT_ORIGIN_SCONTROL, 2,
          [](Execution& x) {
            x.set_user("scontrol");
            x.set_job_name("a|b\nc");
            x.set_account("acct");
          }),
      Row(data::v1::FACT_ORIGIN_SACCT, 3,
          [](Execution& x) {
            x.set_user("sacct");
            x.set_job_name("cut");
          }),
  });
  EXPECT_EQ(e.user(), "sacct");
  EXPECT_EQ(e.account(), "acct");
  EXPECT_EQ(e.partition(), "p");
  EXPECT_EQ(e.work_dir(), "/w");
  EXPECT_EQ(e.job_name(), "a|b\nc");
  EXPECT_THAT(e.seen_by(), ElementsAre("sacct", "scontrol", "squeue"));
}

TEST(Merge, ARunThatEndedDoesNotRunAgainBecauseAStrongerSourceIsBehind) {
  const auto e = MergeOf({
      Row(data::v1::FACT_ORIGIN_SACCT, 5,
          Running([](Execution& x) { x.set_start_time_ms(1'000); })),
      Row(data::v1::FACT_ORIGIN_SCONTROL, 4, Completed([](Execution& x) {
            x.set_end_time_ms(9'000);
            x.set_exit_code(0);
          })),
  });
  EXPECT_EQ(e.status(), common::v1::EXECUTION_STATUS_SUCCEEDED);
  EXPECT_EQ(e.start_time_ms(), 1'000);
  EXPECT_EQ(e.end_time_ms(), 9'000);
  EXPECT_EQ(e.runtime_seconds().value(), 8);
}

TEST(Merge, TheEndThatASchedulerExpectsOfARunningJobIsNoEnd) {
  const auto e = MergeOf({Row(data::v1::FACT_ORIGIN_SCONTROL, 50'000, Running([](Execution& x) {
                                x.set_start_time_ms(1'000);
                                x.set_end_time_ms(3'600'000);
                              }))});
  EXPECT_FALSE(e.has_end_time_ms());
  EXPECT_EQ(e.runtime_seconds().value(), 49);
  EXPECT_EQ(e.runtime_seconds().bound(), BOUND_AT_LEAST);
  EXPECT_EQ(e.runtime_seconds().reason(), "still running");
}

TEST(Merge, AnEndBeforeTheStartGivesNoRuntime) {
  const auto ran = [](int64_t start_ms, int64_t end_ms) {
    return MergeOf({Row(data::v1::FACT_ORIGIN_SACCT, 5, Completed([=](Execution& x) {
                          x.set_start_time_ms(start_ms);
                          x.set_end_time_ms(end_ms);
                        }))});
  };
  const auto jumped = ran(7'200'000, 3'700'000);
  EXPECT_FALSE(jumped.has_runtime_seconds());
  EXPECT_THAT(jumped.unknown().at("runtime_seconds"), testing::HasSubstr("before the start"));
  EXPECT_EQ(jumped.start_time_ms(), 7'200'000) << "what was told stays";
  EXPECT_EQ(jumped.end_time_ms(), 3'700'000);
  EXPECT_EQ(ran(7'200'400, 7'200'000).runtime_seconds().value(), 0) << "rounding, no jump";
}

TEST(Merge, AnOutOfMemoryStepMakesACompletedJobOutOfMemoryAndKeepsTheSchedulersState) {
  const auto e = MergeOf({Row(data::v1::FACT_ORIGIN_SACCT, 9, Completed([](Execution& x) {
                                auto* step = x.add_steps();
                                step->set_step_id("0");
                                step->set_scheduler_state("OUT_OF_MEMORY");
                                step->set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
                                Set(step->mutable_memory_peak_enforced(), kGiB, true);
                              }))});
  EXPECT_EQ(e.outcome(), common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(e.ending_cause(), common::v1::ENDING_CAUSE_MEMORY_LIMIT);
  EXPECT_EQ(e.scheduler_state(), "COMPLETED");
  EXPECT_EQ(e.status(), common::v1::EXECUTION_STATUS_SUCCEEDED);
  EXPECT_EQ(e.memory_peak_enforced().bound(), BOUND_AT_LEAST);
  EXPECT_EQ(e.memory_peak_enforced().reason(), "killed at the memory limit");
}

TEST(Merge, ATimeoutWithAnOutOfMemoryStepStaysATimeout) {
  const auto e =
      MergeOf({Row(data::v1::FACT_ORIGIN_SACCT, 9,
                   State(common::v1::EXECUTION_STATUS_FAILED, common::v1::EXECUTION_OUTCOME_TIMEOUT,
                         "TIMEOUT", [](Execution& x) {
                           auto* step = x.add_steps();
                           step->set_step_id("0");
                           step->set_oom_kills(1);
                         }))});
  EXPECT_EQ(e.outcome(), common::v1::EXECUTION_OUTCOME_TIMEOUT);
  EXPECT_EQ(e.steps(0).outcome(), common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
}

TEST(Merge, TheRequestIsThatOfTheFirstSightAlsoAfterAResize) {
  const auto memory = [](int64_t bytes) {
    return [bytes](Execution& x) { x.mutable_requested()->set_memory_bytes(bytes); };
  };
  const auto e = MergeOf({Row(data::v1::FACT_ORIGIN_SQUEUE, 1'000, memory(8 * kGiB)),
                          Row(data::v1::FACT_ORIGIN_SACCT, 900'000, memory(2 * kGiB))});
  EXPECT_EQ(e.requested().memory_bytes(), 8 * kGiB);
  // In one round of polls the better source speaks.
  const auto same_round = MergeOf({Row(data::v1::FACT_ORIGIN_SQUEUE, 1'000, memory(8 * kGiB)),
                                   Row(data::v1::FACT_ORIGIN_SCONTROL, 2'000, memory(7 * kGiB))});
  EXPECT_EQ(same_round.requested().memory_bytes(), 7 * kGiB);
}

TEST(Merge, TheWorstNodeOfTheBestMeasurementIsThePeak) {
  const auto peak = [](int64_t bytes, bool exact) {
    return [=](Execution& x) {
      auto* step = x.add_steps();
      step->set_step_id("0");
      Set(step->mutable_memory_peak_enforced(), bytes, exact, exact ? "" : "sampled");
    };
  };
  const auto e = MergeOf({
      Row(data::v1::FACT_ORIGIN_SACCT, 9, Completed(peak(1 * kGiB, false))),
      Row(data::v1::FACT_ORIGIN_CGROUP, 8, peak(2 * kGiB, false), "n1", "0"),
      Row(data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG, 9, peak(2 * kGiB, true), "n1", "0"),
      Row(data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG, 9, peak(3 * kGiB, true), "n2", "0"),
  });
  EXPECT_EQ(e.memory_peak_enforced().value(), 3 * kGiB);
  EXPECT_EQ(e.memory_peak_enforced().bound(), BOUND_EXACT);
  EXPECT_THAT(e.steps(0).nodes(), ElementsAre("n1", "n2"));
}

TEST(Merge, CpuSecondsAreTheSumOverStepsAndNodesWhereEachIsExact) {
  const auto cpu = [](const std::string& id, double seconds, bool exact) {
    return [=](Execution& x) {
      auto* step = x.add_steps();
      step->set_step_id(id);
      Set(step->mutable_cpu_seconds(), seconds, exact, exact ? "" : "TotalCPU");
    };
  };
  const auto hook = data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG;
  std::vector<StoredFacts> rows{
      Row(data::v1::FACT_ORIGIN_SACCT, 9, Completed([&](Execution& x) {
            cpu("batch", 1, false)(x);
            cpu("extern", 0.01, false)(x);
            cpu("0", 7, false)(x);
            Set(x.mutable_cpu_seconds(), 8.01, false, "TotalCPU");
          })),
      Row(hook, 9, cpu("batch", 1.5, true), "n1", "batch"),
      Row(hook, 9, cpu("0", 4, true), "n1", "0"),
  };
  rows[0].mutable_execution()->mutable_steps(2)->add_nodes("n1");
  rows[0].mutable_execution()->mutable_steps(2)->add_nodes("n2");
  // One node of step 0 is missing: only floors are left, and the largest is taken.
  auto e = MergeOf(rows);
  EXPECT_EQ(e.cpu_seconds().bound(), BOUND_AT_LEAST);
  EXPECT_DOUBLE_EQ(e.cpu_seconds().value(), 8.51);
  rows.push_back(Row(hook, 9, cpu("0", 5, true), "n2", "0"));
  e = MergeOf(rows);
  EXPECT_EQ(e.cpu_seconds().bound(), BOUND_EXACT);
  EXPECT_DOUBLE_EQ(e.cpu_seconds().value(), 1.5 + 4 + 5 + 0.01);
}

TEST(Merge, TaskEpilogSpeaksOfItsStepAndOfTheWholeJob) {
  const auto e = MergeOf({
      Row(data::v1::FACT_ORIGIN_SACCT, 9, Completed()),
      Row(
          data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG, 9,
          [](Execution& x) {
            auto* step = x.add_steps();
            step->set_step_id("batch");
            Set(step->mutable_memory_peak_enforced(), kGiB, true);
            Set(x.mutable_memory_peak_enforced(), 2 * kGiB, true);
            Set(x.mutable_cpu_seconds(), 12.5, true);
          },
          "n1", "batch"),
  });
  EXPECT_EQ(e.steps(0).memory_peak_enforced().value(), kGiB);
  EXPECT_EQ(e.memory_peak_enforced().value(), 2 * kGiB);
  EXPECT_DOUBLE_EQ(e.cpu_seconds().value(), 12.5);
  EXPECT_EQ(e.cpu_seconds().bound(), BOUND_EXACT);
}

TEST(Merge, HooksAloneNameTheStateAsUnknown) {
  const auto e = MergeOf({
      Row(
          data::v1::FACT_ORIGIN_HOOK_PROLOG, 1'000,
          [](Execution& x) {
            x.set_status(common::v1::EXECUTION_STATUS_RUNNING);
            x.set_start_time_ms(1'000);
          },
          "n1"),
      Row(
          data::v1::FACT_ORIGIN_HOOK_EPILOG, 5'000,
          [](Execution& x) {
            x.set_end_time_ms(5'000);
            x.set_exit_code(3);
          },
          "n1"),
  });
  EXPECT_EQ(e.status(), common::v1::EXECUTION_STATUS_UNKNOWN);
  EXPECT_EQ(e.outcome(), common::v1::EXECUTION_OUTCOME_UNKNOWN);
  EXPECT_EQ(e.exit_code(), 3);
  EXPECT_TRUE(e.unknown().contains("outcome"));
  EXPECT_EQ(e.runtime_seconds().value(), 4);
}

TEST(Merge, ASupersededAttemptEndsAsRequeued) {
  MergeContext context;
  context.superseded = Superseded::kByAttempt;
  const auto e = MergeOf({Row(data::v1::FACT_ORIGIN_SQUEUE, 1, Running())}, context);
  EXPECT_EQ(e.ending_cause(), common::v1::ENDING_CAUSE_REQUEUED);
  EXPECT_EQ(e.outcome(), common::v1::EXECUTION_OUTCOME_UNKNOWN);
  EXPECT_TRUE(e.unknown().contains("end_time_ms"));
}

TEST(Merge, UnseenFieldsHaveTheReasonOfTheirSource) {
  const auto e = MergeOf({
      Row(data::v1::FACT_ORIGIN_SQUEUE, 1,
          State(
              common::v1::EXECUTION_STATUS_QUEUED, common::v1::EXECUTION_OUTCOME_UNSPECIFIED,
              "PENDING",
              [](Execution& x) { (*x.mutable_unknown())["exit_code"] = "the job never started"; })),
      Row(data::v1::FACT_ORIGIN_SACCT, 5, Completed([](Execution& x) {
            (*x.mutable_unknown())["memory_need"] = "sacct took no memory sample of this run";
            x.mutable_requested()->set_cpu_cores(1);
            x.mutable_requested()->set_gpu_count(0);
            (*x.mutable_requested()->mutable_unknown())["memory_bytes"] = "no limit";
          })),
  });
  EXPECT_EQ(e.unknown().at("memory_need"), "sacct took no memory sample of this run");
  EXPECT_EQ(e.unknown().at("user"), "not reported (seen by sacct, squeue)");
  EXPECT_EQ(e.requested().unknown().at("memory_bytes"), "no limit");
  EXPECT_TRUE(e.requested().has_cpu_cores());
  EXPECT_TRUE(e.requested().has_gpu_count());
  EXPECT_FALSE(e.requested().unknown().contains("cpu_cores"));
}

Fill Counts(int32_t cpus, int32_t nodes) {
  return Running([=](Execution& x) {
    x.mutable_requested()->set_cpu_cores(cpus);
    x.mutable_requested()->set_nodes(nodes);
    x.mutable_allocated()->set_cpu_cores(cpus);
  });
}

TEST(Merge, ARequestOfNoCpuAndNoNodeWasNotSeen) {
  // As collectors sent it that read a row of the accounting before it was filled.
  StoredFacts old = Row(data::v1::FACT_ORIGIN_SACCT, 1, Counts(4, 2));
  old.mutable_execution()->mutable_requested()->set_cpu_cores(0);
  old.mutable_execution()->mutable_requested()->set_nodes(0);
  old.mutable_execution()->mutable_allocated()->set_cpu_cores(0);
  const auto alone = MergeOf({old});
  EXPECT_FALSE(alone.requested().has_cpu_cores());
  EXPECT_FALSE(alone.requested().has_nodes());
  EXPECT_FALSE(alone.allocated().has_cpu_cores());
  EXPECT_TRUE(alone.requested().unknown().contains("cpu_cores"));
  EXPECT_TRUE(alone.requested().unknown().contains("nodes"));
  const auto both = MergeOf({old, Row(data::v1::FACT_ORIGIN_SQUEUE, 90'000, Counts(4, 2))});
  EXPECT_EQ(both.requested().cpu_cores(), 4);
  EXPECT_EQ(both.requested().nodes(), 2);
  EXPECT_EQ(both.allocated().cpu_cores(), 4);
}

TEST(Fold, TheFirstCountIsThatOfTheRequestAndNotA0BeforeIt) {
  const auto at = [](int64_t ms, int32_t cpus, StoredFacts* row) {
    FoldFacts(Facts(data::v1::FACT_ORIGIN_SACCT, Job("7"), ms, Counts(cpus, cpus)).facts(), ms,
              row);
  };
  StoredFacts forward;
  at(1, 0, &forward);
  at(2, 4, &forward);
  at(3, 8, &forward);
  StoredFacts backward;
  at(3, 8, &backward);
  at(2, 4, &backward);
  at(1, 0, &backward);
  EXPECT_EQ(forward.execution().requested().cpu_cores(), 4);
  EXPECT_EQ(DeterministicBytes(forward), DeterministicBytes(backward));

  StoredFacts stored;  // with the 0, as it was kept before
  at(1, 5, &stored);
  stored.mutable_execution()->mutable_requested()->set_cpu_cores(0);
  at(2, 4, &stored);
  EXPECT_EQ(stored.execution().requested().cpu_cores(), 4);
  at(3, 8, &stored);
  EXPECT_EQ(stored.execution().requested().cpu_cores(), 4);
}

TEST(Fold, KeepsTheNewestOfAFieldAndTheOldestRequestInAnyOrder) {
  const auto at = [](int64_t ms, const std::string& reason, int64_t memory) {
    return Facts(data::v1::FACT_ORIGIN_SQUEUE, Job("7"), ms, [=](Execution& x) {
      x.set_scheduler_reason(reason);
      x.mutable_requested()->set_memory_bytes(memory);
    });
  };
  StoredFacts forward;
  StoredFacts backward;
  for (const int64_t ms : {1, 2, 3})
    FoldFacts(at(ms, std::to_string(ms), ms).facts(), ms, &forward);
  for (const int64_t ms : {3, 1, 2, 2, 3})
    FoldFacts(at(ms, std::to_string(ms), ms).facts(), ms, &backward);
  EXPECT_EQ(forward.execution().scheduler_reason(), "3");
  EXPECT_EQ(forward.execution().requested().memory_bytes(), 1);
  EXPECT_EQ(DeterministicBytes(forward), DeterministicBytes(backward));
}

TEST(Fold, AReasonOfAnEarlierStateIsNotThatOfTheState) {
  StoredFacts row;
  FoldFacts(
      Facts(data::v1::FACT_ORIGIN_SQUEUE, Job("7"), 1,
            State(common::v1::EXECUTION_STATUS_QUEUED, common::v1::EXECUTION_OUTCOME_UNSPECIFIED,
                  "PENDING", [](Execution& x) { x.set_scheduler_reason("Priority"); }))
          .facts(),
      1, &row);
  FoldFacts(Facts(data::v1::FACT_ORIGIN_SQUEUE, Job("7"), 2, Running()).facts(), 2, &row);
  EXPECT_EQ(MergeOf({row}).scheduler_reason(), "");
}

TEST(Fold, APeakOnlyGrowsAndExactBeatsAnEqualFloor) {
  common::v1::MeasuredInt64 peak;
  common::v1::MeasuredInt64 in;
  Set(&in, int64_t{5}, false, "sampled");
  FoldPeak(in, &peak);
  Set(&in, int64_t{5}, true);
  FoldPeak(in, &peak);
  EXPECT_EQ(peak.bound(), BOUND_EXACT);
  Set(&in, int64_t{6}, false, "sampled");
  FoldPeak(in, &peak);
  EXPECT_EQ(peak.value(), 6);
  EXPECT_EQ(peak.bound(), BOUND_AT_LEAST);
}

TEST(Merge, BytesReadAddUpOverStepsAndNodesAndAreExactOnlyWhenEachIs) {
  const auto io = [](int64_t bytes, bool exact) {
    return [=](Execution& e) {
      auto* step = e.add_steps();
      step->set_step_id("0");
      Set(step->mutable_io_read_bytes(), bytes, exact, exact ? "" : "sampled");
      step->mutable_network_receive_bytes()->set_reason("shared network");
    };
  };
  const auto of = [&](bool second_is_exact) {
    return MergeOf({Row(data::v1::FACT_ORIGIN_CGROUP, 1, io(100, true), "n1", "0"),
                    Row(data::v1::FACT_ORIGIN_CGROUP, 2, io(50, second_is_exact), "n2", "0"),
                    Row(data::v1::FACT_ORIGIN_SACCT, 3, [](Execution& e) {
                      Completed()(e);
                      e.add_nodes("n1");
                      e.add_nodes("n2");
                    })});
  };
  EXPECT_EQ(of(true).io_read_bytes().value(), 150);
  EXPECT_EQ(of(true).io_read_bytes().bound(), BOUND_EXACT);
  EXPECT_EQ(of(false).io_read_bytes().bound(), BOUND_AT_LEAST);
  EXPECT_EQ(of(false).io_read_bytes().reason(), "sampled");
  EXPECT_FALSE(of(true).network_receive_bytes().has_value());
  EXPECT_EQ(of(true).network_receive_bytes().reason(), "shared network");
}

}  // namespace
}  // namespace expanse::data_plane
