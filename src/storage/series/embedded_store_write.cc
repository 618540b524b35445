// SPDX-License-Identifier: Apache-2.0
// The write side of the embedded store: group commit, rotation, adoption.
#include "base/log.h"
#include "storage/series/embedded_store_impl.h"

namespace expanse::storage {
namespace {

// Keeps a frame below kMaxFrameBytes with room to spare.
constexpr size_t kMaxBatchSamples = 1'000'000;
// One write of the log; a larger queue is written in several.
constexpr size_t kMaxGroupSamples = 4'000'000;
// Heads that wait for sealing; with the active one they bound the memory.
constexpr size_t kMaxFrozen = 3;
constexpr auto kSealWait = std::chrono::seconds(30);

size_t SampleCount(std::span<const SeriesBlock> batch) {
  size_t samples = 0;
  for (const SeriesBlock& block : batch) samples += block.values.size();
  return samples;
}

}  // namespace

Status EmbeddedStore::Append(std::span<const SeriesBlock> batch, std::string_view batch_id) {
  for (const SeriesBlock& block : batch)
    if (auto valid = ValidateBlock(block); !valid.ok())
      return valid.error().WithContext("batch " + std::string(batch_id));
  if (SampleCount(batch) > kMaxBatchSamples)
    return Error(Code::kInvalidArgument, "batch " + std::string(batch_id) + " has more than " +
                                             std::to_string(kMaxBatchSamples) +
                                             " samples; send it in parts");
  Request request{batch, false, {}};
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(&request);
  }
  // Whoever gets the lock writes for all that wait; most callers find their request done.
  const std::lock_guard writer(writer_mutex_);
  while (!request.done) {
    std::vector<Request*> group;
    {
      const std::lock_guard lock(queue_mutex_);
      size_t taken = 0;
      size_t samples = 0;
      for (; taken < queue_.size() && samples < kMaxGroupSamples; ++taken)
        samples += SampleCount(queue_[taken]->batch);
      group.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(taken));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    const Status status = WriteGroup(group);
    for (Request* waiting : group) {
      waiting->status = status;
      waiting->done = true;
    }
  }
  if (!request.status.ok())
    return request.status.error().WithContext("batch " + std::string(batch_id));
  return {};
}

void EmbeddedStore::EncodeGroup(const std::vector<Request*>& group, GroupSeries& series) {
  // New series enter the head before their samples are durable: without samples no reader sees
  // them.
  const std::unique_lock state(state_mutex_);
  for (const Request* request : group) {
    SamplesRecord samples;
    auto& found = series.of_request.emplace_back();
    for (const SeriesBlock& block : request->batch) {
      HeadSeries& one = active_->Find(block.key);
      found.push_back(&one);
      if (block.values.empty()) continue;
      if (!one.defined) {
        // Twice, so that one damaged frame does not take every sample of the series with it.
        const std::string definition = DefinitionRecord(one.id, block.key);
        wal_.Add(definition);
        wal_.Add(definition);
        one.defined = true;
        series.defined.push_back(&one);
      }
      samples.Add(one.id, block.timestamps_ms, block.values);
    }
    wal_.Add(samples.bytes());
  }
}

Status EmbeddedStore::WriteGroup(const std::vector<Request*>& group) {
  EXPANSE_CHECK_OK(MakeRoom());
  GroupSeries series;
  EncodeGroup(group, series);
  ++fsyncs_;
  if (auto committed = wal_.Commit(); !committed.ok()) {
    log::Error("storage.series_log_failed", {{"error", committed.error().message()}});
    {
      const std::unique_lock state(state_mutex_);
      for (HeadSeries* one : series.defined) one->defined = false;
    }
    // What was acknowledged of this head is sealed from memory; its log stays until then.
    if (wal_.broken()) EXPANSE_CHECK_OK(Rotate());
    return committed;
  }
  wal_bytes_ = wal_.size();
  const std::unique_lock state(state_mutex_);
  for (size_t r = 0; r < group.size(); ++r) {
    const auto batch = group[r]->batch;
    for (size_t b = 0; b < batch.size(); ++b)
      active_->Add(*series.of_request[r][b], batch[b].timestamps_ms, batch[b].values);
    appended_samples_ += static_cast<int64_t>(SampleCount(batch));
    ++appended_batches_;
  }
  if (!head_since_.has_value() && active_->samples() > 0) head_since_ = clock_.Mono();
  return {};
}

bool EmbeddedStore::HeadIsDue() const {
  return active_->samples() >= options_.head_samples || wal_.size() >= options_.wal_bytes ||
         (head_since_.has_value() && clock_.Mono() - *head_since_ >= options_.head_age);
}

Status EmbeddedStore::MakeRoom() {
  if (active_ == nullptr) return BeginSegment();
  if (!HeadIsDue()) return {};
  {
    std::unique_lock lock(background_mutex_);
    const uint64_t failures = seal_failures_;
    const auto has_room = [&] {
      const std::shared_lock state(state_mutex_);
      return frozen_.size() < kMaxFrozen || seal_failures_ != failures;
    };
    sealed_some_.wait_for(lock, kSealWait, has_room);
    const std::shared_lock state(state_mutex_);
    if (frozen_.size() >= kMaxFrozen)
      return Error(Code::kResourceExhausted,
                   "samples cannot be sealed as fast as they come" +
                       (background_error_.empty() ? "" : ": " + background_error_));
  }
  return Rotate();
}

// A head and its log are replaced together.
Status EmbeddedStore::BeginSegment() {
  const uint64_t sequence = next_sequence_++;
  EXPANSE_TRY(wal_, FrameLogWriter::Create(files_.WalPath(sequence)));
  const std::unique_lock state(state_mutex_);
  active_ = std::make_shared<Head>(sequence);
  wal_bytes_ = 0;
  head_since_.reset();
  return {};
}

Status EmbeddedStore::Rotate() {
  bool keep = false;
  {
    const std::unique_lock state(state_mutex_);
    keep = active_ != nullptr && active_->samples() > 0;
    if (keep) frozen_.push_back(std::move(active_));
    active_ = nullptr;
  }
  if (keep) {
    const std::lock_guard lock(background_mutex_);
    work_ = true;
    background_wake_.notify_one();
  } else {
    (void)RemoveFile(wal_.path());  // it holds nothing acknowledged; recovery would find it empty
  }
  return BeginSegment();
}

Status EmbeddedStore::Reassign(const OrgId& org, const ExecutionId& from, const ExecutionId& to) {
  const std::lock_guard writer(writer_mutex_);
  const std::unique_lock state(state_mutex_);
  const Adoptions& adoptions = facts_->adoptions();
  const ExecutionId owner = adoptions.Resolve(org, from);
  if (owner != from && owner == adoptions.Resolve(org, to)) return {};  // adopted already
  return facts_->Adopt(org, from, to);
}

Status EmbeddedStore::DropBefore(int64_t time_ms) {
  {
    const std::lock_guard writer(writer_mutex_);
    const std::unique_lock state(state_mutex_);
    EXPANSE_CHECK_OK(facts_->DropBefore(time_ms));
  }
  DropOldFiles();
  return {};
}

Status EmbeddedStore::Flush() {
  uint64_t sequence = 0;
  {
    const std::lock_guard writer(writer_mutex_);
    if (active_ != nullptr && active_->samples() > 0) EXPANSE_CHECK_OK(Rotate());
    sequence = next_sequence_;
  }
  std::unique_lock lock(background_mutex_);
  const uint64_t failures = seal_failures_;
  work_ = true;
  background_wake_.notify_one();
  sealed_some_.wait(lock, [&] {
    if (seal_failures_ != failures) return true;
    const std::shared_lock state(state_mutex_);
    return frozen_.empty() || frozen_.front()->sequence() >= sequence;
  });
  if (seal_failures_ == failures) return {};
  return Error(Code::kUnavailable, "samples could not be sealed: " + background_error_);
}

}  // namespace expanse::storage
