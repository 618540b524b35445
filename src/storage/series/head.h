// SPDX-License-Identifier: Apache-2.0
// Samples in memory, as one write-ahead log segment holds them: the two are always the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/series/columns.h"
#include "storage/series/frame_log.h"
#include "storage/series/series_key.h"

namespace expanse::storage {

/// One series of a head, samples in the order in which they arrived.
struct HeadSeries {
  uint64_t id = 0;       // in this segment's log
  bool defined = false;  // the log has the definition of this id
  Columns columns;
};

/// Locking is the store's: any number of readers, or one writer.
class Head {
 public:
  /// sequence: the number of its log segment.
  explicit Head(uint64_t sequence) : sequence_(sequence) {}

  HeadSeries& Find(const SeriesKey& key);
  void Add(HeadSeries& series, std::span<const int64_t> times, std::span<const double> values);

  /// Calls visit(key, series) for the series with key not below `from`, in key order, until it
  /// answers false.
  template <typename Visit>
  void Scan(const SeriesKey& from, Visit visit) const {
    for (auto it = series_.lower_bound(from); it != series_.end(); ++it)
      if (!visit(it->first, it->second)) return;
  }

  /// Rebuilds from the payloads of the segment's log. Samples whose definition was lost with a
  /// damaged frame are counted in lost_samples().
  void Replay(std::string_view payload);

  uint64_t sequence() const { return sequence_; }
  int64_t samples() const { return samples_; }
  int64_t series_count() const { return static_cast<int64_t>(series_.size()); }
  int64_t lost_samples() const { return lost_samples_; }
  /// Unix ms between which all samples lie; only when samples() > 0.
  int64_t first_ms() const { return first_ms_; }
  int64_t last_ms() const { return last_ms_; }

 private:
  struct HashOfPointee {
    size_t operator()(const SeriesKey* key) const { return SeriesKeyHash()(*key); }
  };
  struct EqualPointee {
    bool operator()(const SeriesKey* a, const SeriesKey* b) const { return *a == *b; }
  };

  uint64_t sequence_;
  uint64_t next_id_ = 1;
  int64_t samples_ = 0;
  int64_t lost_samples_ = 0;
  int64_t first_ms_ = kMaxTimestampMs;
  int64_t last_ms_ = 0;
  std::map<SeriesKey, HeadSeries> series_;
  // Keys live in series_, whose nodes do not move.
  std::unordered_map<const SeriesKey*, HeadSeries*, HashOfPointee, EqualPointee> by_key_;
  std::unordered_map<uint64_t, HeadSeries*> by_id_;  // replay only
};

/// Payloads of the write-ahead log.
std::string DefinitionRecord(uint64_t id, const SeriesKey& key);
/// Samples of one batch; blocks with the same timestamps as the block before share them.
class SamplesRecord {
 public:
  SamplesRecord();
  void Add(uint64_t id, std::span<const int64_t> times, std::span<const double> values);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::vector<int64_t> last_times_;
};

}  // namespace expanse::storage
