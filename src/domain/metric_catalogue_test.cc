// SPDX-License-Identifier: Apache-2.0
#include "domain/metric_catalogue.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace expanse::domain {
namespace {

TEST(MetricCatalogue, EveryNameIsThereOnceAndExplained) {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : MetricCatalogue()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_EQ(FindMetric(metric.name), &metric);
    EXPECT_FALSE(metric.doc.empty() || metric.unit.empty() || metric.source.empty()) << metric.name;
  }
  EXPECT_EQ(FindMetric("dcgm_something"), nullptr);
}

TEST(MetricCatalogue, TheReferencePageIsCurrent) {
  const std::string path = std::string(EXPANSE_SOURCE_DIR) + "/docs/reference/metrics.md";
  const std::string page = MetricReferencePage();
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page;
  std::stringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_EQ(stored.str(), page) << "EXPANSE_UPDATE_GOLDEN=1 ctest --preset dev -R domain_test";
}

}  // namespace
}  // namespace expanse::domain
