// SPDX-License-Identifier: Apache-2.0
#include "platform/metrics/metrics.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/fs/fs.h"
#include "platform/metrics/process_metrics.h"
#include "platform/metrics/text_check.h"

namespace expanse::platform {
namespace {

TEST(MetricsRegistry, WritesPrometheusText) {
  MetricsRegistry registry;
  registry.GetCounter("b_total", "How many.", {{"method", "/a"}, {"code", "200"}}).Add(3);
  registry.GetCounter("b_total", "How many.", {{"method", "q\"\\\n"}}).Add();
  registry.AddGauge("a", "Now.", [] { return 1.5; });
  EXPECT_EQ(registry.Text(),
            "# HELP a Now.\n# TYPE a gauge\na 1.5\n"
            "# HELP b_total How many.\n# TYPE b_total counter\n"
            "b_total{code=\"200\",method=\"/a\"} 3\n"
            "b_total{method=\"q\\\"\\\\\\n\"} 1\n");
}

TEST(MetricsRegistry, CountsFromManyThreads) {
  MetricsRegistry registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) registry.GetCounter("n_total", "N.").Add();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(registry.GetCounter("n_total", "N.").value(), 4000U);
}

TEST(MetricsRegistry, AHistogramIsCumulativeAndValidText) {
  MetricsRegistry registry;
  constexpr double kBounds[] = {0.1, 1};
  Histogram& seconds = registry.GetHistogram("t_seconds", "Time.", {{"method", "/a"}}, kBounds);
  for (const double value : {0.05, 0.1, 0.5, 7.0}) seconds.Observe(value);
  EXPECT_EQ(registry.Text(),
            "# HELP t_seconds Time.\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{method=\"/a\",le=\"0.1\"} 2\n"
            "t_seconds_bucket{method=\"/a\",le=\"1\"} 3\n"
            "t_seconds_bucket{method=\"/a\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{method=\"/a\"} 7.65\nt_seconds_count{method=\"/a\"} 4\n");
}

TEST(MetricsRegistry, WhatIsNotKnownHasNoLine) {
  MetricsRegistry registry;
  registry.AddGauge("a", "A.", []() -> std::optional<double> { return std::nullopt; });
  registry.AddGauges("b", "B.", [] {
    return std::vector<std::pair<MetricsRegistry::Labels, double>>{{{{"node", "n2"}}, 1},
                                                                   {{{"node", "n\xff"}}, 0}};
  });
  EXPECT_EQ(registry.Text(),
            "# HELP a A.\n# TYPE a gauge\n# HELP b B.\n# TYPE b gauge\n"
            "b{node=\"n2\"} 1\nb{node=\"n\xef\xbf\xbd\"} 0\n");
  EXPECT_THAT(MetricsTextCheck::Problems(registry.Text()), testing::IsEmpty());
}

TEST(MetricsRegistry, AProcessKnowsItsOwnCost) {
  MetricsRegistry registry;
  AddProcessMetrics(registry);
  const TempDir dir;
  AddDiskMetrics(registry, dir.path());
  AddDiskMetrics(registry, dir.path() + "/absent");
  const std::string text = registry.Text();
  EXPECT_THAT(MetricsTextCheck::Problems(text), testing::IsEmpty());
  for (const char* name :
       {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
        "process_start_time_seconds", "process_threads", "expanse_disk_free_bytes"})
    EXPECT_THAT(
        text, testing::ContainsRegex("\n" + std::string(name) + "[^ ]* [1-9]|\n" + name + " 0\\."))
        << name;
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("absent\"}")));
}

TEST(MetricsTextCheck, SaysWhatIsWrong) {
  const std::string head = "# HELP a_total A.\n# TYPE a_total counter\n";
  EXPECT_THAT(MetricsTextCheck::Problems(head + "a_total{x=\"1\"} 1\n"), testing::IsEmpty());
  for (const std::string& bad :
       {head + "a_total 1", head + "a_total x\n", head + "a_total 1\na_total 1\n", head + head,
        head + "b_total 1\n", head + "a_total{x=1} 1\n", head + "a total 1\n",
        std::string("# HELP a A.\n# TYPE a counter\na 1\n"),
        std::string("# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\n"
                    "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n")})
    EXPECT_THAT(MetricsTextCheck::Problems(bad), testing::Not(testing::IsEmpty())) << bad;
}

}  // namespace
}  // namespace expanse::platform
