// SPDX-License-Identifier: Apache-2.0
#include "intelligence/statistics/outcome_distribution.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace expanse::intelligence {
namespace {

std::string Text(const OutcomePosterior& p) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f %.2f %.2f %.2f", p.mean, p.sigma, p.p10, p.p90);
  return buffer;
}

// The three rows of the contract's arithmetic table, with their unrounded figures.
TEST(OutcomeDistribution, ReproducesTheFiguresOfFourSuccessfulRuns) {
  const auto p = JeffreysPosterior(4, 4);
  EXPECT_NEAR(p.mean, 0.900000, 5e-7);
  EXPECT_NEAR(p.sigma, 0.122474, 5e-7);
  EXPECT_NEAR(p.p10, 0.728137, 5e-7);
  EXPECT_NEAR(p.p90, 0.998147, 5e-7);
  EXPECT_EQ(Text(p), "0.90 0.12 0.73 1.00");
}

TEST(OutcomeDistribution, ResidualRiskIsTheExactComplement) {
  const auto p = Complement(JeffreysPosterior(4, 4));
  EXPECT_NEAR(p.mean, 0.100000, 5e-7);
  EXPECT_NEAR(p.sigma, 0.122474, 5e-7);
  EXPECT_NEAR(p.p10, 0.001853, 5e-7);
  EXPECT_NEAR(p.p90, 0.271863, 5e-7);
  EXPECT_EQ(Text(p), "0.10 0.12 0.00 0.27");
  const auto direct = JeffreysPosterior(0, 4);
  EXPECT_NEAR(direct.p90, p.p90, 1e-12);
  EXPECT_NEAR(direct.p10, p.p10, 1e-12);
}

TEST(OutcomeDistribution, ReproducesTheRecurrenceOfNineOtherRuns) {
  const auto p = JeffreysPosterior(0, 9);
  EXPECT_NEAR(p.mean, 0.050000, 5e-7);
  EXPECT_NEAR(p.sigma, 0.065713, 5e-7);
  EXPECT_NEAR(p.p10, 0.000853, 5e-7);
  EXPECT_NEAR(p.p90, 0.135967, 5e-7);
  EXPECT_EQ(Text(p), "0.05 0.07 0.00 0.14");
}

TEST(OutcomeDistribution, ScoreIsTheRuleOfSuccession) {
  EXPECT_NEAR(SuccessionScore(4, 4), 0.8333, 5e-5);
  EXPECT_NEAR(SuccessionScore(10, 10), 0.9167, 5e-5);
  EXPECT_DOUBLE_EQ(SuccessionScore(0, 0), 0.5);
}

TEST(OutcomeDistribution, WireFormIsRoundedAndKeepsAnExplicitZero) {
  const auto d = ToDistribution(Complement(JeffreysPosterior(4, 4)), 4, "exact_bundle");
  EXPECT_EQ(d.mean(), 0.1);
  EXPECT_EQ(d.sigma(), 0.12);
  ASSERT_TRUE(d.has_p10());
  EXPECT_EQ(d.p10(), 0);
  EXPECT_EQ(d.p90(), 0.27);
  EXPECT_EQ(d.success_count(), 4);
  EXPECT_EQ(d.basis(), "exact_bundle");
}

TEST(OutcomeDistribution, ManyRunsNarrowTheRange) {
  const auto few = JeffreysPosterior(4, 4);
  const auto many = JeffreysPosterior(10000, 10000);
  EXPECT_GT(many.p10, few.p10);
  EXPECT_LT(many.sigma, 0.0002);
  EXPECT_LE(many.p90, 1.0);
}

}  // namespace
}  // namespace expanse::intelligence
