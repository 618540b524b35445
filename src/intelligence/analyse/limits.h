// SPDX-License-Identifier: Apache-2.0
// From observations of one resource to a limit worth asking for. The loss is asymmetric: a killed
// job costs far more than a roomy one, so a limit lies above every recorded need by a margin that
// shrinks with the number of runs and grows with their spread.
#pragma once

#include <optional>
#include <vector>

#include "expanse/intelligence/v1/intelligence.pb.h"
#include "intelligence/analyse/history.h"

namespace expanse::intelligence::analyse {

enum class Resource { kMemory, kWalltime };

struct LimitQuestion {
  Resource resource = Resource::kMemory;
  std::vector<Observation> observations;
  v1::RiskTolerance risk = v1::RISK_TOLERANCE_MEDIUM;
  /// Runs of the same source, or only similar ones (margins are half as large again).
  bool same_source = true;
};

struct Limit {
  double value = 0;    // bytes or seconds, not yet rounded
  double largest = 0;  // the largest observation it stands on
  Evidence largest_is = Evidence::kExact;
  double margin = 0;  // value / largest - 1
  double room = 0;    // value - largest
  /// What made the value: the margin by risk and spread, the least room above the largest
  /// observation, or the least limit.
  enum class Rule { kMargin, kLeastRoom, kLeastLimit } rule = Rule::kMargin;
  int measured = 0;  // observations of completed runs (exact or well sampled)
  int observations = 0;
};

/// Nothing without observations.
std::optional<Limit> LimitFor(const LimitQuestion& question);

/// Whether a request is enough as it is: above every recorded need by at least 5 % (memory) or
/// 10 % (walltime), and above every limit at which a run was killed.
bool Suffices(Resource resource, const Limit& limit, double requested);

/// Up, in steps of about 5 % of the value: at least 16 MiB, a power of two below 20 GiB, whole
/// GiB above.
int64_t RoundUpMemory(double bytes);
/// Up to whole minutes, in steps of about 5 %: 1, 2, 5, 10, 15, 30 minutes, then hours.
int64_t RoundUpWalltime(double seconds);

/// Predictive quantiles of the next exact value: normal in the logarithm, Student's t for the
/// uncertainty of mean and spread. Nothing below kMinRunsForQuantiles observations of completed
/// runs; p99 is left out below kMinRunsForP99.
struct Quantiles {
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  std::optional<double> p99;
  int runs = 0;
};
inline constexpr int kMinRunsForQuantiles = 5;
inline constexpr int kMinRunsForP99 = 20;
std::optional<Quantiles> PredictiveQuantiles(const std::vector<Observation>& observations);

/// Accepted share of jobs harmed: 0.003, 0.01, 0.05.
double AcceptedHarm(v1::RiskTolerance risk);

}  // namespace expanse::intelligence::analyse
