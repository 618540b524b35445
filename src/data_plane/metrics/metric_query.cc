// SPDX-License-Identifier: Apache-2.0
#include "data_plane/metrics/metric_query.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "data_plane/metrics/combine.h"
#include "domain/metric_catalogue.h"

namespace expanse::data_plane {
namespace {

using data::v1::MetricScope;
using data::v1::QueryMetricsResponse;
using storage::Aggregation;
using storage::Bucket;
using storage::BucketSeries;
using storage::SeriesKey;
using storage::SeriesSelector;

Aggregation ToStore(data::v1::MetricAggregation aggregation) {
  switch (aggregation) {
    case data::v1::METRIC_AGGREGATION_MIN:
      return Aggregation::kMin;
    case data::v1::METRIC_AGGREGATION_MAX:
      return Aggregation::kMax;
    case data::v1::METRIC_AGGREGATION_SUM:
      return Aggregation::kSum;
    case data::v1::METRIC_AGGREGATION_P95:
      return Aggregation::kP95;
    case data::v1::METRIC_AGGREGATION_LAST:
      return Aggregation::kLast;
    default:
      return Aggregation::kAvg;
  }
}

class MetricQuery {
 public:
  MetricQuery(storage::SeriesStore& store, const MetricPlan& plan, std::string metric,
              QueryMetricsResponse* response)
      : store_(store),
        plan_(plan),
        metric_(std::move(metric)),
        info_(domain::FindMetric(metric_)),
        response_(response) {}

  Status Run() {
    const size_t before = static_cast<size_t>(response_->series_size());
    EXPANSE_CHECK_OK(IsTotalled() ? AnswerTotals() : AnswerEach());
    const bool is_answered = static_cast<size_t>(response_->series_size()) > before;
    if (!is_answered && plan_.allow_fallback) {
      EXPANSE_TRY(const bool found, AnswerFromNodes());
      if (found) return {};
    }
    if (!is_answered) {
      EXPANSE_TRY(const std::string reason, Reason());
      response_->mutable_unknown()->insert({metric_, reason});
    }
    if (!damage_.empty())
      (*response_->mutable_unknown())[metric_] = "partly unreadable: " + damage_;
    return {};
  }

 private:
  bool IsCounter() const { return info_ != nullptr && info_->kind == domain::MetricKind::kCounter; }
  bool IsTotalled() const { return info_ != nullptr && info_->scope == "step" && !plan_.split; }
  bool IsGpu() const { return metric_.starts_with("gpu-"); }

  SeriesSelector Selector(const ExecutionId& owner) const {
    SeriesSelector selector;
    selector.org = plan_.org;
    selector.execution = owner;
    selector.compute = ComputeId(plan_.execution.compute_id());
    selector.metrics = {metric_};
    selector.source = plan_.source;
    selector.gpu_index = plan_.gpu_index;
    return selector;
  }

  // Series of all owners, or of one place; those of one place that came under several names are
  // joined.
  Result<std::vector<BucketSeries>> Read(const std::optional<SeriesKey>& place, int64_t interval_ms,
                                         Aggregation aggregation, size_t max_points) {
    std::map<SeriesKey, BucketSeries> by_place;
    for (const ExecutionId& owner : plan_.owners.owners) {
      SeriesSelector selector = Selector(owner);
      if (place) {
        selector.node = place->node;
        selector.step_id = place->step_id;
        selector.source = place->source;
      }
      EXPANSE_TRY(auto answer,
                  store_.Query(selector, {plan_.range, interval_ms, aggregation, max_points}));
      NoteDamage(answer.damage);
      for (BucketSeries& series : answer.series) {
        series.key.execution = ExecutionId(plan_.execution.execution_id());
        auto [it, is_new] = by_place.try_emplace(series.key);
        if (is_new) {
          it->second = std::move(series);
          continue;
        }
        it->second.buckets = JoinOwners(it->second.buckets, series.buckets);
        it->second.truncated = it->second.truncated || series.truncated;
      }
    }
    std::vector<BucketSeries> out;
    for (auto& [key, series] : by_place)
      if (!series.buckets.empty()) out.push_back(std::move(series));
    return out;
  }

  void NoteDamage(const std::vector<std::string>& damage) {
    if (damage.empty()) return;
    damage_ = damage.front();
    log::Error("metrics.damage", {{"metric", metric_}, {"what", damage_}});
  }

  // Every series by itself: devices, native counters, or one a node and step.
  Status AnswerEach() {
    const Aggregation aggregation = IsCounter() ? Aggregation::kLast : ToStore(plan_.aggregation);
    EXPANSE_TRY(auto series, Read({}, plan_.interval_ms, aggregation, plan_.max_points + 1));
    for (BucketSeries& s : series) {
      if (IsCounter()) s.buckets = Rate(s.buckets, plan_.interval_ms);
      Emit(s.key, s.buckets, data::v1::METRIC_SCOPE_EXECUTION);
    }
    return {};
  }

  // One series a source: the total over steps and nodes.
  Status AnswerTotals() {
    if (IsCounter()) return AnswerCounterTotals();
    EXPANSE_TRY(const auto places, Places());
    for (const auto& [source, keys] : places)
      EXPANSE_CHECK_OK(keys.size() == 1 ? AnswerSingle(keys[0]) : AnswerSum(source));
    return {};
  }

  // Where the metric was sampled, by source, without the steps of nodes with a series of the job.
  Result<std::map<std::string, std::vector<SeriesKey>>> Places() {
    std::map<std::string, std::vector<BucketSeries>> by_source;
    std::set<SeriesKey> seen;
    for (const ExecutionId& owner : plan_.owners.owners) {
      EXPANSE_TRY(auto keys, store_.ListSeries(Selector(owner), plan_.range));
      for (SeriesKey& key : keys) {
        key.execution = ExecutionId(plan_.execution.execution_id());
        if (seen.insert(key).second) by_source[key.source].push_back({key, {}, false});
      }
    }
    std::map<std::string, std::vector<SeriesKey>> out;
    for (auto& [source, series] : by_source) {
      PreferWholeJob(&series);
      for (const BucketSeries& s : series) out[source].push_back(s.key);
    }
    return out;
  }

  // At the base resolution, since the maximum of a sum is not the sum of maxima.
  Status AnswerSum(const std::string& source) {
    EXPANSE_TRY(const int64_t base_ms, BaseOf());
    const auto points = static_cast<size_t>(
        std::min<int64_t>((plan_.range.to_ms - plan_.range.from_ms) / base_ms + 2, 10'000'000));
    EXPANSE_TRY(auto all, Read({}, base_ms, Aggregation::kAvg, points));
    auto series = std::move(BySource(std::move(all))[source]);
    PreferWholeJob(&series);
    const auto total = Total(series, AcrossNodesOf(metric_), base_ms);
    Emit(TotalKey(source), Rebucket(total, plan_.interval_ms, ToStore(plan_.aggregation)),
         data::v1::METRIC_SCOPE_EXECUTION);
    return {};
  }

  // Nothing to add up: the store aggregates the samples themselves.
  Status AnswerSingle(const SeriesKey& key) {
    EXPANSE_TRY(auto series,
                Read(key, plan_.interval_ms, ToStore(plan_.aggregation), plan_.max_points + 1));
    for (const BucketSeries& s : series)
      Emit(TotalKey(key.source), s.buckets, data::v1::METRIC_SCOPE_EXECUTION);
    return {};
  }

  Status AnswerCounterTotals() {
    EXPANSE_TRY(auto all, Read({}, plan_.interval_ms, Aggregation::kLast, plan_.max_points + 1));
    for (auto& [source, series] : BySource(std::move(all))) {
      PreferWholeJob(&series);
      for (BucketSeries& s : series) s.buckets = Rate(s.buckets, plan_.interval_ms);
      Emit(TotalKey(source), Total(series, AcrossNodes::kSum, plan_.interval_ms),
           data::v1::METRIC_SCOPE_EXECUTION);
    }
    return {};
  }

  static std::map<std::string, std::vector<BucketSeries>> BySource(
      std::vector<BucketSeries> series) {
    std::map<std::string, std::vector<BucketSeries>> out;
    for (BucketSeries& s : series) out[s.key.source].push_back(std::move(s));
    return out;
  }

  SeriesKey TotalKey(const std::string& source) const {
    SeriesKey key;
    key.metric = metric_;
    key.source = source;
    return key;
  }

  // The slowest sampling among the series decides the base resolution.
  Result<int64_t> BaseOf() {
    int64_t period = 1000;
    for (const ExecutionId& owner : plan_.owners.owners) {
      EXPANSE_TRY(auto answer, store_.Summarise(Selector(owner), plan_.range));
      for (const auto& s : answer.series)
        if (s.count > 1) period = std::max(period, (s.last_ms - s.first_ms) / (s.count - 1));
    }
    // A sampler a little late must not double the width.
    const int64_t rounded = std::max<int64_t>(1000, (period + 250) / 1000 * 1000);
    return BaseInterval(rounded, plan_.interval_ms);
  }

  void Emit(const SeriesKey& key, const std::vector<Bucket>& buckets, MetricScope scope) {
    if (buckets.empty()) return;
    auto* out = response_->add_series();
    out->set_metric(key.metric);
    out->set_source(key.source);
    if (key.gpu_index) out->set_gpu_index(*key.gpu_index);
    out->set_gpu_uuid(key.gpu_uuid);
    if (info_ != nullptr) out->set_unit(std::string(info_->unit) + (IsCounter() ? "/s" : ""));
    out->set_scope(scope);
    out->set_interval_seconds(plan_.interval_ms / 1000);
    out->set_aggregation(plan_.aggregation);
    out->set_node(key.node);
    out->set_step_id(key.step_id);
    out->set_truncated(buckets.size() > plan_.max_points);
    const size_t count = std::min(buckets.size(), plan_.max_points);
    out->mutable_points()->Reserve(static_cast<int>(count));
    for (size_t i = 0; i < count; ++i) {
      auto* point = out->add_points();
      point->set_timestamp_ms(buckets[i].start_ms);
      point->set_value(buckets[i].value);
      point->set_min(buckets[i].min);
      point->set_max(buckets[i].max);
      point->set_avg(buckets[i].avg);
      point->set_sample_count(buckets[i].count);
    }
  }

  SeriesSelector NodeSelector() const {
    SeriesSelector selector = Selector(ExecutionId());
    // Of a node, the CPU in use has its own name.
    if (metric_ == "cpu") selector.metrics = {"cpu", "node-cpu"};
    return selector;
  }

  bool IsOnNodes(const SeriesKey& key) const {
    const auto& nodes = plan_.execution.nodes();
    return nodes.empty() || std::find(nodes.begin(), nodes.end(), key.node) != nodes.end();
  }

  // Series of the nodes themselves, during the run; other jobs' devices can be among them.
  Result<bool> AnswerFromNodes() {
    EXPANSE_TRY(auto answer,
                store_.Query(NodeSelector(), {plan_.range, plan_.interval_ms,
                                              ToStore(plan_.aggregation), plan_.max_points + 1}));
    NoteDamage(answer.damage);
    bool found = false;
    for (const BucketSeries& series : answer.series) {
      if (!IsOnNodes(series.key) || series.buckets.empty()) continue;
      Emit(series.key, series.buckets, data::v1::METRIC_SCOPE_COMPUTE);
      found = true;
    }
    return found;
  }

  Result<std::string> Reason() {
    const auto& e = plan_.execution;
    if (e.status() == common::v1::EXECUTION_STATUS_QUEUED) return std::string("not started yet");
    if (IsGpu() && (e.requested().has_gpu_count() || e.allocated().has_gpu_count()) &&
        e.requested().gpu_count() == 0 && e.allocated().gpu_count() == 0)
      return std::string("the run had no GPU");
    EXPANSE_TRY(const auto on_nodes, store_.ListSeries(NodeSelector(), plan_.range));
    if (std::any_of(on_nodes.begin(), on_nodes.end(),
                    [this](const SeriesKey& key) { return IsOnNodes(key); }))
      return std::string(
          "not scoped to the run; the nodes' own series exist (allow_fallback shows them)");
    return std::string(plan_.range.from_ms >= plan_.range.to_ms
                           ? "the window does not meet the life of the run"
                           : "never sampled");
  }

  storage::SeriesStore& store_;
  const MetricPlan& plan_;
  const std::string metric_;
  const domain::MetricInfo* info_;
  QueryMetricsResponse* response_;
  std::string damage_;
};

}  // namespace

Status AnswerMetric(storage::SeriesStore& store, const MetricPlan& plan, const std::string& metric,
                    QueryMetricsResponse* response) {
  return MetricQuery(store, plan, metric, response).Run();
}

}  // namespace expanse::data_plane
