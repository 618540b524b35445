// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/first_cause.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

Candidate Make(const char* failure_class, int strength, int64_t at, int stream) {
  Candidate c;
  c.finding.failure_class = failure_class;
  c.finding.strength = strength;
  c.finding.at = at;
  c.finding.stream = stream;
  return c;
}

TEST(FirstCauseTest, TheOrderOfTheCandidatesChangesNothing) {
  // a is close to b and b to c, a is not close to c; d is of no stream, e and f are as good.
  std::vector<Candidate> all = {Make("c", 76, 1, 1), Make("b", 83, 2, 1), Make("a", 90, 3, 1),
                                Make("d", 80, 0, 0), Make("e", 70, 1, 2), Make("f", 70, 1, 2)};
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  do {
    std::vector<Candidate> shuffled;
    for (const size_t i : order) shuffled.push_back(all[i]);
    const Candidate* chosen = ChooseAmong(shuffled);
    ASSERT_NE(chosen, nullptr);
    // Of the stream with the best the earliest about as good: not c, which is 14 behind.
    ASSERT_EQ(chosen->finding.failure_class, "b");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(FirstCauseTest, EqualsAreToldApartByTheirClass) {
  const std::vector<Candidate> ab = {Make("a", 80, 0, 0), Make("b", 80, 0, 0)};
  const std::vector<Candidate> ba = {Make("b", 80, 0, 0), Make("a", 80, 0, 0)};
  EXPECT_EQ(ChooseAmong(ab)->finding.failure_class, "a");
  EXPECT_EQ(ChooseAmong(ba)->finding.failure_class, "a");
  EXPECT_EQ(ChooseAmong({}), nullptr);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
