// SPDX-License-Identifier: Apache-2.0
#include "collect/uplink/aggregator.h"

#include "base/log.h"
#include "base/strings.h"

namespace expanse::collect::uplink {

Aggregator::Aggregator(AggregatorOptions options, Uplink& uplink, Complete complete,
                       const platform::Clock& clock, const platform::Fs& fs)
    : options_(std::move(options)),
      uplink_(uplink),
      complete_(std::move(complete)),
      clock_(clock),
      fs_(fs) {}

bool Aggregator::CompleteKey(common::v1::RunKey* key, int64_t observed_ms,
                             data::v1::FactOrigin origin) const {
  if (key->source_type() != common::v1::SOURCE_TYPE_SLURM) return true;
  if (key->native_id().empty() && key->sluid().empty()) return true;
  if (key->has_submit_time_ms() && key->has_restart_count()) return true;
  const int64_t when = key->has_observed_time_ms() ? key->observed_time_ms() : observed_ms;
  if (complete_(key, when, origin)) return true;
  if (!key->has_observed_time_ms()) key->set_observed_time_ms(when);
  return false;
}

Passage Aggregator::Inspect(data::v1::Record* record, Node* node) const {
  const int64_t observed = record->observed_time_ms();
  bool known = true;
  switch (record->body_case()) {
    case data::v1::Record::kFacts:
      known =
          CompleteKey(record->mutable_facts()->mutable_key(), observed, record->facts().origin());
      break;
    case data::v1::Record::kSamples:
      for (auto& series : *record->mutable_samples()->mutable_series()) {
        if (!series.has_run()) continue;
        // The run of a series is that of its first sample.
        const int64_t first = series.timestamps_ms().empty() ? observed : series.timestamps_ms(0);
        known = CompleteKey(series.mutable_run(), first) && known;
      }
      break;
    case data::v1::Record::kBundle:
      known = CompleteKey(record->mutable_bundle()->mutable_key(), observed);
      break;
    case data::v1::Record::kLogTail:
      known = CompleteKey(record->mutable_log_tail()->mutable_key(), observed);
      break;
    case data::v1::Record::kCompute:
      if (record->compute().health_size() > 0)
        node->told.assign(record->compute().health().begin(), record->compute().health().end());
      break;
    default:
      break;
  }
  const int64_t now = ToUnixMillis(clock_.Now());
  // A record from the future (the node's clock is ahead) does not wait longer than the others.
  if (!known && observed <= now && now - observed < options_.hold.count()) return Passage::kHold;
  node->last_record_ms = now;
  return Passage::kSend;
}

void Aggregator::SetProblem(Node* node, const std::string& problem) const {
  if (node->problem == problem) return;
  if (node->problem.empty() || problem.empty()) node->problem_since_ms = ToUnixMillis(clock_.Now());
  node->problem = problem;
}

void Aggregator::FindNodes() {
  auto names = fs_.List(options_.spool_directory);
  directory_problem_ = names.ok() ? "" : names.error().message();
  if (!names.ok()) return;
  for (const auto& name : *names) {
    if (name.starts_with('.') || nodes_.contains(name)) continue;
    const std::string directory = platform::JoinPath(options_.spool_directory, name);
    const auto info = fs_.Stat(directory);
    if (!info.ok() || !info->is_directory) continue;
    Node& node = nodes_[name];
    node.last_record_ms = ToUnixMillis(clock_.Now());
  }
  for (auto& [name, node] : nodes_) {
    if (node.reader != nullptr) continue;
    auto reader = SpoolReader::Open(fs_.Host(platform::JoinPath(options_.spool_directory, name)));
    if (reader.ok()) node.reader = std::move(*reader);
    SetProblem(&node, reader.ok() ? "" : reader.error().message());
  }
}

Aggregator::PassReport Aggregator::Pass() {
  PassReport report;
  report.drained = true;
  FindNodes();
  for (auto& [name, node] : nodes_) {
    if (node.reader == nullptr) continue;
    ++report.nodes;
    auto drained = uplink_.Drain(
        *node.reader, [this, n = &node](data::v1::Record* record) { return Inspect(record, n); });
    if (!drained.ok()) {
      report.drained = false;
      // The uplink's own trouble has its own line.
      if (!IsOfEverySource(drained.error().code())) SetProblem(&node, drained.error().message());
      continue;
    }
    SetProblem(&node, "");
    report.delivered += drained->delivered;
    report.drained = report.drained && drained->drained;
    report.held = report.held || drained->held;
    node.lost = node.reader->stats().lost_records;
  }
  delivered_since_log_ += report.delivered;
  if (report.drained && delivered_since_log_ > 0 &&
      (!logged_ || clock_.Mono() - last_log_ >= options_.log_every)) {
    log::Info("sampler aggregator drained",
              {{"nodes", report.nodes}, {"records", delivered_since_log_}});
    logged_ = true;
    last_log_ = clock_.Mono();
    delivered_since_log_ = 0;
  }
  const int64_t now = ToUnixMillis(clock_.Now());
  std::vector<data::v1::CollectorHealth> table;
  auto& whole = table.emplace_back();
  whole.set_part("aggregator");
  whole.set_status(directory_problem_.empty() ? "ok" : "degraded");
  whole.set_reason(ToUtf8(directory_problem_));
  for (const auto& [name, node] : nodes_) {
    data::v1::CollectorHealth line;
    line.set_node(ToUtf8(name));
    line.set_part("spool");
    line.set_dropped_records(node.lost);
    std::string reason = node.problem;
    if (reason.empty() && now - node.last_record_ms > options_.silent_after.count())
      reason = "the node's sampler has written nothing for " +
               FormatDuration(Millis((now - node.last_record_ms) / 1000 * 1000));
    line.set_status(reason.empty() ? "ok" : "degraded");
    line.set_reason(ToUtf8(reason));
    line.set_since_ms(node.problem.empty() ? node.last_record_ms : node.problem_since_ms);
    table.push_back(line);
    for (const auto& told : node.told)
      if (told.part() != "spool" || told.status() != "ok") table.push_back(told);
  }
  const std::lock_guard lock(mutex_);
  health_ = std::move(table);
  return report;
}

std::vector<data::v1::CollectorHealth> Aggregator::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

}  // namespace expanse::collect::uplink
