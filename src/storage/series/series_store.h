// SPDX-License-Identifier: Apache-2.0
// Samples: one value of one series at one time. The interface that the embedded store implements
// and that an external engine can. Format and recovery: docs/design/series-store.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace expanse::storage {

/// The whole identity of a series. Units are the catalogue's (domain/metric_catalogue.h).
struct SeriesKey {
  OrgId org;
  ExecutionId execution;  // empty: a series of the node itself
  ComputeId compute;
  std::string node;
  std::string step_id;  // empty: the whole run or node
  std::string metric;
  std::string source;  // "cgroup", "proc", "nvidia-smi", "dcgm", "cupti"
  std::optional<int32_t> gpu_index;
  std::string gpu_uuid;

  auto operator<=>(const SeriesKey&) const = default;
};

/// Samples of one series for Append; the arrays belong to the caller.
struct SeriesBlock {
  SeriesKey key;
  std::span<const int64_t> timestamps_ms;  // any order; unix milliseconds, 0 to kMaxTimestampMs
  std::span<const double> values;          // same length, all finite
};

constexpr int64_t kMaxTimestampMs = int64_t{1} << 46;  // year 4199

/// kInvalidArgument with the reason when Append would refuse the block (org, metric or source
/// missing, a text over 1 KiB, lengths that differ, a time out of range, a value not finite), so
/// that an ingester can refuse one record instead of a batch.
Status ValidateBlock(const SeriesBlock& block);

/// Which series. Empty or absent members match everything, but the organisation is always one.
struct SeriesSelector {
  OrgId org;
  std::optional<ExecutionId> execution;  // an empty id: only the series of nodes themselves
  ComputeId compute;
  std::string node;
  std::optional<std::string> step_id;
  std::vector<std::string> metrics;
  std::string source;
  std::optional<int32_t> gpu_index;
};

/// Half open: from_ms <= t < to_ms.
struct TimeRange {
  int64_t from_ms = 0;
  int64_t to_ms = kMaxTimestampMs;
};

enum class Aggregation { kAvg, kMin, kMax, kSum, kP95, kLast };

struct BucketQuery {
  TimeRange range;
  /// Bucket width; buckets start at multiples of it since the epoch. At least 1.
  int64_t interval_ms = 1000;
  Aggregation aggregation = Aggregation::kAvg;
  size_t max_points = 5000;  // per series: the earliest are answered, `truncated` says so
};

/// Samples of [start_ms, start_ms + interval) that lie in the range; never empty.
struct Bucket {
  int64_t start_ms = 0;
  double value = 0;  // by the aggregation; p95 is the nearest-rank percentile
  double min = 0;
  double max = 0;
  double avg = 0;
  int64_t count = 0;
};

struct BucketSeries {
  SeriesKey key;
  std::vector<Bucket> buckets;  // ascending
  bool truncated = false;
};

struct Sample {
  int64_t timestamp_ms = 0;
  double value = 0;
  bool operator==(const Sample&) const = default;
};

struct RawSeries {
  SeriesKey key;
  std::vector<Sample> samples;  // ascending, one a timestamp
  bool truncated = false;
};

struct SeriesSummary {
  SeriesKey key;
  int64_t count = 0;
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  double min = 0;
  double max = 0;
  double avg = 0;
  double last = 0;
};

/// What was found, and what could not be read: a damaged block takes its own samples from the
/// answer and is named here ("file: reason"), the rest is answered.
template <typename T>
struct SeriesAnswer {
  std::vector<T> series;  // ordered by key
  std::vector<std::string> damage;
};

/// Counters since the store was opened, and its state now.
struct SeriesStoreStats {
  int64_t appended_samples = 0;
  int64_t appended_batches = 0;
  int64_t fsyncs = 0;
  int64_t head_series = 0;
  int64_t head_samples = 0;
  int64_t wal_bytes = 0;  // of the log in use
  int64_t sealed_files = 0;
  int64_t sealed_bytes = 0;
  int64_t sealed_samples = 0;
  int64_t keep_from_ms = 0;           // what DropBefore was told last
  int64_t damaged_parts = 0;          // log frames, blocks and files found damaged
  std::string last_background_error;  // sealing or compaction that failed last; "" when it works
};

/// Safe for any number of threads.
///
/// A sample is identified by (series, timestamp): the value appended last wins, so that appending
/// the same batch again changes nothing. Samples may come late and in any order.
class SeriesStore {
 public:
  virtual ~SeriesStore() = default;

  /// "file:/absolute/directory" with the default options.
  static Result<std::unique_ptr<SeriesStore>> Open(std::string_view url);

  /// All of the batch is durable on return, or none of it is acknowledged. Concurrent callers share
  /// one fsync. batch_id names the batch in messages. kInvalidArgument: a block is not valid
  /// (nothing stored); kResourceExhausted: disk full (retry later); kUnavailable: the disk failed.
  virtual Status Append(std::span<const SeriesBlock> batch, std::string_view batch_id) = 0;

  virtual Result<SeriesAnswer<BucketSeries>> Query(const SeriesSelector& selector,
                                                   const BucketQuery& query) = 0;
  /// At most max_samples a series, the earliest first.
  virtual Result<SeriesAnswer<RawSeries>> Read(const SeriesSelector& selector, TimeRange range,
                                               size_t max_samples) = 0;
  virtual Result<std::vector<SeriesKey>> ListSeries(const SeriesSelector& selector,
                                                    TimeRange range) = 0;
  /// Count, min, max, avg and last of each series, mostly from indexes.
  virtual Result<SeriesAnswer<SeriesSummary>> Summarise(const SeriesSelector& selector,
                                                        TimeRange range) = 0;

  /// A provisional execution was adopted: all that was and will be appended for `from` belongs to
  /// `to`. Durable on return. Chains are followed; kFailedPrecondition when it would make a circle.
  virtual Status Reassign(const OrgId& org, const ExecutionId& from, const ExecutionId& to) = 0;

  /// Retention: samples before the time are gone from every answer at once; their space is freed
  /// when the files that hold them go. Never moves backwards.
  virtual Status DropBefore(int64_t time_ms) = 0;

  /// Seals what is in memory and waits for it (backup, tests, orderly stop).
  virtual Status Flush() = 0;
  /// A consistent copy into a new directory, taken while the program runs.
  virtual Status BackupTo(const std::string& directory) = 0;
  virtual SeriesStoreStats Stats() const = 0;
};

}  // namespace expanse::storage
