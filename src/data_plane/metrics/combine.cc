// SPDX-License-Identifier: Apache-2.0
#include "data_plane/metrics/combine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace expanse::data_plane {
namespace {

using storage::Aggregation;
using storage::Bucket;
using storage::BucketSeries;

constexpr int64_t kSecond = 1000;

Bucket JoinTwo(const Bucket& a, const Bucket& b) {
  Bucket out = b;  // the later one's value, for `last`; averages are weighted
  const auto weight_a = static_cast<double>(a.count);
  const auto weight_b = static_cast<double>(b.count);
  out.avg = (a.avg * weight_a + b.avg * weight_b) / (weight_a + weight_b);
  out.value = (a.value * weight_a + b.value * weight_b) / (weight_a + weight_b);
  out.min = std::min(a.min, b.min);
  out.max = std::max(a.max, b.max);
  out.count = a.count + b.count;
  return out;
}

// One series walked forward in time.
class Cursor {
 public:
  Cursor(const std::vector<Bucket>& buckets, int64_t base_ms)
      : buckets_(buckets), base_ms_(base_ms) {}

  // The bucket at the time, or the one before while it is not more than one bucket old.
  const Bucket* At(int64_t time, bool* is_held) {
    while (next_ < buckets_.size() && buckets_[next_].start_ms <= time) ++next_;
    if (next_ == 0) return nullptr;
    const Bucket& bucket = buckets_[next_ - 1];
    *is_held = bucket.start_ms != time;
    const bool has_more = next_ < buckets_.size();
    if (*is_held && (!has_more || time - bucket.start_ms > base_ms_)) return nullptr;
    return &bucket;
  }

 private:
  const std::vector<Bucket>& buckets_;
  int64_t base_ms_;
  size_t next_ = 0;
};

double Aggregate(const std::vector<const Bucket*>& part, Aggregation aggregation,
                 const Bucket& summary) {
  switch (aggregation) {
    case Aggregation::kAvg:
      return summary.avg;
    case Aggregation::kMin:
      return summary.min;
    case Aggregation::kMax:
      return summary.max;
    case Aggregation::kLast:
      return part.back()->value;
    case Aggregation::kSum: {
      double sum = 0;
      for (const Bucket* bucket : part) sum += bucket->value;
      return sum;
    }
    case Aggregation::kP95: {
      std::vector<double> values;
      for (const Bucket* bucket : part) values.push_back(bucket->value);
      std::sort(values.begin(), values.end());
      const auto rank = static_cast<size_t>(std::ceil(0.95 * static_cast<double>(values.size())));
      return values[std::max<size_t>(rank, 1) - 1];
    }
  }
  return summary.avg;
}

}  // namespace

AcrossNodes AcrossNodesOf(const std::string& metric) {
  return metric.starts_with("memory") ? AcrossNodes::kWorst : AcrossNodes::kSum;
}

std::vector<Bucket> JoinOwners(const std::vector<Bucket>& a, const std::vector<Bucket>& b) {
  std::vector<Bucket> out;
  out.reserve(a.size() + b.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].start_ms < b[j].start_ms))
      out.push_back(a[i++]);
    else if (i == a.size() || b[j].start_ms < a[i].start_ms)
      out.push_back(b[j++]);
    else
      out.push_back(JoinTwo(a[i++], b[j++]));
  }
  return out;
}

void PreferWholeJob(std::vector<BucketSeries>* series) {
  std::set<std::string> whole;
  for (const BucketSeries& s : *series)
    if (s.key.step_id.empty()) whole.insert(s.key.node);
  std::erase_if(*series, [&](const BucketSeries& s) {
    return !s.key.step_id.empty() && whole.contains(s.key.node);
  });
}

std::vector<Bucket> Total(const std::vector<BucketSeries>& series, AcrossNodes across_nodes,
                          int64_t base_ms) {
  std::set<int64_t> times;
  std::vector<std::pair<const BucketSeries*, Cursor>> cursors;
  for (const BucketSeries& s : series) {
    for (const Bucket& bucket : s.buckets) times.insert(bucket.start_ms);
    cursors.emplace_back(&s, Cursor(s.buckets, base_ms));
  }
  std::vector<Bucket> out;
  out.reserve(times.size());
  for (const int64_t time : times) {
    std::map<std::string, double> by_node;
    int64_t count = 0;
    for (auto& [s, cursor] : cursors) {
      bool is_held = false;
      const Bucket* bucket = cursor.At(time, &is_held);
      if (bucket == nullptr) continue;
      by_node[s->key.node] += bucket->value;
      if (!is_held) count += bucket->count;
    }
    double value = 0;
    for (const auto& [node, sum] : by_node)
      value = across_nodes == AcrossNodes::kSum ? value + sum : std::max(value, sum);
    out.push_back({time, value, value, value, value, count});
  }
  return out;
}

std::vector<Bucket> Rebucket(const std::vector<Bucket>& base, int64_t interval_ms,
                             Aggregation aggregation) {
  std::vector<Bucket> out;
  for (size_t i = 0; i < base.size();) {
    const int64_t start = base[i].start_ms - base[i].start_ms % interval_ms;
    std::vector<const Bucket*> part;
    Bucket summary{start, 0, base[i].min, base[i].max, 0, 0};
    for (; i < base.size() && base[i].start_ms < start + interval_ms; ++i) {
      part.push_back(&base[i]);
      summary.min = std::min(summary.min, base[i].min);
      summary.max = std::max(summary.max, base[i].max);
      summary.avg += base[i].value;
      summary.count += base[i].count;
    }
    summary.avg /= static_cast<double>(part.size());
    summary.value = Aggregate(part, aggregation, summary);
    out.push_back(summary);
  }
  return out;
}

std::vector<Bucket> Rate(const std::vector<Bucket>& last, int64_t interval_ms) {
  std::vector<Bucket> out;
  for (size_t i = 0; i < last.size(); ++i) {
    const double before = i == 0 ? last[i].min : last[i - 1].value;
    const int64_t elapsed = i == 0 ? interval_ms : last[i].start_ms - last[i - 1].start_ms;
    const double grown = last[i].value >= before ? last[i].value - before : last[i].value;
    const double rate = grown * 1000.0 / static_cast<double>(elapsed);
    out.push_back({last[i].start_ms, rate, rate, rate, rate, last[i].count});
  }
  return out;
}

int64_t BaseInterval(int64_t sampling_period_ms, int64_t interval_ms) {
  const int64_t seconds = interval_ms / kSecond;
  const int64_t wanted = (sampling_period_ms + kSecond - 1) / kSecond;
  for (int64_t candidate = std::max<int64_t>(1, wanted); candidate < seconds; ++candidate)
    if (seconds % candidate == 0) return candidate * kSecond;
  return interval_ms;
}

int64_t ChooseInterval(int64_t window_ms) {
  constexpr int64_t kWidths[] = {1,   2,   5,    10,   15,   30,     60,     120,   300,
                                 600, 900, 1800, 3600, 7200, 14'400, 43'200, 86'400};
  for (const int64_t width : kWidths)
    if (window_ms / (width * kSecond) <= 300) return width * kSecond;
  return 86'400 * kSecond;
}

}  // namespace expanse::data_plane
