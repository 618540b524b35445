// SPDX-License-Identifier: Apache-2.0
// The figures that count recorded runs: outcome probabilities, recurrence and confidence score.
// Formulas: Jeffreys' prior for a binomial rate, Laplace's rule of succession. Two decimals on the
// wire, rounded once.
#pragma once

#include <string>

#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::intelligence {

/// Posterior of a rate after `events` in `runs` under a Jeffreys prior:
/// Beta(events + 1/2, runs - events + 1/2). p10 and p90 are quantiles of that distribution.
struct OutcomePosterior {
  double mean = 0;
  double sigma = 0;
  double p10 = 0;
  double p90 = 0;
};

/// 0 <= events <= runs.
OutcomePosterior JeffreysPosterior(int events, int runs);
/// Of the opposite event: mean 1 - mean, same sigma, quantiles mirrored.
OutcomePosterior Complement(const OutcomePosterior& p);

/// Rule of succession: the probability that the next run fits, (fit + 1) / (runs + 2).
double SuccessionScore(int fit, int runs);

/// Rounded to two decimals, as the wire carries it. `successes` counts successful runs, on
/// distributions of failures too.
v1::Distribution ToDistribution(const OutcomePosterior& p, int successes, const std::string& basis);

/// A rate needs two recorded runs; below that the row is unknown or left out.
inline constexpr int kMinRecordedRuns = 2;

}  // namespace expanse::intelligence
