// SPDX-License-Identifier: Apache-2.0
#include "collect/uplink/uplink.h"

#include <algorithm>

#include "base/log.h"

namespace expanse::collect::uplink {
bool IsOfEverySource(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kCanceled:
    case Code::kUnauthenticated:
    case Code::kFailedPrecondition:
    case Code::kUnimplemented:
      return true;
    default:
      return false;
  }
}

Millis Uplink::Backoff::Grow(const UplinkOptions& options) {
  wait = wait.count() == 0 ? options.first_backoff : std::min(wait * 2, options.most_backoff);
  return wait;
}

Uplink::Uplink(rpc::Channel& channel, Secret credential, const platform::Clock& clock,
               UplinkOptions options)
    : client_(channel), credential_(std::move(credential)), clock_(clock), options_(options) {}

void Uplink::NoteFailure(const Error& error) {
  const Millis wait = backoff_.Grow(options_);
  not_before_ = clock_.Mono() + wait;
  const std::lock_guard lock(mutex_);
  if (health_.status != "degraded") {
    health_.status = "degraded";
    health_.since_ms = ToUnixMillis(clock_.Now());
    log::Warning("uplink.not_delivered", {{"reason", error.message()}});
  }
  health_.reason = error.message();
}

Error Uplink::NoteStuck(const SpoolBatch& batch, const Error& error) {
  const std::lock_guard lock(mutex_);
  auto [it, added] = stuck_.try_emplace(batch.source_id);
  Stuck& stuck = it->second;
  if (added) {
    stuck.since_ms = ToUnixMillis(clock_.Now());
    log::Warning("uplink.source_stuck", {{"source", batch.source_id},
                                         {"sequence", batch.first_sequence},
                                         {"reason", error.message()}});
  }
  // Whoever asks tells it from what every source meets by its code.
  stuck.error = IsOfEverySource(error.code()) ? Error(Code::kInternal, error.message()) : error;
  stuck.not_before = clock_.Mono() + stuck.backoff.Grow(options_);
  return stuck.error;
}

Status Uplink::WaitsStill(const std::string& source_id) const {
  const std::lock_guard lock(mutex_);
  const auto it = stuck_.find(source_id);
  if (it == stuck_.end() || clock_.Mono() >= it->second.not_before) return {};
  return it->second.error;
}

void Uplink::NoteResponse(const std::string& source_id, const data::v1::PushResponse& response,
                          uint64_t accepted) {
  backoff_ = Backoff{};
  for (const auto& rejected : response.rejected())
    log::Warning(
        "uplink.record_rejected",
        {{"sequence", static_cast<uint64_t>(rejected.sequence())}, {"reason", rejected.reason()}});
  const std::lock_guard lock(mutex_);
  if (stuck_.erase(source_id) > 0) log::Info("uplink.source_goes_on", {{"source", source_id}});
  if (health_.status != "ok") {
    health_.since_ms = ToUnixMillis(clock_.Now());
    log::Info("uplink.delivers_again", {{"after", health_.reason}});
  }
  health_.status = "ok";
  health_.reason.clear();
  health_.delivered += accepted;
  health_.rejected += static_cast<uint64_t>(response.rejected_size());
  health_.gaps += response.missing_before();
}

void Uplink::StopWithin(Millis limit) {
  const std::lock_guard lock(mutex_);
  stop_at_ = clock_.Mono() + limit;
}

Millis Uplink::Remaining() const {
  const std::lock_guard lock(mutex_);
  if (!stop_at_) return Millis::max();
  return std::max(Millis(0), std::chrono::duration_cast<Millis>(*stop_at_ - clock_.Mono()));
}

Result<data::v1::PushResponse> Uplink::Push(const SpoolBatch& batch) {
  data::v1::PushRequest request;
  request.set_source_id(batch.source_id);
  request.set_first_sequence(batch.first_sequence);
  request.set_dropped_records(batch.dropped_records);
  request.set_sender_clock_ms(ToUnixMillis(clock_.Now()));
  for (const auto& record : batch.records) *request.add_records() = record;
  const Millis timeout = std::min(options_.call_timeout, Remaining());
  return client_.Push(credential_.Reveal(), request, Deadline::In(timeout));
}

Status Uplink::SendHalves(SpoolReader& reader, const SpoolBatch& batch, DrainReport* report) {
  SpoolBatch half = batch;
  const size_t middle = batch.records.size() / 2;
  half.records.resize(middle);
  EXPANSE_CHECK_OK(SendBatch(reader, half, report));
  half = batch;
  half.first_sequence += middle;
  half.records.erase(half.records.begin(),
                     half.records.begin() + static_cast<std::ptrdiff_t>(middle));
  return SendBatch(reader, half, report);
}

Status Uplink::SendBatch(SpoolReader& reader, const SpoolBatch& batch, DrainReport* report) {
  auto response = Push(batch);
  if (!response.ok()) {
    // A refused call says nothing of its records, whatever its code: a proxy, a wrong URL or a
    // full disk over there may have refused it. Only an answer of Push names records that the data
    // plane will never take.
    if (IsOfEverySource(response.error().code())) {
      NoteFailure(response.error());
      return response.error();
    }
    if (response.error().code() == Code::kResourceExhausted && batch.records.size() > 1)
      return SendHalves(reader, batch, report);  // perhaps too large for something on the way
    return NoteStuck(batch, response.error());
  }
  const uint64_t through =
      std::min<uint64_t>(response->acknowledged_through(), batch.last_sequence());
  if (through < batch.first_sequence)
    return NoteStuck(
        batch, Error(Code::kInternal, "the data plane acknowledged nothing of a batch of source " +
                                          batch.source_id));
  const uint64_t accepted = through - batch.first_sequence + 1;
  const Status acknowledged = reader.Acknowledge(batch.source_id, through);
  if (!acknowledged.ok()) return NoteStuck(batch, acknowledged.error());
  NoteResponse(batch.source_id, *response, accepted);
  report->delivered += accepted;
  if (through < batch.last_sequence())
    return NoteStuck(batch, Error(Code::kInternal,
                                  "the data plane acknowledged only a part of a batch of source " +
                                      batch.source_id));
  return {};
}

Result<DrainReport> Uplink::Drain(SpoolReader& reader, const Inspector& inspect) {
  DrainReport report;
  if (clock_.Mono() < not_before_)
    return Error(Code::kUnavailable, "waiting before the data plane is tried again");
  while (true) {
    if (Remaining() == Millis(0)) return report;
    auto batch = reader.Next(options_.batch_records, options_.batch_bytes);
    if (!batch.ok()) return batch.error();
    if (batch->empty()) {
      report.drained = !report.held;
      return report;
    }
    size_t ready = 0;
    while (ready < batch->records.size() &&
           (!inspect || inspect(&batch->records[ready]) == Passage::kSend))
      ++ready;
    report.held = ready < batch->records.size();
    batch->records.resize(ready);
    if (ready > 0) {
      Status sent = WaitsStill(batch->source_id);
      if (sent.ok()) sent = SendBatch(reader, *batch, &report);
      if (!sent.ok()) {
        reader.Rewind();
        return sent.error();
      }
    }
    if (report.held) {
      reader.Rewind();
      return report;
    }
  }
}

UplinkHealth Uplink::health() const {
  const std::lock_guard lock(mutex_);
  UplinkHealth health = health_;
  if (health.status == "ok" && !stuck_.empty()) {
    const Stuck& first = stuck_.begin()->second;
    health.status = "degraded";
    health.reason = first.error.message();
    health.since_ms = first.since_ms;
  }
  return health;
}

}  // namespace expanse::collect::uplink
