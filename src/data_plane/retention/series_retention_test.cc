// SPDX-License-Identifier: Apache-2.0
#include "data_plane/retention/series_retention.h"

#include <gtest/gtest.h>

#include "platform/fs/fs.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kDay = 86'400'000;
constexpr int64_t kNow = 1'796'000'000'000;

class SeriesRetentionTest : public testing::Test {
 protected:
  void AppendAt(int64_t t) {
    storage::SeriesKey key;
    key.org = OrgId("o");
    key.execution = ExecutionId("e");
    key.metric = "cpu";
    key.source = "cgroup";
    const double value = 1;
    const storage::SeriesBlock block{key, {&t, 1}, {&value, 1}};
    ASSERT_TRUE(store_->Append({&block, 1}, "b").ok());
  }
  size_t Kept() {
    storage::SeriesSelector all;
    all.org = OrgId("o");
    const auto answer = store_->Read(all, {}, 100'000).value();
    return answer.series.empty() ? 0 : answer.series[0].samples.size();
  }
  void RunFor(int64_t ms) {
    for (; ms > 0; ms -= 60'000) {
      clock_.Advance(Millis(60'000));
      ASSERT_TRUE(retention_.Step().ok());
    }
  }

  platform::TempDir dir_;
  std::unique_ptr<storage::SeriesStore> store_ =
      storage::SeriesStore::Open("file:" + dir_.path() + "/series").value();
  platform::FakeClock clock_{FromUnixMillis(kNow)};
  SeriesRetention retention_{*store_, clock_, Millis(30 * kDay)};
};

TEST_F(SeriesRetentionTest, KeepsThirtyDaysAndDropsWhatIsOlder) {
  AppendAt(kNow - 31 * kDay);
  AppendAt(kNow - 29 * kDay);
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(retention_.Step().ok());
  EXPECT_EQ(Kept(), 1u);
  RunFor(3'600'000);
  EXPECT_EQ(Kept(), 1u);
}

TEST_F(SeriesRetentionTest, AClockThatJumpsAYearAheadAndIsSetRightTakesAtMostADayAnHour) {
  for (int day = 0; day < 29; ++day) AppendAt(kNow - day * kDay);
  ASSERT_TRUE(retention_.Step().ok());
  clock_.JumpWall(Millis(365 * kDay));
  RunFor(3'600'000);
  EXPECT_GE(Kept(), 29u - 2u);
  clock_.JumpWall(Millis(-365 * kDay));
  const size_t kept = Kept();
  RunFor(3'600'000);
  EXPECT_EQ(Kept(), kept);
}

TEST_F(SeriesRetentionTest, AClockThatIsSetBackDropsNothing) {
  for (int day = 0; day < 29; ++day) AppendAt(kNow - day * kDay);
  ASSERT_TRUE(retention_.Step().ok());
  clock_.JumpWall(Millis(-100 * kDay));
  RunFor(600'000);
  EXPECT_EQ(Kept(), 29u);
}

TEST_F(SeriesRetentionTest, AfterALongPauseTheOldIsGoneInTheEnd) {
  for (int day = 0; day < 29; ++day) AppendAt(kNow - day * kDay);
  ASSERT_TRUE(retention_.Step().ok());
  clock_.JumpWall(Millis(60 * kDay));  // the plane was off
  RunFor(3 * kDay);
  EXPECT_EQ(Kept(), 0u);
}

}  // namespace
}  // namespace expanse::data_plane
