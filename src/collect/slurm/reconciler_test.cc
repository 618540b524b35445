// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "collect/slurm/reconciler_fixture.h"

namespace expanse::collect::slurm {
namespace {

using namespace expanse::common::v1;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ReconcilerTest, EveryJobKindIsCompleteWithoutAnyHook) {
  UseLab2();
  Round();
  Round();
  struct Want {
    const char* id;
    int restarts;
    ExecutionStatus status;
    ExecutionOutcome outcome;
    EndingCause cause;
  };
  const Want want[] = {
      {"6", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_TIMEOUT, ENDING_CAUSE_TIME_LIMIT},
      {"7", 0, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_CANCELLED, ENDING_CAUSE_USER_CANCEL},
      {"8", 0, EXECUTION_STATUS_SUCCEEDED, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
      {"9", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
      {"10", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_OUT_OF_MEMORY,
       ENDING_CAUSE_MEMORY_LIMIT},
      {"11", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_OUT_OF_MEMORY,
       ENDING_CAUSE_MEMORY_LIMIT},
      {"15", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
      {"16", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
      {"17", 0, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_REQUEUED},
      {"17", 1, EXECUTION_STATUS_SUCCEEDED, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
      {"21", 0, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_CANCELLED,
       ENDING_CAUSE_NEVER_STARTED},
      {"22", 0, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_NEVER_STARTED},
      {"23", 0, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_ADMIN_CANCEL},
      {"26", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_NEVER_STARTED},
      {"28", 0, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
  };
  for (const auto& w : want) {
    const Execution* e = Best(w.id, w.restarts);
    ASSERT_NE(e, nullptr) << w.id << " " << w.restarts;
    EXPECT_EQ(ExecutionStatus_Name(e->status()), ExecutionStatus_Name(w.status)) << w.id;
    EXPECT_EQ(ExecutionOutcome_Name(e->outcome()), ExecutionOutcome_Name(w.outcome)) << w.id;
    EXPECT_EQ(EndingCause_Name(e->ending_cause()), EndingCause_Name(w.cause)) << w.id;
  }
  EXPECT_EQ(Best("9")->exit_code(), 3);
  EXPECT_EQ(Best("15")->signal(), 11);
  EXPECT_EQ(Best("27")->exit_code(), 11);  // squeue is exact where sacct prints 11:0 for both
  EXPECT_FALSE(Best("27")->has_signal());
  EXPECT_EQ(Best("28")->native_id(), "12_3");
  EXPECT_EQ(Best("4")->native_id(), "3+1");
  EXPECT_EQ(Best("24")->requested().memory_bytes(), int64_t{400} << 20);
  EXPECT_EQ(Best("24")->requested().memory_form(), "mem");
  EXPECT_EQ(Best("18")->memory_need().bound(), BOUND_AT_LEAST);
  EXPECT_EQ(Best("8")->runtime_seconds().bound(), BOUND_EXACT);
  EXPECT_EQ(Best("6")->runtime_seconds().bound(), BOUND_AT_LEAST);
  EXPECT_EQ(Latest("24", 0, data::v1::FACT_ORIGIN_SCONTROL)->stdout_path(),
            "/LAB/work/alice/multistep-24.out");
}

TEST_F(ReconcilerTest, AttemptsOfOneJobShareTheFirstSubmitTime) {
  UseLab2();
  Round();
  std::set<std::pair<int64_t, int>> keys;
  for (const auto& record : records_)
    if (record.has_facts() && record.facts().key().native_id() == "17")
      keys.insert({record.facts().key().submit_time_ms(), record.facts().key().restart_count()});
  EXPECT_THAT(keys, ::testing::ElementsAre(std::pair<int64_t, int>{1796079724'000, 0},
                                           std::pair<int64_t, int>{1796079724'000, 1}));
}

TEST_F(ReconcilerTest, ASecondRoundSendsNothingAgain) {
  UseLab2();
  Round();
  Round();
  const size_t sent = records_.size();
  Round();
  Round();
  EXPECT_EQ(records_.size(), sent);
}

TEST_F(ReconcilerTest, ARestartSendsNothingAgain) {
  UseLab2();
  Round();
  Round();
  const auto facts = [&] {
    return std::count_if(records_.begin(), records_.end(), [](const auto& r) {
      return r.has_facts() || r.has_bundle() || r.has_log_tail();
    });
  };
  const auto sent = facts();
  Restart();
  Round();
  EXPECT_EQ(facts(), sent);
}

TEST_F(ReconcilerTest, AccountingAloneFillsWhatHappenedWhileTheDaemonWasAway) {
  cluster_.sacct = Recorded("lab2/sacct-window.txt");
  Round();
  EXPECT_EQ(Best("10")->outcome(), EXECUTION_OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(Best("17", 1)->outcome(), EXECUTION_OUTCOME_SUCCESS);
  EXPECT_EQ(Best("15")->signal(), 11);
  EXPECT_EQ(Best("15")->unknown().count("exit_code"), 1u);  // sacct alone cannot be sure
  // sacct prints 0:0 for what the scheduler ended; the batch step knows the signal.
  for (const char* id : {"6", "7", "23"}) {
    EXPECT_FALSE(Best(id)->has_exit_code()) << id;
    EXPECT_EQ(Best(id)->signal(), 15) << id;
    EXPECT_EQ(Best(id)->unknown().count("exit_code"), 1u) << id;
  }
}

TEST_F(ReconcilerTest, AnEmptySqueueEndsNoJob) {
  UseLab2();
  cluster_.squeue = Recorded("lab2/squeue-2.json");
  cluster_.scontrol = Recorded("lab2/scontrol-2.txt");
  cluster_.sacct = cluster_.sacct_ids = FakeCluster::Header();
  Round();
  ASSERT_EQ(Best("6")->status(), EXECUTION_STATUS_RUNNING);
  cluster_.squeue = "{\"jobs\":[],\"errors\":[]}";
  for (int i = 0; i < 20; ++i) Round();
  EXPECT_EQ(Best("6")->status(), EXECUTION_STATUS_RUNNING);
  bool named = false;
  for (const auto& health : reconciler_->health())
    named = named || (health.part() == "reconciler" && health.status() == "degraded");
  EXPECT_TRUE(named);
}

TEST_F(ReconcilerTest, AToolThatFailsOrAnswersNothingIsNamedAndEndsNothing) {
  UseLab2();
  cluster_.squeue = Recorded("lab2/squeue-2.json");
  cluster_.scontrol = Recorded("lab2/scontrol-2.txt");
  cluster_.sacct = FakeCluster::Header();
  Round();
  cluster_.squeue = "";
  cluster_.sacct = "";
  cluster_.sacct_ids = "";
  for (int i = 0; i < 10; ++i) Round();
  EXPECT_EQ(Best("6")->status(), EXECUTION_STATUS_RUNNING);
  EXPECT_THAT(tools_->health()["squeue"].reason, HasSubstr("answered nothing"));
  EXPECT_THAT(tools_->health()["sacct"].reason, HasSubstr("not even a header"));
  cluster_.fail_squeue = true;
  Round();
  EXPECT_THAT(tools_->health()["squeue"].reason, HasSubstr("time-out"));
}

TEST_F(ReconcilerTest, AccountingThatFailsForAWhileRepeatsNothing) {
  UseLab2();
  Round();
  Round();
  const size_t sent = records_.size();
  cluster_.sacct = cluster_.sacct_ids = "";
  for (int i = 0; i < 8; ++i) Round();
  EXPECT_EQ(tools_->health()["sacct"].status, "degraded");
  UseLab2();
  for (int i = 0; i < 8; ++i) Round();
  EXPECT_EQ(records_.size(), sent);
}

TEST_F(ReconcilerTest, AForgottenJobThatNobodySawEndIsNotSeen) {
  UseLab2();
  cluster_.squeue = Recorded("lab2/squeue-2.json");
  cluster_.scontrol = Recorded("lab2/scontrol-2.txt");
  cluster_.sacct = cluster_.sacct_ids = FakeCluster::Header();
  Round();
  cluster_.squeue = "{\"jobs\":[],\"errors\":[]}";
  cluster_.forgotten = true;
  for (int i = 0; i < 20; ++i) Round();
  EXPECT_EQ(Best("6")->status(), EXECUTION_STATUS_UNKNOWN);
  const Execution* e = Latest("6", 0, data::v1::FACT_ORIGIN_SCONTROL);
  EXPECT_EQ(e->ending_cause(), ENDING_CAUSE_NOT_SEEN);
  EXPECT_THAT(e->unknown().at("end_time_ms"), HasSubstr("forgot"));
}

TEST_F(ReconcilerTest, WithoutAccountingTheControllersWordIsTheLastAndWhatItLacksIsNamed) {
  UseLab2();
  cluster_.sacct_disabled = true;
  Round();
  const RoundReport report = Round();
  EXPECT_EQ(report.unsettled, 0);
  const Execution* e = Best("11");
  EXPECT_EQ(e->outcome(), EXECUTION_OUTCOME_OUT_OF_MEMORY);  // by DerivedExitCode
  EXPECT_THAT(e->unknown().at("steps"), HasSubstr("accounting storage is disabled"));
  EXPECT_EQ(Best("7")->outcome(), EXECUTION_OUTCOME_CANCELLED);
  EXPECT_THAT(Best("7")->unknown().at("ending_cause"), HasSubstr("does not tell who"));
  EXPECT_EQ(tools_->health()["sacct"].status, "disabled");
}

TEST_F(ReconcilerTest, ALateRowOfAccountingIsStillTaken) {
  UseLab2();
  const std::string rows = cluster_.sacct;
  cluster_.sacct = cluster_.sacct_ids = FakeCluster::Header();
  for (int i = 0; i < 30; ++i) Round();
  EXPECT_EQ(Best("7")->ending_cause(), ENDING_CAUSE_UNSPECIFIED);
  cluster_.sacct_ids = rows;
  for (int i = 0; i < 70; ++i) Round();
  EXPECT_EQ(Best("7")->ending_cause(), ENDING_CAUSE_USER_CANCEL);
}

TEST_F(ReconcilerTest, ClockJumpsNeitherLoseNorRepeat) {
  UseLab2();
  Round();
  Round();
  const size_t sent = records_.size();
  clock_.JumpWall(Millis(-7'200'000));
  Round();
  clock_.JumpWall(Millis(86'400'000));
  for (int i = 0; i < 3; ++i) Round();
  size_t facts = 0;
  for (size_t i = sent; i < records_.size(); ++i) facts += records_[i].has_facts() ? 1 : 0;
  EXPECT_EQ(facts, 0u);
}

TEST_F(ReconcilerTest, JobsThatComeAfterAClockJumpAreComplete) {
  for (const int64_t jump : {int64_t{-7'200'000}, int64_t{86'400'000}}) {
    records_.clear();
    ASSERT_TRUE(fs_.Remove(dir_.path() + "/runs.json").ok());
    Restart();
    UseLab2();
    cluster_.squeue = Recorded("lab2/squeue-2.json");
    cluster_.scontrol = Recorded("lab2/scontrol-2.txt");
    cluster_.sacct = cluster_.sacct_ids = FakeCluster::Header();
    Round();
    ASSERT_EQ(Best("6")->status(), EXECUTION_STATUS_RUNNING);
    clock_.JumpWall(Millis(jump));
    Round();
    UseLab2();
    for (int i = 0; i < 3; ++i) Round();
    EXPECT_EQ(Best("6")->outcome(), EXECUTION_OUTCOME_TIMEOUT) << jump;
    EXPECT_EQ(Best("10")->outcome(), EXECUTION_OUTCOME_OUT_OF_MEMORY) << jump;
    EXPECT_EQ(Best("17", 1)->outcome(), EXECUTION_OUTCOME_SUCCESS) << jump;
  }
  // Set right again, accounting is asked from before the present on, not from the false future on.
  clock_.JumpWall(Millis(-86'400'000));
  cluster_.calls.clear();
  const std::string now = FormatRfc3339(clock_.Now()).substr(0, 19);
  Round();
  int windows = 0;
  for (const auto& argv : cluster_.calls)
    for (const auto& arg : argv)
      if (arg.starts_with("--starttime=")) {
        ++windows;
        EXPECT_LT(arg.substr(12), now);
      }
  EXPECT_GE(windows, 1);
}

TEST_F(ReconcilerTest, ACutAnswerOfAccountingIsMadeUpForByTheNext) {
  UseLab2();
  const std::string whole = cluster_.sacct;
  const size_t row = whole.find("\n11" + std::string(kRecordedMark)) + 1;
  ASSERT_NE(row, 0u);
  // Inside a row: the answer is not taken, and said so.
  cluster_.sacct = cluster_.sacct_ids = whole.substr(0, row + 40);
  Round();
  EXPECT_EQ(Latest("11", 0, data::v1::FACT_ORIGIN_SACCT), nullptr);
  EXPECT_EQ(tools_->health()["sacct"].status, "degraded");
  // Between the row of a job and those of its steps, where no reader can see it.
  cluster_.sacct = cluster_.sacct_ids = whole.substr(0, whole.find('\n', row) + 1);
  Round();
  ASSERT_NE(Latest("11", 0, data::v1::FACT_ORIGIN_SACCT), nullptr);
  EXPECT_EQ(Latest("11", 0, data::v1::FACT_ORIGIN_SACCT)->steps_size(), 0);
  UseLab2();
  for (int i = 0; i < 10; ++i) Round();
  EXPECT_EQ(tools_->health()["sacct"].status, "ok");
  EXPECT_GT(Best("11")->steps_size(), 0);
  EXPECT_EQ(Best("11")->outcome(), EXECUTION_OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(Best("28")->outcome(), EXECUTION_OUTCOME_FAILURE) << "behind the cut";
}

TEST_F(ReconcilerTest, ARecordThatTheQueueRefusesIsSentAgain) {
  UseLab2();
  refuse_ = true;
  EXPECT_FALSE(reconciler_->Round().ok());
  EXPECT_THAT(records_, IsEmpty());
  refuse_ = false;
  Round();
  Round();
  EXPECT_EQ(Best("10")->outcome(), EXECUTION_OUTCOME_OUT_OF_MEMORY);
}

TEST_F(ReconcilerTest, ARequeueThatTheQueueRefusesIsToldInTheNextRound) {
  const std::string now = cluster_.squeue = Recorded("lab2/squeue-2.json");
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = cluster_.squeue.find(from);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(cluster_.squeue.find(from, at + 1), std::string::npos) << "of job 17 only";
    cluster_.squeue.replace(at, from.size(), to);
  };
  replace("\"submit_time\": 1796079727", "\"submit_time\": 1796079724");
  replace("\"restart_cnt\": 1", "\"restart_cnt\": 0");
  Round();
  cluster_.squeue = now;
  refuse_ = true;
  EXPECT_FALSE(reconciler_->Round().ok());
  refuse_ = false;
  Round();
  ASSERT_NE(Latest("17", 0, data::v1::FACT_ORIGIN_SQUEUE), nullptr);
  EXPECT_EQ(Latest("17", 0, data::v1::FACT_ORIGIN_SQUEUE)->ending_cause(), ENDING_CAUSE_REQUEUED);
}

TEST_F(ReconcilerTest, WhatARoundAskedAndCouldNotTellIsAskedAgain) {
  cluster_.squeue = Recorded("lab2/squeue-2.json");
  cluster_.scontrol = Recorded("lab2/scontrol-2.txt");
  refuse_ = true;
  EXPECT_FALSE(reconciler_->Round().ok());
  refuse_ = false;
  Round();
  EXPECT_NE(Latest("6", 0, data::v1::FACT_ORIGIN_SCONTROL), nullptr);
}

TEST_F(ReconcilerTest, FewCallsARoundWhenNothingChanges) {
  UseLab2();
  for (int i = 0; i < 8; ++i) Round();
  cluster_.calls.clear();
  for (int i = 0; i < 6; ++i) Round();
  EXPECT_EQ(cluster_.Count("squeue"), 6);
  EXPECT_EQ(cluster_.Count("scontrol"), 0);
  EXPECT_LE(cluster_.Count("sacct"), 1);
}

TEST_F(ReconcilerTest, EveryRunGetsItsBundleAndItsLogTails) {
  UseLab2();
  Round();
  Round();
  size_t bundles = 0, tails = 0;
  for (const auto& record : records_) {
    if (record.has_log_tail()) {
      ++tails;
      EXPECT_NE(record.log_tail().unknown_reason(), "");  // no such files here
    }
    if (!record.has_bundle()) continue;
    ++bundles;
    EXPECT_THAT(record.bundle().bundle_id(), HasSubstr("b1:"));
  }
  EXPECT_EQ(bundles, 29u);  // one for each attempt
  EXPECT_GT(tails, 40u);
}

TEST_F(ReconcilerTest, HooksPartialKeysAreCompleted) {
  UseLab2();
  Round();
  RunKey key;
  key.set_native_id("17");
  ASSERT_TRUE(index_.Complete(&key, 1796079726'000, {}));  // between the two starts
  EXPECT_EQ(key.restart_count(), 0);
  EXPECT_EQ(key.submit_time_ms(), 1796079724'000);
  RunKey later;
  later.set_native_id("17");
  ASSERT_TRUE(index_.Complete(&later, 1796079739'000, {}));
  EXPECT_EQ(later.restart_count(), 1);
  EXPECT_EQ(later.submit_time_ms(), 1796079724'000);
  RunKey early;
  early.set_native_id("17");
  EXPECT_FALSE(index_.Complete(&early, 1796079700'000, {}));
  RunKey unknown;
  unknown.set_native_id("4711");
  EXPECT_FALSE(index_.Complete(&unknown, 1796079739'000, {}));
}

TEST_F(ReconcilerTest, AReusedIdIsAnotherRun) {
  UseLab2();
  Round();
  std::string again = Recorded("lab2/squeue-end.json");
  const std::string old_submit = "\"submit_time\": 1796079724";
  for (size_t at = again.find(old_submit); at != std::string::npos; at = again.find(old_submit))
    again.replace(at, old_submit.size(), "\"submit_time\": 1796079999");
  cluster_.squeue = again;
  cluster_.scontrol = "";
  Round();
  std::set<int64_t> submits;
  for (const auto& record : records_)
    if (record.has_facts() && record.facts().key().native_id() == "8")
      submits.insert(record.facts().key().submit_time_ms());
  EXPECT_EQ(submits.size(), 2u);
}

}  // namespace
}  // namespace expanse::collect::slurm
