// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/limits.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/units.h"

namespace expanse::intelligence::analyse {
namespace {

TEST(Limits, MemoryIsRoundedUpInStepsOfAboutFivePercent) {
  const struct {
    double bytes;
    int64_t want;
  } cases[] = {
      {1, 16 * kMiB},
      {100.0 * kMiB, 112 * kMiB},
      {1000.0 * kMiB, 1024 * kMiB},
      {14.875 * kGiB, 15 * kGiB},
      {20.1 * kGiB, 21 * kGiB},
      {100.5 * kGiB, 104 * kGiB},
      {15.0 * kGiB, 15 * kGiB},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(RoundUpMemory(c.bytes), c.want) << c.bytes;
    EXPECT_GE(static_cast<double>(RoundUpMemory(c.bytes)), c.bytes);
  }
  for (double gib = 20; gib < 2000; gib *= 1.013) {
    EXPECT_EQ(RoundUpMemory(gib * kGiB) % kGiB, 0);
    EXPECT_LE(static_cast<double>(RoundUpMemory(gib * kGiB)), gib * kGiB * 1.05 + 1);
  }
}

TEST(Limits, WalltimeIsRoundedUpToWholeMinutesInSteps) {
  const struct {
    double seconds;
    int64_t minutes;
  } cases[] = {{1, 1}, {60, 1}, {61, 2}, {600, 10}, {8910, 150}, {3600 * 10, 600}, {36001, 630}};
  for (const auto& c : cases) EXPECT_EQ(RoundUpWalltime(c.seconds), c.minutes * 60) << c.seconds;
}

Limit Of(std::vector<Observation> observations) {
  return *LimitFor({Resource::kMemory, std::move(observations)});
}

TEST(Limits, MarginShrinksWithTheNumberOfRuns) {
  const double gib = 10.0 * kGiB;
  double last = 1e30;
  for (const int n : {1, 2, 4, 10, 50}) {
    const auto limit = Of(std::vector<Observation>(static_cast<size_t>(n), Observation{gib}));
    EXPECT_LT(limit.value, last);
    EXPECT_GE(limit.value, gib * 1.1);
    last = limit.value;
  }
}

TEST(Limits, SpreadWidensTheLimit) {
  const double g = kGiB;
  const auto tight = Of({{10 * g}, {10 * g}, {10 * g}, {10.1 * g}});
  const auto wide = Of({{4 * g}, {6 * g}, {8 * g}, {10.1 * g}});
  EXPECT_GT(wide.value, tight.value);
  EXPECT_LE(wide.value, 2 * 10.1 * g);
}

TEST(Limits, NothingWithoutObservations) {
  EXPECT_FALSE(LimitFor({Resource::kMemory, {}}).has_value());
  EXPECT_FALSE(LimitFor({Resource::kMemory, {{0}}}).has_value());
}

TEST(Limits, ASmallNeedStillGetsRoom) {
  EXPECT_GE(Of({{1.0 * kMiB}}).value, 64.0 * kMiB);
  EXPECT_GE(Of(std::vector<Observation>(100, {100.0 * kMiB})).value, 132.0 * kMiB);
}

TEST(Limits, ASampledNeedIsBoundedByTheExactPeak) {
  const double g = kGiB;
  const auto limit = Of({{4 * g, Evidence::kSampled, 4.1 * g}});
  EXPECT_NEAR(limit.value, 4.1 * 1.5 * g, 1);
  const auto cached = Of({{4 * g, Evidence::kSampled, 60 * g}});
  EXPECT_NEAR(cached.value, 4 * 1.75 * g, 1);
}

TEST(Limits, QuantilesAgreeWithStudentsT) {
  // Logarithms 0, 1, 2, 3, 4: mean 2, s = sqrt(2.5); t(4, 0.9) = 1.53321.
  std::vector<Observation> observations;
  for (int i = 0; i < 5; ++i) observations.push_back({std::exp(static_cast<double>(i))});
  const auto q = PredictiveQuantiles(observations);
  ASSERT_TRUE(q.has_value());
  EXPECT_NEAR(std::log(q->p50), 2, 1e-9);
  EXPECT_NEAR(std::log(q->p90), 2 + 1.533206 * std::sqrt(2.5) * std::sqrt(1.2), 1e-5);
  EXPECT_FALSE(q->p99.has_value());
}

}  // namespace
}  // namespace expanse::intelligence::analyse
