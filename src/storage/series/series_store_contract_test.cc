// SPDX-License-Identifier: Apache-2.0
// What every series backend has to do. A backend joins by a line in kBackends.
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/series/series_test_util.h"

namespace expanse::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Backend {
  const char* name;
  EmbeddedStoreOptions (*options)(const std::string& directory);
};

const Backend kBackends[] = {
    {"Embedded", [](const std::string& d) { return At(d); }},
    {"EmbeddedThatSealsAndMergesAllTheTime",
     [](const std::string& d) {
       auto options = At(d);
       options.head_samples = 3;
       options.merge_files = 2;
       return options;
     }},
};

class SeriesStoreContract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { store_ = MustOpen(GetParam().options(directory_.path() + "/series")); }
  void Put(const SeriesKey& key, const std::vector<int64_t>& times,
           const std::vector<double>& values) {
    const auto status = AppendOne(*store_, key, times, values);
    ASSERT_TRUE(status.ok()) << status.error().message();
  }
  std::vector<Bucket> Buckets(const SeriesSelector& selector, const BucketQuery& query) {
    const auto answer = store_->Query(selector, query);
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_EQ(answer->series.size(), 1U);
    return answer->series.empty() ? std::vector<Bucket>() : answer->series[0].buckets;
  }

  platform::TempDir directory_;
  std::unique_ptr<SeriesStore> store_;
};

TEST_P(SeriesStoreContract, AnswersWhatWasAppended) {
  const std::vector<double> values{
      0.0,    -0.0, 0.1, -1e300, std::numeric_limits<double>::denorm_min(), 9007199254740993.0,
      1.0 / 3};
  std::vector<int64_t> times;
  for (size_t i = 0; i < values.size(); ++i) times.push_back(static_cast<int64_t>(i) * 10'000);
  Put(Key(1, "cpu"), times, values);
  const auto samples = ReadOne(*store_, Of(1));
  ASSERT_EQ(samples.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(samples[i].timestamp_ms, times[i]);
    EXPECT_EQ(samples[i].value, values[i]);
    EXPECT_EQ(std::signbit(samples[i].value), std::signbit(values[i]));
  }
}

TEST_P(SeriesStoreContract, LetsTheLastValueOfATimestampWin) {
  Put(Key(1, "cpu"), {10, 20, 30}, {1, 2, 3});
  Put(Key(1, "cpu"), {20, 20}, {5, 6});
  Put(Key(1, "cpu"), {30}, {7});
  EXPECT_THAT(ReadOne(*store_, Of(1)), ElementsAre(Sample{10, 1}, Sample{20, 6}, Sample{30, 7}));
}

TEST_P(SeriesStoreContract, IsNotChangedByTheSameBatchAgain) {
  for (int i = 0; i < 3; ++i) Put(Key(1, "cpu"), {10, 20, 30, 40}, {1, 2, 3, 4});
  EXPECT_EQ(ReadOne(*store_, Of(1)).size(), 4U);
  EXPECT_EQ(store_->Summarise(Of(1), {}).value().series[0].count, 4);
}

TEST_P(SeriesStoreContract, TakesSamplesLateAndInAnyOrder) {
  Put(Key(1, "cpu"), {50, 40, 60}, {5, 4, 6});
  Put(Key(1, "cpu"), {10, 55}, {1, 5.5});
  Put(Key(1, "cpu"), {45}, {4.5});
  EXPECT_THAT(ReadOne(*store_, Of(1)), ElementsAre(Sample{10, 1}, Sample{40, 4}, Sample{45, 4.5},
                                                   Sample{50, 5}, Sample{55, 5.5}, Sample{60, 6}));
}

TEST_P(SeriesStoreContract, AggregatesIntoBucketsThatStartAtMultiplesOfTheInterval) {
  Put(Key(1, "cpu"), {999, 1000, 1500, 1999, 2000, 4000}, {9, 1, 2, 6, 4, 8});
  BucketQuery query;
  query.interval_ms = 1000;
  query.range = {1000, 4000};
  for (const auto& [aggregation, first] :
       {std::pair(Aggregation::kAvg, 3.0), std::pair(Aggregation::kMin, 1.0),
        std::pair(Aggregation::kMax, 6.0), std::pair(Aggregation::kSum, 9.0),
        std::pair(Aggregation::kP95, 6.0), std::pair(Aggregation::kLast, 6.0)}) {
    query.aggregation = aggregation;
    const auto buckets = Buckets(Of(1), query);
    ASSERT_EQ(buckets.size(), 2U);  // 999 is before the range, 4000 is its end
    EXPECT_EQ(buckets[0].start_ms, 1000);
    EXPECT_EQ(buckets[0].value, first);
    EXPECT_EQ(buckets[0].min, 1);
    EXPECT_EQ(buckets[0].max, 6);
    EXPECT_EQ(buckets[0].avg, 3);
    EXPECT_EQ(buckets[0].count, 3);
    EXPECT_EQ(buckets[1].start_ms, 2000);
    EXPECT_EQ(buckets[1].value, 4);
  }
}

TEST_P(SeriesStoreContract, TakesTheNearestRankAsPercentile) {
  std::vector<int64_t> times;
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) {
    times.push_back(i);
    values.push_back(101 - i);
  }
  Put(Key(1, "cpu"), times, values);
  BucketQuery query;
  query.interval_ms = 1000;
  query.aggregation = Aggregation::kP95;
  EXPECT_EQ(Buckets(Of(1), query)[0].value, 95);
}

TEST_P(SeriesStoreContract, SaysWhenAnAnswerWasCutAtMaxPoints) {
  Put(Key(1, "cpu"), {1000, 2000, 3000}, {1, 2, 3});
  BucketQuery query;
  query.max_points = 2;
  auto answer = store_->Query(Of(1), query);
  EXPECT_TRUE(answer->series[0].truncated);
  EXPECT_EQ(answer->series[0].buckets.size(), 2U);
  query.max_points = 3;
  EXPECT_FALSE(store_->Query(Of(1), query)->series[0].truncated);
  EXPECT_TRUE(store_->Read(Of(1), {}, 2)->series[0].truncated);
  EXPECT_FALSE(store_->Read(Of(1), {}, 3)->series[0].truncated);
}

TEST_P(SeriesStoreContract, SelectsByEveryPartOfTheKey) {
  SeriesKey gpu = Key(1, "gpu-util");
  gpu.source = "nvidia-smi";
  gpu.gpu_index = 0;
  SeriesKey other_gpu = gpu;
  other_gpu.gpu_index = 1;
  SeriesKey node = Key(1, "node-cpu", "");
  node.execution = ExecutionId();
  node.source = "proc";
  SeriesKey second_node = Key(1, "cpu");
  second_node.node = "node02";
  SeriesKey elsewhere = Key(1, "cpu");
  elsewhere.compute = ComputeId("0190a000-0000-7000-8000-0000000000c2");
  SeriesKey foreign = Key(1, "cpu");
  foreign.org = kOtherOrg;
  for (const auto& key : {Key(1, "cpu"), Key(1, "cpu", "1"), Key(1, "memory"), Key(2, "cpu"), gpu,
                          other_gpu, node, second_node, elsewhere, foreign})
    Put(key, {1000}, {1});
  const auto list = [&](const SeriesSelector& selector) {
    return store_->ListSeries(selector, {}).value();
  };
  EXPECT_EQ(list(Of(1)).size(), 7U);
  EXPECT_EQ(list(Of(1, {"cpu"})).size(), 4U);
  EXPECT_EQ(list(Of(1, {"memory", "gpu-util"})).size(), 3U);
  EXPECT_THAT(list(Of(2)), ElementsAre(Key(2, "cpu")));
  EXPECT_THAT(list(Of(3)), IsEmpty());
  SeriesSelector selector = Of(1);
  selector.gpu_index = 1;
  EXPECT_THAT(list(selector), ElementsAre(other_gpu));
  selector = Of(1);
  selector.source = "nvidia-smi";
  EXPECT_THAT(list(selector), ElementsAre(gpu, other_gpu));
  selector = Of(1);
  selector.node = "node02";
  EXPECT_THAT(list(selector), ElementsAre(second_node));
  selector = Of(1);
  selector.step_id = "1";
  EXPECT_THAT(list(selector), ElementsAre(Key(1, "cpu", "1")));
  selector = Of(1);
  selector.compute = elsewhere.compute;
  EXPECT_THAT(list(selector), ElementsAre(elsewhere));
  selector.execution = ExecutionId();
  selector.compute = kCompute;
  EXPECT_THAT(list(selector), ElementsAre(node));
  selector.execution = std::nullopt;
  selector.compute = ComputeId();
  EXPECT_EQ(list(selector).size(), 9U);  // all but the other organisation's
  selector.org = kOtherOrg;
  EXPECT_THAT(list(selector), ElementsAre(foreign));
}

TEST_P(SeriesStoreContract, NeedsAnOrganisation) {
  EXPECT_EQ(store_->Query({}, {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->ListSeries({}, {}).error().code(), Code::kInvalidArgument);
}

TEST_P(SeriesStoreContract, SummarisesEachSeries) {
  Put(Key(1, "cpu"), {1000, 2000}, {4, 2});
  Put(Key(1, "cpu"), {3000, 5000}, {9, 1});
  Put(Key(1, "memory"), {3000}, {7});
  auto answer = store_->Summarise(Of(1), {1000, 5000});
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->series.size(), 2U);
  const SeriesSummary& cpu = answer->series[0];
  EXPECT_EQ(cpu.key, Key(1, "cpu"));
  EXPECT_EQ(cpu.count, 3);
  EXPECT_EQ(cpu.first_ms, 1000);
  EXPECT_EQ(cpu.last_ms, 3000);
  EXPECT_EQ(cpu.min, 2);
  EXPECT_EQ(cpu.max, 9);
  EXPECT_EQ(cpu.avg, 5);
  EXPECT_EQ(cpu.last, 9);
  EXPECT_EQ(store_->Summarise(Of(1), {10'000}).value().series.size(), 0U);
}

TEST_P(SeriesStoreContract, RefusesAWholeBatchWithAnInvalidBlock) {
  const std::vector<int64_t> times{1};
  const std::vector<double> values{1};
  const std::vector<int64_t> early{-1};
  const std::vector<double> nan{std::nan("")};
  SeriesKey unnamed = Key(1, "");
  SeriesKey nobody = Key(1, "cpu");
  nobody.org = OrgId();
  SeriesKey lengthy = Key(1, "cpu");
  lengthy.node = std::string(2000, 'n');
  const SeriesBlock bad[] = {{Key(1, "cpu"), times, {}},  {Key(1, "cpu"), early, values},
                             {Key(1, "cpu"), times, nan}, {unnamed, times, values},
                             {nobody, times, values},     {lengthy, times, values}};
  for (const SeriesBlock& block : bad) {
    const SeriesBlock batch[] = {{Key(1, "memory"), times, values}, block};
    const auto status = store_->Append(batch, "batch-7");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
    EXPECT_NE(status.error().message().find("batch-7"), std::string::npos);
  }
  SeriesSelector all;
  all.org = kOrg;
  EXPECT_THAT(store_->ListSeries(all, {}).value(), IsEmpty());
}

TEST_P(SeriesStoreContract, TakesABatchWithoutSamples) {
  Put(Key(1, "cpu"), {}, {});
  EXPECT_TRUE(store_->Append({}, "empty").ok());
  EXPECT_THAT(store_->ListSeries(Of(1), {}).value(), IsEmpty());
}

TEST_P(SeriesStoreContract, GivesTheSamplesOfAProvisionalExecutionToTheOneThatAdoptsIt) {
  Put(Key(1, "cpu"), {10, 20}, {1, 2});
  ASSERT_TRUE(store_->Flush().ok());
  Put(Key(2, "cpu"), {30}, {3});
  ASSERT_TRUE(store_->Reassign(kOrg, Execution(1), Execution(2)).ok());
  ASSERT_TRUE(store_->Reassign(kOrg, Execution(1), Execution(2)).ok());
  Put(Key(1, "cpu"), {40}, {4});
  ASSERT_TRUE(store_->Reassign(kOrg, Execution(2), Execution(3)).ok());
  for (const int asked : {1, 2, 3}) {
    const auto answer = store_->Read(Of(asked), {}, 100);
    ASSERT_EQ(answer->series.size(), 1U) << asked;
    EXPECT_EQ(answer->series[0].key, Key(3, "cpu"));
    EXPECT_THAT(answer->series[0].samples,
                ElementsAre(Sample{10, 1}, Sample{20, 2}, Sample{30, 3}, Sample{40, 4}));
  }
  SeriesSelector all;
  all.org = kOrg;
  EXPECT_THAT(store_->ListSeries(all, {}).value(), ElementsAre(Key(3, "cpu")));
  // Another organisation's ids are its own.
  EXPECT_TRUE(store_->Reassign(kOtherOrg, Execution(2), Execution(1)).ok());
  EXPECT_EQ(store_->Reassign(kOrg, Execution(3), Execution(1)).error().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(store_->Reassign(kOrg, Execution(3), Execution(3)).error().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(store_->Reassign(kOrg, Execution(3), ExecutionId()).error().code(),
            Code::kInvalidArgument);
}

TEST_P(SeriesStoreContract, ForgetsWhatRetentionDropped) {
  Put(Key(1, "cpu"), {10, 20, 30}, {1, 2, 3});
  ASSERT_TRUE(store_->Flush().ok());
  Put(Key(1, "cpu"), {25, 40}, {2.5, 4});
  ASSERT_TRUE(store_->DropBefore(25).ok());
  EXPECT_THAT(ReadOne(*store_, Of(1)), ElementsAre(Sample{25, 2.5}, Sample{30, 3}, Sample{40, 4}));
  ASSERT_TRUE(store_->DropBefore(5).ok());
  Put(Key(1, "cpu"), {7}, {7});
  EXPECT_EQ(ReadOne(*store_, Of(1)).size(), 3U);
  ASSERT_TRUE(store_->DropBefore(1000).ok());
  EXPECT_THAT(store_->ListSeries(Of(1), {}).value(), IsEmpty());
}

TEST_P(SeriesStoreContract, KeepsEverythingWhenItIsClosedAndOpened) {
  for (int round = 0; round < 5; ++round) {
    Put(Key(1, "cpu"), {round * 10 + 1, round * 10 + 2}, {round * 1.5, round * 2.5});
    if (round == 2) {
      ASSERT_TRUE(store_->Reassign(kOrg, Execution(1), Execution(9)).ok());
      ASSERT_TRUE(store_->DropBefore(2).ok());
    }
    store_.reset();
    store_ = MustOpen(GetParam().options(directory_.path() + "/series"));
  }
  const auto samples = ReadOne(*store_, Of(9));
  ASSERT_EQ(samples.size(), 9U);
  EXPECT_EQ(samples.back(), (Sample{42, 10}));
}

TEST_P(SeriesStoreContract, BacksUpIntoAStoreThatOpens) {
  Put(Key(1, "cpu"), {10, 20}, {1, 2});
  ASSERT_TRUE(store_->Reassign(kOrg, Execution(1), Execution(2)).ok());
  const std::string backup = directory_.path() + "/backup";
  const auto status = store_->BackupTo(backup);
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(store_->BackupTo(backup).error().code(), Code::kAlreadyExists);
  Put(Key(2, "cpu"), {30}, {3});
  const auto restored = MustOpen(GetParam().options(backup));
  EXPECT_THAT(ReadOne(*restored, Of(2)), ElementsAre(Sample{10, 1}, Sample{20, 2}));
}

TEST_P(SeriesStoreContract, TakesBatchesFromManyThreadsWhileOthersRead) {
  constexpr int kThreads = 4;
  constexpr int kBatches = 50;
  std::atomic<int> failures = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n)
    threads.emplace_back([&, n] {
      for (int i = 0; i < kBatches; ++i)
        if (!AppendOne(*store_, Key(n, "cpu"), {i * 1000}, {i * 1.0}).ok()) ++failures;
    });
  std::thread reader([&] {
    while (!done) {
      size_t last = 0;
      for (int n = 0; n < kThreads; ++n) {
        const auto samples = ReadOne(*store_, Of(n));
        last += samples.size();
        for (size_t i = 0; i < samples.size(); ++i)
          if (samples[i].value != static_cast<double>(i)) ++failures;
      }
      (void)store_->Stats();
    }
  });
  for (auto& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(failures, 0);
  for (int n = 0; n < kThreads; ++n) EXPECT_EQ(ReadOne(*store_, Of(n)).size(), size_t{kBatches});
  EXPECT_EQ(store_->Stats().appended_samples, kThreads * kBatches);
}

INSTANTIATE_TEST_SUITE_P(Backends, SeriesStoreContract, testing::ValuesIn(kBackends),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace expanse::storage
