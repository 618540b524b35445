// SPDX-License-Identifier: Apache-2.0
#include "storage/series/columns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace expanse::storage {
namespace {

Bucket MakeBucket(int64_t start, std::span<const double> values, Aggregation aggregation,
                  std::vector<double>& scratch) {
  Bucket bucket;
  bucket.start_ms = start;
  bucket.count = static_cast<int64_t>(values.size());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  bucket.min = *least;
  bucket.max = *most;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  // Rounding can carry the mean of equal values out of their range.
  bucket.avg = std::clamp(sum / static_cast<double>(values.size()), bucket.min, bucket.max);
  switch (aggregation) {
    case Aggregation::kAvg:
      bucket.value = bucket.avg;
      break;
    case Aggregation::kMin:
      bucket.value = bucket.min;
      break;
    case Aggregation::kMax:
      bucket.value = bucket.max;
      break;
    case Aggregation::kSum:
      bucket.value = sum;
      break;
    case Aggregation::kLast:
      bucket.value = values.back();
      break;
    case Aggregation::kP95: {
      scratch.assign(values.begin(), values.end());
      // Nearest rank: the least value with at least 95 % of the samples at or below it.
      const size_t rank = (values.size() * 95 + 99) / 100;
      const auto nth = scratch.begin() + static_cast<std::ptrdiff_t>(rank - 1);
      std::nth_element(scratch.begin(), nth, scratch.end());
      bucket.value = *nth;
      break;
    }
  }
  return bucket;
}

bool IsStrictlyAscending(std::span<const int64_t> times) {
  return std::adjacent_find(times.begin(), times.end(),
                            [](int64_t a, int64_t b) { return a >= b; }) == times.end();
}

void AppendAll(Columns& to, const Columns& from) {
  to.times.insert(to.times.end(), from.times.begin(), from.times.end());
  to.values.insert(to.values.end(), from.values.begin(), from.values.end());
}

}  // namespace

void SortLastWins(Columns& columns) {
  if (IsStrictlyAscending(columns.times)) return;
  std::vector<size_t> order(columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return columns.times[a] < columns.times[b]; });
  Columns sorted;
  sorted.times.reserve(columns.size());
  sorted.values.reserve(columns.size());
  for (const size_t i : order) {
    if (!sorted.empty() && sorted.times.back() == columns.times[i])
      sorted.values.back() = columns.values[i];
    else
      sorted.Add(columns.times[i], columns.values[i]);
  }
  columns = std::move(sorted);
}

Columns MergeRuns(std::vector<Columns> runs) {
  std::erase_if(runs, [](const Columns& run) { return run.empty(); });
  if (runs.empty()) return {};
  Columns out = std::move(runs.front());
  for (size_t i = 1; i < runs.size(); ++i) AppendAll(out, runs[i]);
  // In the order of precedence: the sort is stable, and free when the runs follow one another.
  SortLastWins(out);
  return out;
}

Columns Cut(Columns columns, TimeRange range) {
  const auto& t = columns.times;
  if (t.empty() || (t.front() >= range.from_ms && t.back() < range.to_ms)) return columns;
  const auto first = std::lower_bound(t.begin(), t.end(), range.from_ms) - t.begin();
  const auto end = std::max(first, std::lower_bound(t.begin(), t.end(), range.to_ms) - t.begin());
  return {{t.begin() + first, t.begin() + end},
          {columns.values.begin() + first, columns.values.begin() + end}};
}

std::vector<Bucket> Bucketise(const Columns& columns, const BucketQuery& query, bool& truncated) {
  std::vector<Bucket> out;
  std::vector<double> scratch;
  truncated = false;
  size_t at = 0;
  while (at < columns.size()) {
    if (out.size() == query.max_points) {
      truncated = true;
      break;
    }
    // Times are never negative: division truncates downwards.
    const int64_t start = columns.times[at] / query.interval_ms * query.interval_ms;
    size_t end = at + 1;
    while (end < columns.size() && columns.times[end] - start < query.interval_ms) ++end;
    out.push_back(MakeBucket(start, std::span(columns.values).subspan(at, end - at),
                             query.aggregation, scratch));
    at = end;
  }
  return out;
}

}  // namespace expanse::storage
