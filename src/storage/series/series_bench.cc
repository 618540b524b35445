// SPDX-License-Identifier: Apache-2.0
// Appending, sealed size and query time of the embedded series store on the data set gauges-1.
// Figures and the machine they were taken on: docs/design/series-store.md.
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "platform/fs/fs.h"
#include "storage/series/chunk_codec.h"
#include "storage/series/embedded_store.h"
#include "storage/series/gauges_dataset.h"

namespace expanse::storage {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

std::unique_ptr<SeriesStore> OpenAt(const std::string& directory) {
  EmbeddedStoreOptions options;
  options.directory = directory;
  return Must(OpenEmbeddedStore(options));
}

std::vector<SeriesBlock> Blocks(const GaugesDataset& data, const std::vector<Columns>& columns) {
  std::vector<SeriesBlock> out;
  for (size_t k = 0; k < columns.size(); ++k)
    out.push_back({data.keys()[k], columns[k].times, columns[k].values});
  return out;
}

// Batches of 1,000 series x 10 samples, each durable before the next: one client, no pipelining.
void AppendBatches(benchmark::State& state) {
  const platform::TempDir directory;
  const auto store = OpenAt(directory.path());
  GaugesDataset data(100, 1);
  int64_t samples = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto columns = data.Next(10);
    const auto blocks = Blocks(data, columns);
    state.ResumeTiming();
    Must(store->Append(blocks, "bench"));
    samples += 10'000;
  }
  state.SetItemsProcessed(samples);
  state.counters["samples"] = static_cast<double>(samples);
}
BENCHMARK(AppendBatches)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(300);

// Bytes of the sealed file (index included) for so many minutes of 1,000 series.
void SealedBytes(benchmark::State& state) {
  const auto minutes = static_cast<int>(state.range(0));
  double bytes_per_sample = 0;
  int64_t samples = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const platform::TempDir directory;
    const auto store = OpenAt(directory.path());
    GaugesDataset data(100, 1);
    for (int i = 0; i < minutes; ++i) {
      const auto columns = data.Next(6);
      Must(store->Append(Blocks(data, columns), "bench"));
    }
    state.ResumeTiming();
    Must(store->Flush());
    const auto stats = store->Stats();
    samples += stats.sealed_samples;
    bytes_per_sample =
        static_cast<double>(stats.sealed_bytes) / static_cast<double>(stats.sealed_samples);
  }
  state.SetItemsProcessed(samples);
  state.counters["bytes_per_sample"] = bytes_per_sample;
}
BENCHMARK(SealedBytes)->Arg(60)->Arg(120)->Arg(1440)->Unit(benchmark::kMillisecond)->Iterations(1);

// 10 million samples of a day (116 executions x 10 metrics x 8,640) in one store; one execution
// asked over the whole day in buckets of 30 s.
class TenMillion {
 public:
  TenMillion() : data_(116, 1), store_(OpenAt(directory_.path())) {
    for (int i = 0; i < 8640 / 60; ++i) {
      const auto columns = data_.Next(60);
      Must(store_->Append(Blocks(data_, columns), "bench"));
    }
    Must(store_->Flush());
  }
  SeriesStore& store() { return *store_; }
  SeriesSelector Of(int n, bool one_metric) const {
    const SeriesKey& key = data_.keys()[static_cast<size_t>(n) % 116 * 10];
    SeriesSelector selector;
    selector.org = key.org;
    selector.execution = key.execution;
    if (one_metric) selector.metrics = {"memory"};
    return selector;
  }

 private:
  platform::TempDir directory_;
  GaugesDataset data_;
  std::unique_ptr<SeriesStore> store_;
};

TenMillion& Stored() {
  static TenMillion stored;
  return stored;
}

void QueryOneDay(benchmark::State& state) {
  auto& stored = Stored();
  BucketQuery query;
  query.interval_ms = 30'000;
  int n = 0;
  size_t buckets = 0;
  for (auto _ : state) {
    const auto answer = Must(stored.store().Query(stored.Of(n++, state.range(0) == 1), query));
    buckets = 0;
    for (const auto& series : answer.series) buckets += series.buckets.size();
  }
  state.counters["buckets"] = static_cast<double>(buckets);
  const auto stats = stored.store().Stats();
  state.counters["stored"] = static_cast<double>(stats.sealed_samples);
  state.counters["files"] = static_cast<double>(stats.sealed_files);
  state.counters["bytes_per_sample"] =
      static_cast<double>(stats.sealed_bytes) / static_cast<double>(stats.sealed_samples);
}
BENCHMARK(QueryOneDay)->ArgName("one_metric")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

void SummariseOneDay(benchmark::State& state) {
  auto& stored = Stored();
  int n = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(Must(stored.store().Summarise(stored.Of(n++, false), {})));
}
BENCHMARK(SummariseOneDay)->Unit(benchmark::kMillisecond);

void EncodeAndDecode(benchmark::State& state) {
  GaugesDataset data(10, 1);
  const auto columns = data.Next(360);
  int64_t samples = 0;
  for (auto _ : state)
    for (const Columns& c : columns) {
      std::string bytes;
      EncodeDoubles(c.values, bytes);
      std::string_view rest = bytes;
      benchmark::DoNotOptimize(DecodeDoubles(rest, c.size()));
      samples += static_cast<int64_t>(c.size());
    }
  state.SetItemsProcessed(samples);
}
BENCHMARK(EncodeAndDecode);

}  // namespace
}  // namespace expanse::storage

BENCHMARK_MAIN();
