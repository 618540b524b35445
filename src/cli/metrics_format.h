// SPDX-License-Identifier: Apache-2.0
// Metric series as a summary table and as long-format CSV.
#pragma once

#include <string>
#include <string_view>

#include "cli/context.h"
#include "expanse/data/v1/data.pb.h"

namespace expanse::cli {

inline constexpr std::string_view kMetricsCsvHeader =
    "timestamp,metric,source,gpu_index,gpu_uuid,value,min,max,avg,sample_count,unit";

/// Header and one row a point, series after series; what a series lacks is an empty field.
std::string MetricsCsv(const data::v1::QueryMetricsResponse& response);

/// One row a series: least, mean and greatest of the samples, and the newest bucket.
std::string MetricsSummary(const Context& context, const data::v1::QueryMetricsResponse& response);

/// A field as RFC 4180 wants it: quoted when it holds a comma, a quote or a newline.
std::string CsvField(std::string_view text);

/// The shortest decimal that reads back as the same double.
std::string ShortestNumber(double value);

}  // namespace expanse::cli
