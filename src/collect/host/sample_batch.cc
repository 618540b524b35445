// SPDX-License-Identifier: Apache-2.0
#include "collect/host/sample_batch.h"

#include <utility>

namespace expanse::collect::host {

size_t SampleBatch::FindOrAdd(const SeriesId& id, int64_t ms) {
  std::string key = std::string(id.metric) + "|" + id.unit + "|" + std::string(id.gpu_uuid);
  if (id.gpu_index) key += "#" + std::to_string(*id.gpu_index);
  // The next attempt has the same cgroup, and of one run more may become known meanwhile.
  if (id.run != nullptr) key += "|" + id.run->SerializeAsString();
  const auto found = index_.find(key);
  if (found != index_.end() && *series_[found->second].timestamps_ms().rbegin() < ms)
    return found->second;
  const size_t index = series_.size();
  index_[std::move(key)] = index;
  data::v1::Series& series = series_.emplace_back();
  series.set_metric(std::string(id.metric));
  series.set_source(std::string(id.source));
  if (id.run != nullptr) *series.mutable_run() = *id.run;
  series.set_step_id(std::string(id.step_id));
  if (id.gpu_index) series.set_gpu_index(*id.gpu_index);
  series.set_gpu_uuid(std::string(id.gpu_uuid));
  return index;
}

bool SampleBatch::IsCurrent(const SeriesHandle& handle, WallTime time) const {
  return handle.batch == batch_ &&
         *series_[handle.index].timestamps_ms().rbegin() < ToUnixMillis(time);
}

void SampleBatch::Add(const SeriesId& id, WallTime time, std::optional<double> value) {
  SeriesHandle none;
  Add(id, time, value, &none);
}

void SampleBatch::Add(const SeriesId& id, WallTime time, std::optional<double> value,
                      SeriesHandle* handle) {
  if (!value) return;
  const int64_t ms = ToUnixMillis(time);
  if (!IsCurrent(*handle, time)) *handle = {batch_, FindOrAdd(id, ms)};
  data::v1::Series& series = series_[handle->index];
  series.add_timestamps_ms(ms);
  series.add_values(*value);
  ++samples_;
}

data::v1::SampleBlock SampleBatch::Take() {
  data::v1::SampleBlock block;
  for (auto& series : series_) *block.add_series() = std::move(series);
  series_.clear();
  index_.clear();
  ++batch_;
  return block;
}

}  // namespace expanse::collect::host
