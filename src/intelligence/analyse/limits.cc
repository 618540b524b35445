// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/limits.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "intelligence/statistics/student_t.h"

namespace expanse::intelligence::analyse {
namespace {

/// All constants of the rule, by resource. The margin over the largest recorded need is
/// first_run / sqrt(n), never below `least`; spread can raise it up to `most_spread`.
struct Rule {
  double first_run;
  double least;
  double most_spread;    // cap of the predictive bound, times the largest observation
  double least_room;     // bytes or seconds above the largest observation
  double smallest;       // never ask for less
  double after_kill[3];  // times the limit at which a run was killed: low, medium, high risk
  double suffices;       // a request this far above every need is left as it is
};
constexpr Rule kMemoryRule{0.50, 0.10, 2.0, 32.0 * kMiB, 64.0 * kMiB, {2.5, 2.0, 1.5}, 1.05};
constexpr Rule kWalltimeRule{0.70, 0.15, 3.0, 30.0, 60.0, {2.0, 1.5, 1.25}, 1.10};

const Rule& RuleOf(Resource resource) {
  return resource == Resource::kMemory ? kMemoryRule : kWalltimeRule;
}

int RiskIndex(v1::RiskTolerance risk) {
  if (risk == v1::RISK_TOLERANCE_LOW) return 0;
  return risk == v1::RISK_TOLERANCE_HIGH ? 2 : 1;
}
constexpr double kRiskFactor[3] = {1.5, 1.0, 0.6};

bool IsMeasured(const Observation& o) {
  return o.evidence == Evidence::kExact || o.evidence == Evidence::kSampled;
}

struct LogFit {
  double mean = 0;
  double sigma = 0;
  int n = 0;
};
LogFit FitLogs(const std::vector<Observation>& observations) {
  std::vector<double> logs;
  for (const auto& o : observations)
    if (IsMeasured(o) && o.value > 0) logs.push_back(std::log(o.value));
  LogFit fit;
  fit.n = static_cast<int>(logs.size());
  if (fit.n == 0) return fit;
  for (const double v : logs) fit.mean += v / fit.n;
  if (fit.n < 2) return fit;
  double squares = 0;
  for (const double v : logs) squares += (v - fit.mean) * (v - fit.mean);
  fit.sigma = std::sqrt(squares / (fit.n - 1));
  return fit;
}

/// Quantile of the next value under the fit; needs n >= 2.
double Predict(const LogFit& fit, double probability) {
  return std::exp(fit.mean + StudentTQuantile(fit.n - 1, probability) * fit.sigma *
                                 std::sqrt(1 + 1.0 / fit.n));
}

}  // namespace

double AcceptedHarm(v1::RiskTolerance risk) {
  constexpr double kShares[3] = {0.003, 0.01, 0.05};
  return kShares[RiskIndex(risk)];
}

namespace {

/// The observation that the limit stands on: the largest; of equal values the stronger statement.
void FindLargest(const LimitQuestion& question, Limit* limit) {
  for (const auto& o : question.observations) {
    limit->measured += IsMeasured(o) ? 1 : 0;
    if (o.value > limit->largest || (o.value == limit->largest && o.evidence > limit->largest_is)) {
      limit->largest = o.value;
      limit->largest_is = o.evidence;
    }
  }
}

/// What one observation alone asks for under the margin.
double Candidate(const Observation& o, const Limit& limit, double margin, double after_kill) {
  constexpr double kUncertain = 1.5;  // times the margin, when the value is not exact
  switch (o.evidence) {
    case Evidence::kExact:
      return o.value * (1 + margin);
    case Evidence::kSampled:
      return std::min(o.value * (1 + kUncertain * margin), o.at_most * (1 + margin));
    case Evidence::kKilled:
      // A larger need was measured meanwhile: that one speaks.
      if (limit.largest_is == Evidence::kKilled && o.value == limit.largest) {
        return o.value * after_kill;
      }
      return o.value * (1 + kUncertain * margin);
    case Evidence::kFloor:
      break;
  }
  return o.value * (1 + kUncertain * margin);
}

}  // namespace

std::optional<Limit> LimitFor(const LimitQuestion& question) {
  const Rule& rule = RuleOf(question.resource);
  const int risk = RiskIndex(question.risk);
  Limit limit;
  limit.observations = static_cast<int>(question.observations.size());
  FindLargest(question, &limit);
  if (limit.largest <= 0) return std::nullopt;
  double margin = std::max(rule.first_run / std::sqrt(std::max(limit.measured, 1)), rule.least) *
                  kRiskFactor[risk];
  if (!question.same_source) margin *= 1.5;
  for (const auto& o : question.observations) {
    limit.value = std::max(limit.value, Candidate(o, limit, margin, rule.after_kill[risk]));
  }
  const LogFit fit = FitLogs(question.observations);
  if (fit.n >= 3) {
    const double bound = Predict(fit, 1 - AcceptedHarm(question.risk));
    limit.value = std::max(limit.value, std::min(bound, limit.largest * rule.most_spread));
  }
  if (limit.largest + rule.least_room > limit.value) {
    limit.value = limit.largest + rule.least_room;
    limit.rule = Limit::Rule::kLeastRoom;
  }
  if (rule.smallest > limit.value) {
    limit.value = rule.smallest;
    limit.rule = Limit::Rule::kLeastLimit;
  }
  limit.margin = limit.value / limit.largest - 1;
  limit.room = limit.value - limit.largest;
  return limit;
}

bool Suffices(Resource resource, const Limit& limit, double requested) {
  if (limit.largest_is == Evidence::kKilled) return requested >= limit.value;
  return requested >= limit.largest * RuleOf(resource).suffices;
}

int64_t RoundUpMemory(double bytes) {
  int64_t step = 16 * kMiB;
  const double target = bytes * 0.05;
  // From 20 GiB on 5 % is a GiB or more, so steps are whole GiB by themselves.
  while (static_cast<double>(2 * step) <= target && step < kTiB) step *= 2;
  const auto whole = static_cast<int64_t>(std::ceil(bytes));
  return (whole + step - 1) / step * step;
}

int64_t RoundUpWalltime(double seconds) {
  constexpr int64_t kSteps[] = {1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1440};  // minutes
  const double target = seconds / 60 * 0.05;
  int64_t step = 1;
  for (const int64_t s : kSteps)
    if (static_cast<double>(s) <= target) step = s;
  const auto minutes = static_cast<int64_t>(std::ceil(seconds / 60));
  return std::max<int64_t>((minutes + step - 1) / step * step, 1) * 60;
}

std::optional<Quantiles> PredictiveQuantiles(const std::vector<Observation>& observations) {
  const LogFit fit = FitLogs(observations);
  if (fit.n < kMinRunsForQuantiles) return std::nullopt;
  Quantiles q;
  q.runs = fit.n;
  q.p10 = Predict(fit, 0.10);
  q.p50 = Predict(fit, 0.50);
  q.p90 = Predict(fit, 0.90);
  if (fit.n >= kMinRunsForP99) q.p99 = Predict(fit, 0.99);
  return q;
}

}  // namespace expanse::intelligence::analyse
