// SPDX-License-Identifier: Apache-2.0
// Series of the node itself, and of what its collector costs.
#pragma once

#include <optional>

#include "collect/host/sample_batch.h"
#include "collect/host/step_collector.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

class NodeSampler {
 public:
  explicit NodeSampler(const platform::Fs& fs);
  /// Once a second; capacity, traffic and pressure at every tenth call.
  void Read(WallTime now, MonoTime mono, const JobsUse& jobs, SampleBatch* batch);
  /// At every tenth call: CPU seconds by source and in all, resident bytes, late rounds.
  void AddOwnCost(WallTime now, const CollectorCost& cost, double all_cpu_seconds,
                  uint64_t late_ticks, SampleBatch* batch);

 private:
  const platform::Fs& fs_;
  int64_t ticks_per_second_ = 100;
  uint64_t reads_ = 0;
  uint64_t costs_ = 0;
  std::optional<MonoTime> last_;
  std::optional<double> busy_seconds_;
};

}  // namespace expanse::collect::host
