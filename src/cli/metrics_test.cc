// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/fakes.h"
#include "cli/metrics_format.h"
#include "rpc/json.h"

namespace expanse::cli {
namespace {

constexpr char kExecution[] = "01939000-0000-7000-8000-000000000003";

class Metrics : public ::testing::Test {
 protected:
  Metrics() {
    machine_.SignIn();
    auto* gpu = Series("gpu-util", "nvidia-smi", "ratio");
    gpu->set_gpu_index(0);
    gpu->set_gpu_uuid("GPU-1d2c");
    gpu->set_node("n1");
    Point(gpu, 1'780'000'000'000, 0.5, 0.25, 0.75, 0.5, 5);
    Point(gpu, 1'780'000'005'000, 0.9, 0.9, 0.9, 0.9, 5);
    auto* memory = Series("memory", "cgroup", "bytes");
    memory->set_node("n1");
    memory->set_step_id("batch");
    Point(memory, 1'780'000'000'000, 1.5e9, 1e9, 2e9, 1.5e9, 10);
  }
  data::v1::MetricSeries* Series(const char* metric, const char* source, const char* unit) {
    auto* series = machine_.planes.metrics.add_series();
    series->set_metric(metric);
    series->set_source(source);
    series->set_unit(unit);
    series->set_scope(data::v1::METRIC_SCOPE_EXECUTION);
    return series;
  }
  static void Point(data::v1::MetricSeries* series, int64_t at, double value, double min,
                    double max, double avg, int64_t count) {
    auto* point = series->add_points();
    point->set_timestamp_ms(at);
    point->set_value(value);
    point->set_min(min);
    point->set_max(max);
    point->set_avg(avg);
    point->set_sample_count(count);
  }
  FakeMachine machine_;
};

TEST_F(Metrics, CsvHasThePublishedHeaderAndOneRowAPoint) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "gpu-util", "memory", "--csv"}), kExitOk);
  EXPECT_EQ(std::string(kMetricsCsvHeader) + "\n", TestData("published/metrics_header.csv"));
  ExpectGolden("metrics.csv", machine_.terminal.out);
}

TEST_F(Metrics, CsvFieldsAreQuotedAsRfc4180Says) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
}

TEST_F(Metrics, TheSummaryHasOneRowASeries) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "gpu-util", "memory"}), kExitOk);
  ExpectGolden("metrics_summary.txt", machine_.terminal.out);
}

TEST_F(Metrics, JsonIsTheRawAnswer) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "memory", "--json"}), kExitOk);
  data::v1::QueryMetricsResponse parsed;
  ASSERT_TRUE(rpc::FromJson(machine_.terminal.out, &parsed).ok());
  EXPECT_EQ(parsed.series_size(), 2);
}

TEST_F(Metrics, WarningsAboutCutsAndUnknownsLeaveStdoutClean) {
  machine_.planes.metrics.mutable_series(0)->set_truncated(true);
  machine_.planes.metrics.mutable_series(1)->set_scope(data::v1::METRIC_SCOPE_COMPUTE);
  (*machine_.planes.metrics.mutable_unknown())["gpu-utli"] = "never sampled";
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "gpu-utli", "--csv"}), kExitOk);
  EXPECT_TRUE(machine_.terminal.out.starts_with("timestamp,"));
  EXPECT_EQ(machine_.terminal.out.find("warning"), std::string::npos);
  EXPECT_NE(machine_.terminal.err.find("--interval"), std::string::npos);
  EXPECT_NE(machine_.terminal.err.find("gpu-utli: unknown (never sampled), did you mean gpu-util?"),
            std::string::npos);
  EXPECT_NE(machine_.terminal.err.find("other jobs' devices"), std::string::npos);
}

TEST_F(Metrics, EveryFlagReachesTheServer) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "gpu-util", "sm__cycles_active.avg", "--interval",
                          "1m", "--agg", "p95", "--from", "2026-11-30T20:00:00Z", "--to",
                          "2026-11-30T21:00:00Z", "--gpu", "0", "--allow-fallback", "--cupti",
                          "--max-points", "7"}),
            kExitOk);
  const auto& q = machine_.planes.queried;
  EXPECT_EQ(q.execution_id(), kExecution);
  EXPECT_EQ(q.metrics(1), "sm__cycles_active.avg");
  EXPECT_EQ(q.interval_ms(), 60'000);
  EXPECT_EQ(q.aggregation(), data::v1::METRIC_AGGREGATION_P95);
  EXPECT_EQ(q.to_ms() - q.from_ms(), 3'600'000);
  EXPECT_TRUE(q.has_gpu_index());
  EXPECT_EQ(q.gpu_index(), 0);
  EXPECT_TRUE(q.allow_fallback());
  EXPECT_EQ(q.source(), "cupti");
  EXPECT_EQ(q.max_points(), 7);
}

TEST_F(Metrics, DefaultsAreAverageAndFiveThousandPoints) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "cpu"}), kExitOk);
  EXPECT_EQ(machine_.planes.queried.aggregation(), data::v1::METRIC_AGGREGATION_AVG);
  EXPECT_EQ(machine_.planes.queried.max_points(), 5000);
  EXPECT_FALSE(machine_.planes.queried.has_from_ms());
  EXPECT_FALSE(machine_.planes.queried.has_gpu_index());
}

TEST_F(Metrics, SinceIsRelativeToNow) {
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "cpu", "--since", "2h"}), kExitOk);
  EXPECT_EQ(machine_.planes.queried.from_ms(), ToUnixMillis(machine_.clock.Now()) - 2 * 3'600'000);
}

TEST_F(Metrics, JobIsResolvedByItsSchedulersId) {
  auto& e = machine_.planes.executions.emplace_back();
  e.set_execution_id(kExecution);
  e.set_native_id("41982");
  e.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  EXPECT_EQ(machine_.Run({"metrics", "--job", "41982", "--source-type", "slurm", "gpu-util"}),
            kExitOk);
  EXPECT_EQ(machine_.planes.queried.execution_id(), kExecution);
  EXPECT_EQ(machine_.planes.queried.metrics_size(), 1);
}

TEST_F(Metrics, AllDiscoversTheSeriesOfOneSource) {
  machine_.planes.metric_names = {"dcgm_a", "dcgm_b"};
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "--dcgm", "--all", "--csv"}), kExitOk);
  EXPECT_EQ(machine_.planes.listed_metrics.source(), "dcgm");
  EXPECT_EQ(machine_.planes.queried.metrics_size(), 2);
}

TEST_F(Metrics, NothingFoundExitsWithOneAfterTheHeader) {
  machine_.planes.metrics.Clear();
  EXPECT_EQ(machine_.Run({"metrics", kExecution, "cpu", "--csv"}), kExitFailed);
  EXPECT_EQ(machine_.terminal.out, std::string(kMetricsCsvHeader) + "\n");
}

struct BadUse {
  const char* name;
  std::vector<std::string> words;
  const char* message;
};

class MetricsUsage : public ::testing::TestWithParam<BadUse> {};

TEST_P(MetricsUsage, IsRefusedBeforeAnyCall) {
  FakeMachine machine;
  auto words = GetParam().words;
  words.insert(words.begin(), "metrics");
  EXPECT_EQ(machine.Run(words), kExitUsage);
  EXPECT_NE(machine.terminal.err.find(GetParam().message), std::string::npos)
      << machine.terminal.err;
  EXPECT_TRUE(machine.planes.urls.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Usage, MetricsUsage,
    ::testing::Values(
        BadUse{"NoExecution", {}, "missing argument <execution-id>"},
        BadUse{"NoMetric", {kExecution}, "at least one metric"},
        BadUse{"NotAnId", {"41982", "cpu"}, "--job 41982 --source-type slurm"},
        BadUse{"CsvAndJson", {kExecution, "cpu", "--csv", "--json"}, "--csv and --json exclude"},
        BadUse{"CuptiAndDcgm", {kExecution, "--all", "--cupti", "--dcgm"}, "exclude each other"},
        BadUse{"SinceAndFrom",
               {kExecution, "cpu", "--since", "1h", "--from", "2026-11-30T20:00:00Z"},
               "--since and --from exclude"},
        BadUse{"SinceAndTo",
               {kExecution, "cpu", "--since", "1h", "--to", "2026-11-30T20:00:00Z"},
               "--since and --to exclude"},
        BadUse{"AllWithoutSource", {kExecution, "--all"}, "--all needs --cupti or --dcgm"},
        BadUse{"JobWithoutType", {"--job", "1", "cpu"}, "--job needs --source-type"},
        BadUse{"HalfASecond", {kExecution, "cpu", "--interval", "500ms"}, "whole seconds"},
        BadUse{"NoInterval", {kExecution, "cpu", "--interval", "0s"}, "whole seconds"},
        BadUse{
            "Backwards",
            {kExecution, "cpu", "--from", "2026-11-30T20:00:00Z", "--to", "2026-11-30T19:00:00Z"},
            "--from is not before --to"},
        BadUse{"Aggregation", {kExecution, "cpu", "--agg", "median"}, "--agg"}),
    [](const auto& bad_use) { return bad_use.param.name; });

}  // namespace
}  // namespace expanse::cli
