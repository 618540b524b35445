// SPDX-License-Identifier: Apache-2.0
#include "storage/series/series_key.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace expanse::storage {

void PutKey(std::string& out, const SeriesKey& key) {
  PutText(out, key.org.str());
  PutText(out, key.execution.str());
  PutText(out, key.compute.str());
  PutText(out, key.node);
  PutText(out, key.step_id);
  PutText(out, key.metric);
  PutText(out, key.source);
  // 0: no index; else index + 1 (zig-zagged, since -1 is an int32 too).
  PutVarint(out, key.gpu_index.has_value() ? ZigZag(*key.gpu_index) + 1 : 0);
  PutText(out, key.gpu_uuid);
}

SeriesKey GetKey(ByteReader& reader) {
  SeriesKey key;
  key.org = OrgId(std::string(reader.Text()));
  key.execution = ExecutionId(std::string(reader.Text()));
  key.compute = ComputeId(std::string(reader.Text()));
  key.node = reader.Text();
  key.step_id = reader.Text();
  key.metric = reader.Text();
  key.source = reader.Text();
  const uint64_t gpu = reader.Varint();
  if (gpu != 0) key.gpu_index = static_cast<int32_t>(UnZigZag(gpu - 1));
  key.gpu_uuid = reader.Text();
  return key;
}

size_t SeriesKeyHash::operator()(const SeriesKey& key) const {
  const std::hash<std::string> text;
  size_t h = 0;
  const auto mix = [&h](size_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ULL + (h >> 29); };
  for (const std::string* part : {&key.org.str(), &key.execution.str(), &key.compute.str(),
                                  &key.node, &key.step_id, &key.metric, &key.source, &key.gpu_uuid})
    mix(text(*part));
  mix(key.gpu_index.has_value() ? static_cast<size_t>(*key.gpu_index) + 1 : 0);
  return h;
}

bool MatchesButExecution(const SeriesSelector& selector, const SeriesKey& key) {
  return key.org == selector.org && (selector.compute.empty() || key.compute == selector.compute) &&
         (selector.node.empty() || key.node == selector.node) &&
         (!selector.step_id.has_value() || key.step_id == *selector.step_id) &&
         (selector.source.empty() || key.source == selector.source) &&
         (!selector.gpu_index.has_value() || key.gpu_index == selector.gpu_index) &&
         (selector.metrics.empty() || std::find(selector.metrics.begin(), selector.metrics.end(),
                                                key.metric) != selector.metrics.end());
}

}  // namespace expanse::storage
