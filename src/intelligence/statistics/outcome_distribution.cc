// SPDX-License-Identifier: Apache-2.0
#include "intelligence/statistics/outcome_distribution.h"

#include <cmath>

#include <boost/math/special_functions/beta.hpp>

#include "base/result.h"
#include "base/units.h"

namespace expanse::intelligence {
namespace {

constexpr double kJeffreys = 0.5;

}  // namespace

OutcomePosterior JeffreysPosterior(int events, int runs) {
  EXPANSE_CHECK(events >= 0 && events <= runs);
  const double a = events + kJeffreys;
  const double b = (runs - events) + kJeffreys;
  const double n = a + b;
  return {a / n, std::sqrt(a * b / (n * n * (n + 1))), boost::math::ibeta_inv(a, b, 0.10),
          boost::math::ibeta_inv(a, b, 0.90)};
}

OutcomePosterior Complement(const OutcomePosterior& p) {
  return {1 - p.mean, p.sigma, 1 - p.p90, 1 - p.p10};
}

double SuccessionScore(int fit, int runs) {
  EXPANSE_CHECK(fit >= 0 && fit <= runs);
  return (fit + 1.0) / (runs + 2.0);
}

v1::Distribution ToDistribution(const OutcomePosterior& p, int successes,
                                const std::string& basis) {
  v1::Distribution d;
  d.set_mean(RoundTo2(p.mean));
  d.set_sigma(RoundTo2(p.sigma));
  d.set_p10(RoundTo2(p.p10));
  d.set_p90(RoundTo2(p.p90));
  d.set_success_count(successes);
  d.set_basis(basis);
  return d;
}

}  // namespace expanse::intelligence
