// SPDX-License-Identifier: Apache-2.0
#include "data_plane/fact_builder.h"
#include "data_plane/metrics/combine.h"
#include "data_plane/plane_fixture.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::FACT_ORIGIN_SACCT;
using data::v1::QueryMetricsRequest;
using testing::ElementsAre;

class MetricsTest : public PlaneFixture {
 protected:
  void SetUp() override {
    PlaneFixture::SetUp();
    Push({Facts(FACT_ORIGIN_SACCT, Key(), kNow, [](Execution& e) {
      Ended()(e);
      e.add_nodes("n1");
      e.add_nodes("n2");
    })});
    id_ = List()[0].execution_id();
  }
  static common::v1::RunKey Key() { return Job("7", kSubmit, 0); }
  QueryMetricsRequest Request(const std::string& metric, int64_t interval_ms = 1000) {
    QueryMetricsRequest request;
    request.set_execution_id(id_);
    request.add_metrics(metric);
    request.set_interval_ms(interval_ms);
    return request;
  }
  data::v1::QueryMetricsResponse Query(const QueryMetricsRequest& request) {
    auto response = Metrics().QueryMetrics(Owner(), request);
    EXPECT_TRUE(response.ok()) << response.error().message();
    return response.ok() ? *response : data::v1::QueryMetricsResponse();
  }
  static std::vector<double> Values(const data::v1::MetricSeries& series) {
    std::vector<double> out;
    for (const auto& point : series.points()) out.push_back(point.value());
    return out;
  }
  std::string id_;
};

TEST_F(MetricsTest, CpuIsTheSumOverStepsAndNodesAtEachMoment) {
  Push({Samples(Key(), "n1", "batch", "cpu", kStart, 1000, {1, 1, 1, 1}),
        Samples(Key(), "n1", "0", "cpu", kStart, 1000, {2, 0, 3, 0}),
        Samples(Key(), "n2", "0", "cpu", kStart, 1000, {0, 2, 0, 3})});
  auto request = Request("cpu", 2000);
  request.set_aggregation(data::v1::METRIC_AGGREGATION_MAX);
  const auto response = Query(request);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_THAT(Values(response.series(0)), ElementsAre(3, 4));  // not 5 and 7
  EXPECT_EQ(response.series(0).unit(), "cores");
  EXPECT_EQ(response.series(0).points(0).sample_count(), 6);
  EXPECT_EQ(response.series(0).scope(), data::v1::METRIC_SCOPE_EXECUTION);
}

TEST_F(MetricsTest, MemoryIsTheWorstNodeOfTheSumsOverSteps) {
  Push({Samples(Key(), "n1", "batch", "memory", kStart, 1000, {1, 1}),
        Samples(Key(), "n1", "0", "memory", kStart, 1000, {2, 5}),
        Samples(Key(), "n2", "0", "memory", kStart, 1000, {4, 4})});
  EXPECT_THAT(Values(Query(Request("memory")).series(0)), ElementsAre(4, 6));
  auto split = Request("memory");
  split.set_split(true);
  const auto response = Query(split);
  ASSERT_EQ(response.series_size(), 3);
  EXPECT_EQ(response.series(0).node(), "n1");
  EXPECT_EQ(response.series(0).step_id(), "0");
}

TEST_F(MetricsTest, ASeriesOfTheWholeJobStandsForItsSteps) {
  Push({Samples(Key(), "n1", "", "memory", kStart, 1000, {7, 8}),
        Samples(Key(), "n1", "0", "memory", kStart, 1000, {6, 7})});
  EXPECT_THAT(Values(Query(Request("memory")).series(0)), ElementsAre(7, 8));
}

TEST_F(MetricsTest, TheWindowIsTheLifeOfTheRunCutByTheRequest) {
  Push({Samples(Key(), "n1", "0", "cpu", kStart - 2000, 1000, {9, 9, 1, 2, 3}),
        Samples(Key(), "n1", "0", "cpu", kEnd, 1000, {4, 9})});
  EXPECT_THAT(Values(Query(Request("cpu")).series(0)), ElementsAre(1, 2, 3, 4));
  auto request = Request("cpu");
  request.set_from_ms(kStart + 1000);
  request.set_to_ms(kStart + 2000);
  EXPECT_THAT(Values(Query(request).series(0)), ElementsAre(2));
  request.set_from_ms(kEnd + 60'000);
  request.clear_to_ms();
  EXPECT_EQ(Query(request).unknown().at("cpu"), "the window does not meet the life of the run");
}

TEST_F(MetricsTest, SamplesWithoutAFullKeyAreOfTheRunInWhoseLifeTheyLie) {
  Push({Samples(Job("7"), "n1", "0", "cpu", kStart, 1000, {1, 2}),
        Samples(Job("7"), "n1", "0", "cpu", kStart - 86'400'000, 1000, {8})});
  EXPECT_THAT(Values(Query(Request("cpu")).series(0)), ElementsAre(1, 2));
}

TEST_F(MetricsTest, DevicesAreAnsweredApartAndCanBeChosen) {
  auto record = Samples(Key(), "n1", "", "gpu-util", kStart, 1000, {0.5}, "nvidia-smi");
  record.mutable_samples()->mutable_series(0)->set_gpu_index(0);
  record.mutable_samples()->mutable_series(0)->set_gpu_uuid("GPU-a");
  auto second = Samples(Key(), "n1", "", "gpu-util", kStart, 1000, {0.9}, "nvidia-smi");
  second.mutable_samples()->mutable_series(0)->set_gpu_index(1);
  Push({record, second});
  EXPECT_EQ(Query(Request("gpu-util")).series_size(), 2);
  auto one = Request("gpu-util");
  one.set_gpu_index(1);
  const auto response = Query(one);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_DOUBLE_EQ(response.series(0).points(0).value(), 0.9);
  EXPECT_EQ(response.series(0).unit(), "ratio");
  one.set_source("dcgm");
  EXPECT_EQ(Query(one).series_size(), 0);
}

TEST_F(MetricsTest, FallbackShowsTheNodesOwnSeriesAndSaysSo) {
  Push({Samples({}, "n1", "", "gpu-util", kStart, 1000, {0.5}, "nvidia-smi"),
        Samples({}, "n9", "", "gpu-util", kStart, 1000, {0.5}, "nvidia-smi")});
  EXPECT_THAT(Query(Request("gpu-util")).unknown().at("gpu-util"),
              testing::HasSubstr("not scoped to the run"));
  auto request = Request("gpu-util");
  request.set_allow_fallback(true);
  const auto response = Query(request);
  ASSERT_EQ(response.series_size(), 1);  // n9 is no node of the run
  EXPECT_EQ(response.series(0).scope(), data::v1::METRIC_SCOPE_COMPUTE);
  EXPECT_TRUE(response.unknown().empty());
}

TEST_F(MetricsTest, ACounterIsAnsweredAsItsRate) {
  Push({Samples(Key(), "n1", "0", "oom-kills", kStart, 1000, {0, 0, 2, 2})});
  const auto response = Query(Request("oom-kills"));
  EXPECT_THAT(Values(response.series(0)), ElementsAre(0, 0, 2, 0));
  EXPECT_EQ(response.series(0).unit(), "count/s");
}

TEST_F(MetricsTest, MorePointsThanAskedForAreCutAndSaid) {
  Push({Samples(Key(), "n1", "0", "cpu", kStart, 1000, std::vector<double>(50, 1.0)),
        Samples(Key(), "n2", "0", "cpu", kStart, 1000, std::vector<double>(50, 1.0))});
  auto request = Request("cpu");
  request.set_max_points(10);
  const auto response = Query(request);
  EXPECT_TRUE(response.series(0).truncated());
  EXPECT_EQ(response.series(0).points_size(), 10);
}

TEST_F(MetricsTest, BadRequestsAreRefused) {
  EXPECT_EQ(Metrics().QueryMetrics(Owner(), Request("cpu", 1500)).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Metrics().QueryMetrics(Owner(), Request("")).error().code(), Code::kInvalidArgument);
  auto request = Request("cpu");
  request.set_execution_id("42");
  EXPECT_EQ(Metrics().QueryMetrics(Owner(), request).error().code(), Code::kInvalidArgument);
  request.set_execution_id("01940000-0000-7000-8000-0000000000ff");
  EXPECT_EQ(Metrics().QueryMetrics(Owner(), request).error().code(), Code::kNotFound);
}

TEST(Combine, ASamplerThatIsLateByOneBucketMakesNoDip) {
  storage::BucketSeries a;
  storage::BucketSeries b;
  a.key.step_id = "0";
  b.key.step_id = "1";
  for (const int64_t t : {0, 1000, 2000, 3000}) a.buckets.push_back({t, 1, 1, 1, 1, 1});
  for (const int64_t t : {0, 2000, 3000}) b.buckets.push_back({t, 2, 2, 2, 2, 1});
  const auto total = Total({a, b}, AcrossNodes::kSum, 1000);
  ASSERT_EQ(total.size(), 4u);
  EXPECT_DOUBLE_EQ(total[1].value, 3);
  EXPECT_EQ(total[1].count, 1);
}

TEST(Combine, TheBaseDividesTheInterval) {
  EXPECT_EQ(BaseInterval(1000, 30'000), 1000);
  EXPECT_EQ(BaseInterval(10'000, 30'000), 10'000);
  EXPECT_EQ(BaseInterval(4'000, 30'000), 5'000);
  EXPECT_EQ(BaseInterval(60'000, 30'000), 30'000);
}

}  // namespace
}  // namespace expanse::data_plane
