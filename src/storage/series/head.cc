// SPDX-License-Identifier: Apache-2.0
#include "storage/series/head.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "storage/series/byte_io.h"

namespace expanse::storage {
namespace {

constexpr uint8_t kDefinition = 1;
constexpr uint8_t kSamples = 2;
// A frame holds at most this many; what a damaged count could make replay allocate.
constexpr uint64_t kMaxSamples = kMaxFrameBytes / 8;

static_assert(std::endian::native == std::endian::little, "values are written as they are");

}  // namespace

std::string DefinitionRecord(uint64_t id, const SeriesKey& key) {
  std::string out(1, static_cast<char>(kDefinition));
  PutVarint(out, id);
  PutKey(out, key);
  return out;
}

SamplesRecord::SamplesRecord() : bytes_(1, static_cast<char>(kSamples)) {}

void SamplesRecord::Add(uint64_t id, std::span<const int64_t> times,
                        std::span<const double> values) {
  PutVarint(bytes_, id);
  PutVarint(bytes_, times.size());
  const bool same = std::equal(times.begin(), times.end(), last_times_.begin(), last_times_.end());
  bytes_ += static_cast<char>(same);
  if (!same) {
    int64_t last = 0;
    for (const int64_t t : times) {
      PutVarint(bytes_, ZigZag(t - last));  // both in 0 … kMaxTimestampMs
      last = t;
    }
    last_times_.assign(times.begin(), times.end());
  }
  bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

HeadSeries& Head::Find(const SeriesKey& key) {
  if (const auto known = by_key_.find(&key); known != by_key_.end()) return *known->second;
  auto [it, created] = series_.try_emplace(key);
  it->second.id = next_id_++;
  by_key_.emplace(&it->first, &it->second);
  return it->second;
}

void Head::Add(HeadSeries& series, std::span<const int64_t> times, std::span<const double> values) {
  auto& columns = series.columns;
  columns.times.insert(columns.times.end(), times.begin(), times.end());
  columns.values.insert(columns.values.end(), values.begin(), values.end());
  samples_ += static_cast<int64_t>(times.size());
  for (const int64_t t : times) {
    first_ms_ = std::min(first_ms_, t);
    last_ms_ = std::max(last_ms_, t);
  }
}

void Head::Replay(std::string_view payload) {
  ByteReader reader(payload);
  const uint8_t type = reader.U8();
  if (type == kDefinition) {
    const uint64_t id = reader.Varint();
    const SeriesKey key = GetKey(reader);
    if (reader.AtEnd()) by_id_[id] = &Find(key);
    return;
  }
  if (type != kSamples) return;
  std::vector<int64_t> times;
  std::vector<double> values;
  while (reader.ok() && !reader.AtEnd()) {
    const uint64_t id = reader.Varint();
    const uint64_t count = reader.Varint();
    const bool same = reader.U8() != 0;
    if (!reader.ok() || count > kMaxSamples || (same && count != times.size())) return;
    if (!same) {
      times.clear();
      uint64_t t = 0;
      for (uint64_t i = 0; i < count && reader.ok(); ++i) {
        t += static_cast<uint64_t>(UnZigZag(reader.Varint()));
        times.push_back(static_cast<int64_t>(t));
      }
    }
    const auto bytes = reader.Bytes(count * sizeof(double));
    if (!reader.ok()) return;
    values.resize(static_cast<size_t>(count));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    if (const auto known = by_id_.find(id); known != by_id_.end())
      Add(*known->second, times, values);
    else
      lost_samples_ += static_cast<int64_t>(count);
  }
}

}  // namespace expanse::storage
