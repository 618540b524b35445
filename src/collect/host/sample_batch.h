// SPDX-License-Identifier: Apache-2.0
// Samples of many series, gathered over some seconds into one record.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::host {

/// Which series a sample belongs to. run is absent for a series of the node itself.
struct SeriesId {
  std::string_view metric;  // of domain/metric_catalogue.h
  std::string_view source;  // "cgroup", "proc", "nvidia-smi"
  std::string unit;         // anything that tells runs and steps apart; not sent
  const expanse::common::v1::RunKey* run = nullptr;
  std::string_view step_id;
  std::optional<int32_t> gpu_index;
  std::string_view gpu_uuid;
};

/// Where a series stands in the batch: makes further samples of it cheap. Kept by the caller.
struct SeriesHandle {
  uint64_t batch = 0;
  size_t index = 0;
};

class SampleBatch {
 public:
  /// Leaves an absent value out. Wall time that went back starts a second series of the same name,
  /// since timestamps within one must ascend.
  void Add(const SeriesId& id, WallTime time, std::optional<double> value);
  /// The same through a handle. id is looked at only when the handle does not fit (IsCurrent).
  void Add(const SeriesId& id, WallTime time, std::optional<double> value, SeriesHandle* handle);
  bool IsCurrent(const SeriesHandle& handle, WallTime time) const;
  bool empty() const { return series_.empty(); }
  uint64_t samples() const { return samples_; }
  /// The record body; empties the batch.
  data::v1::SampleBlock Take();

 private:
  size_t FindOrAdd(const SeriesId& id, int64_t ms);
  std::vector<data::v1::Series> series_;
  std::map<std::string, size_t, std::less<>> index_;
  uint64_t samples_ = 0;
  uint64_t batch_ = 1;
};

/// Another source of series on this node, read once a tick: the seam for GPUs.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  virtual void Read(WallTime now, SampleBatch* batch) = 0;
};

}  // namespace expanse::collect::host
