// SPDX-License-Identifier: Apache-2.0
// Random operations on the embedded store and on a model that is plainly right, compared all along.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "storage/series/series_test_util.h"

namespace expanse::storage {
namespace {

class Model {
 public:
  void Append(const SeriesKey& key, int64_t t, double v) { samples_[Resolved(key)][t] = v; }
  bool MayAdopt(int from, int to) const {
    return !adopted_.contains(from) && from != to && Resolve(to) != from;
  }
  void Adopt(int from, int to) {
    adopted_[from] = to;
    Content moved;
    for (auto& [key, series] : samples_)
      for (const auto& [t, v] : series) moved[Resolved(key)][t] = v;
    samples_ = std::move(moved);
  }
  void DropBefore(int64_t t) { keep_from_ = std::max(keep_from_, t); }
  Content All() const {
    Content out;
    for (const auto& [key, series] : samples_)
      for (const auto& [t, v] : series)
        if (t >= keep_from_) out[key][t] = v;
    return out;
  }

 private:
  int Resolve(int execution) const {
    for (auto it = adopted_.find(execution); it != adopted_.end(); it = adopted_.find(execution))
      execution = it->second;
    return execution;
  }
  SeriesKey Resolved(SeriesKey key) const {
    for (int i = 0; i < 20; ++i)
      if (key.execution == Execution(i)) {
        key.execution = Execution(Resolve(i));
        break;
      }
    return key;
  }

  Content samples_;
  std::map<int, int> adopted_;
  int64_t keep_from_ = 0;
};

void Play(uint64_t seed, int steps) {
  const platform::TempDir directory;
  std::mt19937_64 random(seed);
  auto options = At(directory.path());
  options.head_samples = 5 + static_cast<int64_t>(random() % 200);
  options.merge_files = random() % 4 == 0 ? 0 : 2 + random() % 3;
  auto store = MustOpen(options);
  Model model;
  const char* metrics[] = {"cpu", "memory", "processes"};
  // Executions have times of their own, so that adoption never brings two values of one time
  // together: which one stays then is not promised.
  const auto time = [&](int execution) {
    return static_cast<int64_t>(random() % 3000) * 20 + execution;
  };
  for (int step = 0; step < steps; ++step) {
    const auto dice = random() % 100;
    if (dice < 75) {
      std::vector<std::vector<int64_t>> times;
      std::vector<std::vector<double>> values;
      std::vector<SeriesKey> keys;
      for (size_t b = 0; b < 1 + random() % 4; ++b) {
        const int execution = static_cast<int>(random() % 20);
        keys.push_back(Key(execution, metrics[random() % 3]));
        times.emplace_back();
        values.emplace_back();
        for (size_t i = 0; i < random() % 12; ++i) {
          times.back().push_back(time(execution));
          values.back().push_back(static_cast<double>(random() % 512) / 4);
          model.Append(keys.back(), times.back().back(), values.back().back());
        }
      }
      std::vector<SeriesBlock> batch;
      for (size_t b = 0; b < keys.size(); ++b) batch.push_back({keys[b], times[b], values[b]});
      ASSERT_TRUE(store->Append(batch, "b").ok());
    } else if (dice < 80) {
      ASSERT_TRUE(store->Flush().ok());
    } else if (dice < 84) {
      store.reset();
      store = MustOpen(options);
    } else if (dice < 87) {
      const int from = static_cast<int>(random() % 20);
      const int to = static_cast<int>(random() % 20);
      if (model.MayAdopt(from, to)) {
        ASSERT_TRUE(store->Reassign(kOrg, Execution(from), Execution(to)).ok());
        model.Adopt(from, to);
      }
    } else if (dice < 88) {
      const auto t = static_cast<int64_t>(random() % 6000);
      ASSERT_TRUE(store->DropBefore(t).ok());
      model.DropBefore(t);
    } else {
      ASSERT_EQ(ReadAll(*store, kOrg), model.All()) << "seed " << seed << " step " << step;
    }
  }
  ASSERT_EQ(ReadAll(*store, kOrg), model.All()) << "seed " << seed;
  SeriesSelector all;
  all.org = kOrg;
  const auto summaries = store->Summarise(all, {}).value();
  const Content content = model.All();
  ASSERT_EQ(summaries.series.size(), content.size());
  for (const auto& summary : summaries.series) {
    const auto& series = content.at(summary.key);
    ASSERT_EQ(summary.count, static_cast<int64_t>(series.size()));
    ASSERT_EQ(summary.first_ms, series.begin()->first);
    ASSERT_EQ(summary.last_ms, series.rbegin()->first);
    ASSERT_EQ(summary.last, series.rbegin()->second);
    double sum = 0;
    double max = 0;
    for (const auto& [t, v] : series) {
      sum += v;
      max = std::max(max, v);
    }
    ASSERT_EQ(summary.max, max);
    ASSERT_NEAR(summary.avg, sum / static_cast<double>(series.size()), 1e-9);
  }
}

TEST(EmbeddedStoreModel, AnswersAsTheModelDoes) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    Play(seed, 200);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace expanse::storage
