// SPDX-License-Identifier: Apache-2.0
// Every metric the product names itself. Native CUPTI and DCGM names pass through unlisted.
// The reference page docs/reference/metrics.md is generated from this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace expanse::domain {

enum class MetricKind {
  kGauge,    // value at the sample's time
  kCounter,  // ever growing; queries answer its rate
};

struct MetricInfo {
  std::string_view name;  // series name in the store and in CSV
  std::string_view unit;  // "cores", "bytes", "seconds", "bytes/s", "ratio", "watts", "count", ...
  MetricKind kind;
  std::string_view source;  // "cgroup", "proc", "taskstats", "collector", "nvidia-smi"
  std::string_view scope;   // "step", "node", "gpu"
  int period_seconds;       // how often it is read; 0: its source decides
  std::string_view doc;     // with where it is known, when that is not everywhere
};

std::span<const MetricInfo> MetricCatalogue();
/// Null for a name that is not in the catalogue (a native name).
const MetricInfo* FindMetric(std::string_view name);

/// docs/reference/metrics.md.
std::string MetricReferencePage();

}  // namespace expanse::domain
