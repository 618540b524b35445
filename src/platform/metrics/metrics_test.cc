// SPDX-License-Identifier: Apache-2.0
#include "platform/metrics/metrics.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace expanse::platform
