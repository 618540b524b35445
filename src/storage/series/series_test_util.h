// SPDX-License-Identifier: Apache-2.0
// What the tests of series share: keys, a model that answers as a store has to, comparisons.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "platform/fs/fs.h"
#include "storage/series/embedded_store.h"
#include "storage/series/series_store.h"

namespace expanse::storage {

inline const OrgId kOrg("0190a000-0000-7000-8000-000000000001");
inline const OrgId kOtherOrg("0190a000-0000-7000-8000-000000000002");
inline const ComputeId kCompute("0190a000-0000-7000-8000-0000000000c1");

inline ExecutionId Execution(int n) {
  std::string text = std::to_string(n);
  return ExecutionId("0190a000-0000-7000-9000-" + std::string(12 - text.size(), '0') + text);
}

inline SeriesKey Key(int execution, const std::string& metric, const std::string& step = "0") {
  SeriesKey key;
  key.org = kOrg;
  key.execution = Execution(execution);
  key.compute = kCompute;
  key.node = "node01";
  key.step_id = step;
  key.metric = metric;
  key.source = "cgroup";
  return key;
}

inline SeriesSelector Of(int execution, std::vector<std::string> metrics = {}) {
  SeriesSelector selector;
  selector.org = kOrg;
  selector.execution = Execution(execution);
  selector.metrics = std::move(metrics);
  return selector;
}

inline Status AppendOne(SeriesStore& store, const SeriesKey& key, const std::vector<int64_t>& times,
                        const std::vector<double>& values) {
  const SeriesBlock block{key, times, values};
  return store.Append(std::span(&block, 1), "test");
}

inline std::vector<Sample> ReadOne(SeriesStore& store, const SeriesSelector& selector,
                                   TimeRange range = {}) {
  const auto answer = store.Read(selector, range, 1'000'000);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_LE(answer->series.size(), 1U);
  return answer->series.empty() ? std::vector<Sample>() : answer->series[0].samples;
}

/// Every sample of an organisation by series.
using Content = std::map<SeriesKey, std::map<int64_t, double>>;

inline Content ReadAll(SeriesStore& store, const OrgId& org,
                       std::vector<std::string>* damage = nullptr) {
  SeriesSelector selector;
  selector.org = org;
  const auto answer = store.Read(selector, {}, 100'000'000);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  Content out;
  for (const auto& series : answer->series)
    for (const Sample& sample : series.samples) out[series.key][sample.timestamp_ms] = sample.value;
  if (damage != nullptr)
    *damage = answer->damage;
  else
    EXPECT_TRUE(answer->damage.empty()) << answer->damage.front();
  return out;
}

inline std::unique_ptr<SeriesStore> MustOpen(EmbeddedStoreOptions options) {
  auto opened = OpenEmbeddedStore(std::move(options));
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return opened.ok() ? *std::move(opened) : nullptr;
}

inline EmbeddedStoreOptions At(const std::string& directory) {
  EmbeddedStoreOptions options;
  options.directory = directory;
  return options;
}

}  // namespace expanse::storage
