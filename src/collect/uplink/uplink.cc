// SPDX-License-Identifier: Apache-2.0
#include "collect/uplink/uplink.h"

#include <algorithm>

#include "base/log.h"

namespace expanse::collect::uplink {

Uplink::Uplink(rpc::Channel& channel, Secret credential, const platform::Clock& clock,
               UplinkOptions options)
    : client_(channel), credential_(std::move(credential)), clock_(clock), options_(options) {}

void Uplink::NoteFailure(const Error& error) {
  backoff_ = backoff_.count() == 0 ? options_.first_backoff
                                   : std::min(backoff_ * 2, options_.most_backoff);
  not_before_ = clock_.Mono() + backoff_;
  const std::lock_guard lock(mutex_);
  if (health_.status != "degraded") {
    health_.status = "degraded";
    health_.since_ms = ToUnixMillis(clock_.Now());
    log::Warning("uplink.not_delivered", {{"reason", error.message()}});
  }
  health_.reason = error.message();
}

void Uplink::NoteResponse(const data::v1::PushResponse& response, uint64_t accepted) {
  backoff_ = Millis(0);
  for (const auto& rejected : response.rejected())
    log::Warning(
        "uplink.record_rejected",
        {{"sequence", static_cast<uint64_t>(rejected.sequence())}, {"reason", rejected.reason()}});
  const std::lock_guard lock(mutex_);
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

Result<data::v1::PushResponse> Uplink::Push(const SpoolBatch& batch) {
  data::v1::PushRequest request;
  request.set_source_id(batch.source_id);
  request.set_first_sequence(batch.first_sequence);
  request.set_dropped_records(batch.dropped_records);
  request.set_sender_clock_ms(ToUnixMillis(clock_.Now()));
  for (const auto& record : batch.records) *request.add_records() = record;
  return client_.Push(credential_.Reveal(), request, Deadline::In(options_.call_timeout));
}

Status Uplink::SendBatch(SpoolReader& reader, const SpoolBatch& batch, DrainReport* report) {
  auto response = Push(batch);
  if (!response.ok()) {
    const Code code = response.error().code();
    // "Too much" is also what a full disk over there may be called: then each single record is
    // refused as well, and none may be given up for it.
    const bool too_much = code == Code::kInvalidArgument || code == Code::kResourceExhausted ||
                          code == Code::kOutOfRange;
    if (!too_much) return response.error();
    if (batch.records.size() == 1) {
      if (code == Code::kResourceExhausted &&
          batch.records[0].ByteSizeLong() <= options_.most_record_bytes)
        return response.error();
      // Whatever it is, the data plane will never take it; what follows must not wait for it.
      log::Error("uplink.record_refused", {{"source", batch.source_id},
                                           {"sequence", batch.first_sequence},
                                           {"reason", response.error().message()}});
      data::v1::PushResponse refused;
      refused.add_rejected()->set_sequence(batch.first_sequence);
      NoteResponse(refused, 0);
      return reader.Acknowledge(batch.source_id, batch.first_sequence);
    }
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
  const uint64_t through =
      std::min<uint64_t>(response->acknowledged_through(), batch.last_sequence());
  if (through < batch.first_sequence)
    return Error(Code::kUnavailable, "the data plane acknowledged nothing of a batch");
  const uint64_t accepted = through - batch.first_sequence + 1;
  EXPANSE_CHECK_OK(reader.Acknowledge(batch.source_id, through));
  NoteResponse(*response, accepted);
  report->delivered += accepted;
  if (through < batch.last_sequence())
    return Error(Code::kUnavailable, "the data plane acknowledged only a part of a batch");
  return {};
}

Result<DrainReport> Uplink::Drain(SpoolReader& reader, const Inspector& inspect) {
  DrainReport report;
  if (clock_.Mono() < not_before_)
    return Error(Code::kUnavailable, "waiting before the data plane is tried again");
  while (true) {
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
      const Status sent = SendBatch(reader, *batch, &report);
      if (!sent.ok()) {
        reader.Rewind();
        NoteFailure(sent.error());
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
  return health_;
}

}  // namespace expanse::collect::uplink
