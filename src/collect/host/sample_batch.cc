// SPDX-License-Identifier: Apache-2.0
#include "collect/host/sample_batch.h"

#include <utility>

namespace expanse::collect::host {

void SampleBatch::Add(const SeriesId& id, WallTime time, std::optional<double> value) {
  if (!value) return;
  std::string key = std::string(id.metric) + "|" + id.unit + "|" + std::string(id.gpu_uuid);
  if (id.gpu_index) key += "#" + std::to_string(*id.gpu_index);
  const int64_t ms = ToUnixMillis(time);
  const auto found = index_.find(key);
  const bool fits = found != index_.end() && *series_[found->second].timestamps_ms().rbegin() < ms;
  if (!fits) {
    index_[std::move(key)] = series_.size();
    data::v1::Series& series = series_.emplace_back();
    series.set_metric(std::string(id.metric));
    series.set_source(std::string(id.source));
    if (id.run != nullptr) *series.mutable_run() = *id.run;
    series.set_step_id(std::string(id.step_id));
    if (id.gpu_index) series.set_gpu_index(*id.gpu_index);
    series.set_gpu_uuid(std::string(id.gpu_uuid));
  }
  data::v1::Series& series = fits ? series_[found->second] : series_.back();
  series.add_timestamps_ms(ms);
  series.add_values(*value);
  ++samples_;
}

data::v1::SampleBlock SampleBatch::Take() {
  data::v1::SampleBlock block;
  for (auto& series : series_) *block.add_series() = std::move(series);
  series_.clear();
  index_.clear();
  return block;
}

}  // namespace expanse::collect::host
