// SPDX-License-Identifier: Apache-2.0
#include "data_plane/metrics/metrics_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include "data_plane/executions/execution_service.h"
#include "data_plane/metrics/combine.h"
#include "data_plane/metrics/metric_query.h"

namespace expanse::data_plane {
namespace {

constexpr int kDefaultMaxPoints = 5'000;
constexpr int kMostPoints = 1'000'000;
constexpr int kMaxMetrics = 500;
constexpr size_t kMaxMetricName = 1'024;

Status Check(const data::v1::QueryMetricsRequest& request) {
  if (request.metrics_size() == 0)
    return Error(Code::kInvalidArgument, "metrics: name at least one");
  if (request.metrics_size() > kMaxMetrics)
    return Error(Code::kInvalidArgument, "more than 500 metrics in one query");
  for (const std::string& metric : request.metrics())
    if (metric.empty() || metric.size() > kMaxMetricName)
      return Error(Code::kInvalidArgument, "a metric name has 1 to 1024 bytes");
  if (request.interval_ms() < 0 || request.interval_ms() % 1000 != 0)
    return Error(Code::kInvalidArgument, "interval_ms is a multiple of 1000");
  if (request.interval_ms() > int64_t{366} * 86'400'000)
    return Error(Code::kInvalidArgument, "interval_ms is longer than a year");
  if (request.has_from_ms() && request.has_to_ms() && request.from_ms() > request.to_ms())
    return Error(Code::kInvalidArgument, "from_ms is after to_ms");
  return {};
}

}  // namespace

Result<data::v1::QueryMetricsResponse> MetricsService::QueryMetrics(
    const rpc::CallContext& context, const data::v1::QueryMetricsRequest& request) {
  EXPANSE_CHECK_OK(Check(request));
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  MetricPlan plan;
  plan.org = context.caller.org;
  EXPANSE_CHECK_OK(database_.Read([&](storage::Transaction& transaction) -> Status {
    EXPANSE_TRY(plan.execution, FindExecution(transaction, context.caller, request.execution_id()));
    EXPANSE_TRY(plan.owners, OwnersOf(transaction, plan.org, plan.execution, now_ms));
    return {};
  }));
  plan.range = plan.owners.life;
  if (request.has_from_ms()) plan.range.from_ms = std::max(plan.range.from_ms, request.from_ms());
  if (request.has_to_ms()) plan.range.to_ms = std::min(plan.range.to_ms, request.to_ms());
  plan.range.to_ms = std::max(plan.range.to_ms, plan.range.from_ms);
  plan.interval_ms = request.interval_ms() > 0
                         ? request.interval_ms()
                         : ChooseInterval(std::min(plan.range.to_ms, now_ms) - plan.range.from_ms);
  plan.aggregation = request.aggregation() == data::v1::METRIC_AGGREGATION_UNSPECIFIED
                         ? data::v1::METRIC_AGGREGATION_AVG
                         : request.aggregation();
  if (request.has_gpu_index()) plan.gpu_index = request.gpu_index();
  plan.source = request.source();
  plan.allow_fallback = request.allow_fallback();
  plan.split = request.split();
  plan.max_points = static_cast<size_t>(
      request.max_points() <= 0 ? kDefaultMaxPoints : std::min(request.max_points(), kMostPoints));
  data::v1::QueryMetricsResponse response;
  std::set<std::string> answered;
  for (const std::string& metric : request.metrics()) {
    if (!answered.insert(metric).second) continue;
    if (context.deadline.Expired())
      return Error(Code::kDeadlineExceeded, "the query took too long; ask for a wider interval");
    EXPANSE_CHECK_OK(AnswerMetric(series_, plan, metric, &response));
  }
  return response;
}

Result<data::v1::ListMetricsResponse> MetricsService::ListMetrics(
    const rpc::CallContext& context, const data::v1::ListMetricsRequest& request) {
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  common::v1::Execution execution;
  SeriesOwners owners;
  EXPANSE_CHECK_OK(database_.Read([&](storage::Transaction& transaction) -> Status {
    EXPANSE_TRY(execution, FindExecution(transaction, context.caller, request.execution_id()));
    EXPANSE_TRY(owners, OwnersOf(transaction, context.caller.org, execution, now_ms));
    return {};
  }));
  std::set<std::string> names;
  for (const ExecutionId& owner : owners.owners) {
    storage::SeriesSelector selector;
    selector.org = context.caller.org;
    selector.execution = owner;
    selector.source = request.source();
    EXPANSE_TRY(const auto keys, series_.ListSeries(selector, owners.life));
    for (const auto& key : keys) names.insert(key.metric);
  }
  data::v1::ListMetricsResponse response;
  for (const std::string& name : names) response.add_metrics(name);
  return response;
}

}  // namespace expanse::data_plane
