// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collect/slurm/run_table.h"

namespace expanse::collect::slurm {
namespace {

constexpr int64_t kEnd = 2'000;  // epoch seconds of attempt 0

/// Job 5: attempt 0 from 1000 on, attempt 1 as each test needs it.
class KeyIndexTest : public ::testing::Test {
 protected:
  KeyIndexTest() { Put(0, 1'000, kEnd); }
  void Put(int32_t restarts, int64_t start, std::optional<int64_t> end, int64_t submit = 900) {
    const RunIdentity id{5, submit, restarts};
    RunState& run = table_.runs()[id];
    run.id = id;
    run.start = start;
    run.end = end;
    run.ended = end.has_value();
    index_.Replace(table_);
  }
  /// The attempt's restart count, or -1 when none is found.
  int Find(double seconds, data::v1::FactOrigin origin = data::v1::FACT_ORIGIN_UNSPECIFIED,
           std::optional<int32_t> restarts = std::nullopt) {
    key_ = {};
    key_.set_native_id("5");
    if (restarts) key_.set_restart_count(*restarts);
    if (!index_.Complete(&key_, static_cast<int64_t>(seconds * 1000), origin)) return -1;
    return key_.restart_count();
  }
  static constexpr auto kEpilog = data::v1::FACT_ORIGIN_HOOK_EPILOG;
  RunTable table_;
  KeyIndex index_;
  common::v1::RunKey key_;
};

TEST_F(KeyIndexTest, SamplesOfAnAttemptThatIsNotKnownYetAreNotTheLastOnes) {
  EXPECT_EQ(Find(kEnd - 1), 0);
  EXPECT_EQ(Find(kEnd + 4), 0) << "two clocks";
  EXPECT_EQ(Find(kEnd + 30), -1);
  EXPECT_EQ(Find(kEnd + 30, data::v1::FACT_ORIGIN_CGROUP), -1);
  EXPECT_EQ(Find(kEnd + 30, data::v1::FACT_ORIGIN_HOOK_PROLOG), -1);
  Put(1, kEnd + 29, std::nullopt);
  EXPECT_EQ(Find(kEnd + 30), 1);
}

TEST_F(KeyIndexTest, AnIdThatIsUsedAgainIsAnotherRunEvenWithTheSameCount) {
  EXPECT_EQ(Find(9'000, data::v1::FACT_ORIGIN_HOOK_PROLOG, 0), -1);
  Put(0, 8'999, std::nullopt, 8'990);
  EXPECT_EQ(Find(9'000, data::v1::FACT_ORIGIN_HOOK_PROLOG, 0), 0);
  EXPECT_EQ(key_.submit_time_ms(), 8'990'000);
}

TEST_F(KeyIndexTest, AnEndThatWasNotToldBoundsWhenItWasSeen) {
  table_.runs().clear();
  Put(0, 1'000, std::nullopt);
  EXPECT_EQ(Find(50'000), 0) << "it runs";
  RunState& run = table_.runs().begin()->second;
  run.ended = true;
  run.ended_seen_ms = 3'000'000;
  index_.Replace(table_);
  EXPECT_EQ(Find(2'999), 0);
  EXPECT_EQ(Find(3'100), -1);
}

TEST_F(KeyIndexTest, AnEpilogIsThatOfTheEndNextToIt) {
  EXPECT_EQ(Find(kEnd + 300, kEpilog), 0) << "a late epilog";
  EXPECT_EQ(Find(kEnd + 700, kEpilog), -1);
  Put(1, kEnd + 1, std::nullopt);
  EXPECT_EQ(Find(kEnd + 3, kEpilog), 0) << "the node's clock is ahead of the next start";
  EXPECT_EQ(Find(kEnd + 200, kEpilog), -1) << "late, or the next one's: not known before it ends";
  EXPECT_EQ(Find(kEnd + 200, kEpilog, 1), 1);
  Put(1, kEnd + 1, kEnd + 199);
  EXPECT_EQ(Find(kEnd + 200, kEpilog), 1);
  EXPECT_EQ(Find(kEnd + 20, kEpilog), 0);
}

TEST_F(KeyIndexTest, ATasksEndIsOfTheAttemptWhoseProcessesDieSlowly) {
  EXPECT_EQ(Find(kEnd + 40, data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG), 0);
  EXPECT_EQ(Find(kEnd + 400, data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG), -1);
}

}  // namespace
}  // namespace expanse::collect::slurm
