// SPDX-License-Identifier: Apache-2.0
// The data set "gauges-1": what the collectors record of jobs, as the measure of bytes a sample and
// of query times. Made up, from a fixed seed; the shapes are those of real jobs: start-up, plateau,
// iterations, leaks, noise in the last digits that the sources have.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "storage/series/columns.h"

namespace expanse::storage {

/// Series of `executions` executions, 10 metrics each, one node each, sampled every 10 s.
class GaugesDataset {
 public:
  GaugesDataset(int executions, uint64_t seed);

  const std::vector<SeriesKey>& keys() const { return keys_; }
  /// Samples `from` to `from + count` of every series, in the order of keys(); call it in order.
  std::vector<Columns> Next(int count);

  static constexpr int64_t kStartMs = 1'764'000'000'000;
  static constexpr int64_t kIntervalMs = 10'000;

 private:
  struct State {
    double level = 0;   // of the value's slow part
    double target = 0;  // where it drifts
    int cores = 1;
    int64_t clock_offset_ms = 0;
  };
  double Value(size_t metric, State& state);

  std::mt19937_64 random_;
  std::vector<SeriesKey> keys_;
  std::vector<State> states_;
  int64_t at_ = 0;  // samples given out of each series
};

}  // namespace expanse::storage
