// SPDX-License-Identifier: Apache-2.0
#include "storage/series/columns.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace expanse::storage {
namespace {

TEST(Columns, MergeWithTheLaterRunWinning) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::map<int64_t, double> want;
    std::vector<Columns> runs;
    for (size_t r = 0; r < random() % 6; ++r) {
      Columns run;
      int64_t t = static_cast<int64_t>(random() % 50);
      for (size_t i = 0; i < random() % 20; ++i, t += 1 + static_cast<int64_t>(random() % 5)) {
        run.Add(t, static_cast<double>(random() % 1000));
        want[t] = run.values.back();
      }
      runs.push_back(std::move(run));
    }
    const Columns merged = MergeRuns(std::move(runs));
    ASSERT_EQ(merged.size(), want.size());
    size_t i = 0;
    for (const auto& [t, v] : want) {
      ASSERT_EQ(merged.times[i], t);
      ASSERT_EQ(merged.values[i], v);
      ++i;
    }
  }
}

TEST(Columns, AreCutToAHalfOpenRange) {
  const Columns columns{{10, 20, 30}, {1, 2, 3}};
  EXPECT_EQ(Cut(columns, {10, 30}).times, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(Cut(columns, {11, 31}).times, (std::vector<int64_t>{20, 30}));
  EXPECT_TRUE(Cut(columns, {31, 99}).empty());
  EXPECT_TRUE(Cut(columns, {20, 20}).empty());
  EXPECT_TRUE(Cut(columns, {30, 10}).empty());
}

TEST(Columns, HaveTheMeanOfEqualValuesExactly) {
  Columns columns;
  for (int i = 0; i < 10; ++i) columns.Add(i, 0.1);
  bool truncated = false;
  EXPECT_EQ(Bucketise(columns, {}, truncated)[0].avg, 0.1);
}

}  // namespace
}  // namespace expanse::storage
