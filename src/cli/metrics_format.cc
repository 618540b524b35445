// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_format.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/units.h"
#include "cli/text.h"

namespace expanse::cli {
namespace {

/// A value of the summary with its unit, as people read it: bytes by the largest binary unit,
/// ratios as percent.
std::string HumanValue(double value, std::string_view unit) {
  if (unit == "bytes" && std::abs(value) < 9e18)
    return FormatSizeProse(Bytes{static_cast<int64_t>(value)});
  if (unit == "ratio") return fmt::format("{:.1f} %", value * 100);
  if (unit == "cores") return fmt::format("{:.2f} cores", value);
  if (unit == "watts") return fmt::format("{:.0f} W", value);
  if (unit == "celsius") return fmt::format("{:.0f} C", value);
  if (unit == "hertz") return fmt::format("{:.0f} MHz", value / 1e6);
  if (unit.empty() || unit == "count") return ShortestNumber(value);
  return ShortestNumber(value) + " " + std::string(unit);
}

struct Summary {
  double least = 0;
  double greatest = 0;
  double weighted_sum = 0;
  int64_t samples = 0;
};

Summary Summarise(const data::v1::MetricSeries& series) {
  Summary s;
  for (int i = 0; i < series.points_size(); ++i) {
    const auto& p = series.points(i);
    s.least = i == 0 ? p.min() : std::min(s.least, p.min());
    s.greatest = i == 0 ? p.max() : std::max(s.greatest, p.max());
    s.weighted_sum += p.avg() * static_cast<double>(p.sample_count());
    s.samples += p.sample_count();
  }
  return s;
}

}  // namespace

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  return out + "\"";
}

std::string ShortestNumber(double value) { return fmt::format("{}", value); }

std::string MetricsCsv(const data::v1::QueryMetricsResponse& response) {
  std::string out(kMetricsCsvHeader);
  out += "\n";
  for (const auto& series : response.series()) {
    const std::string labels =
        fmt::format(",{},{},{},{},", CsvField(series.metric()), CsvField(series.source()),
                    series.has_gpu_index() ? std::to_string(series.gpu_index()) : "",
                    CsvField(series.gpu_uuid()));
    const std::string unit = "," + CsvField(series.unit()) + "\n";
    for (const auto& p : series.points()) {
      out += FormatRfc3339(FromUnixMillis(p.timestamp_ms()));
      out += labels;
      out += fmt::format("{},{},{},{},{}", p.value(), p.min(), p.max(), p.avg(), p.sample_count());
      out += unit;
    }
  }
  return out;
}

std::string MetricsSummary(const Context& context, const data::v1::QueryMetricsResponse& response) {
  Table table({"METRIC", "SOURCE", "GPU", "NODE", "STEP", "SAMPLES", "MIN", "AVG", "MAX", "LAST"});
  for (const auto& series : response.series()) {
    if (series.points().empty()) continue;
    const Summary s = Summarise(series);
    const auto& last = series.points(series.points_size() - 1);
    table.Add({series.metric(), series.source(),
               series.has_gpu_index() ? std::to_string(series.gpu_index()) : "", series.node(),
               series.step_id(), std::to_string(s.samples), HumanValue(s.least, series.unit()),
               s.samples == 0
                   ? ""
                   : HumanValue(s.weighted_sum / static_cast<double>(s.samples), series.unit()),
               HumanValue(s.greatest, series.unit()), HumanValue(last.value(), series.unit())});
  }
  return table.Print(context);
}

}  // namespace expanse::cli
