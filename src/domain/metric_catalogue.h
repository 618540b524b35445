// SPDX-License-Identifier: Apache-2.0
// Every metric the product names itself. Native CUPTI and DCGM names pass through unlisted.
// The reference page docs/reference/metrics.md is generated from this table.
#pragma once

#include <span>
#include <string_view>

namespace expanse::domain {

enum class MetricKind {
  kGauge,    // value at the sample's time
  kCounter,  // ever growing; queries answer its rate
};

struct MetricInfo {
  std::string_view name;  // series name in the store and in CSV
  std::string_view unit;  // "cores", "bytes", "ratio", "watts", "celsius", "hertz", "count"
  MetricKind kind;
  std::string_view source;  // "cgroup", "proc", "nvidia-smi"
  std::string_view scope;   // "step", "node", "gpu"
  std::string_view doc;
};

std::span<const MetricInfo> MetricCatalogue();
/// Null for a name that is not in the catalogue (a native name).
const MetricInfo* FindMetric(std::string_view name);

}  // namespace expanse::domain
