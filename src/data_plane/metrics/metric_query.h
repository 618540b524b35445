// SPDX-License-Identifier: Apache-2.0
// One metric of one execution: reads the series of all its owners and answers what was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data_plane/metrics/series_owners.h"
#include "expanse/data/v1/data.pb.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

/// A checked request.
struct MetricPlan {
  OrgId org;
  common::v1::Execution execution;
  SeriesOwners owners;
  storage::TimeRange range;  // within the life
  int64_t interval_ms = 0;
  data::v1::MetricAggregation aggregation = data::v1::METRIC_AGGREGATION_AVG;
  std::optional<int32_t> gpu_index;
  std::string source;
  bool allow_fallback = false;
  bool split = false;
  size_t max_points = 0;
};

/// Adds the series of the metric to the response, or the reason why there is none to `unknown`.
Status AnswerMetric(storage::SeriesStore& store, const MetricPlan& plan, const std::string& metric,
                    data::v1::QueryMetricsResponse* response);

}  // namespace expanse::data_plane
