// SPDX-License-Identifier: Apache-2.0
// Samples of one series as two columns, and how several sources of them become one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/series/series_store.h"

namespace expanse::storage {

struct Columns {
  std::vector<int64_t> times;
  std::vector<double> values;

  size_t size() const { return times.size(); }
  bool empty() const { return times.empty(); }
  void Add(int64_t t, double v) {
    times.push_back(t);
    values.push_back(v);
  }
};

/// Sorts by time; of samples with one time the last in the given order stays.
void SortLastWins(Columns& columns);
/// Runs are each sorted without repeats; a later run wins over an earlier one at the same time.
Columns MergeRuns(std::vector<Columns> runs);
/// The part with from_ms <= t < to_ms of sorted columns.
Columns Cut(Columns columns, TimeRange range);

/// Buckets of sorted columns; `truncated` when max_points ended the list early.
std::vector<Bucket> Bucketise(const Columns& columns, const BucketQuery& query, bool& truncated);

}  // namespace expanse::storage
