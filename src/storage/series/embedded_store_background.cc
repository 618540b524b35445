// SPDX-License-Identifier: Apache-2.0
// What the embedded store does by itself: sealing heads, merging files, retention; and backup,
// which has to keep clear of it.
#include <algorithm>
#include <bit>
#include <cerrno>

#include <unistd.h>

#include "base/log.h"
#include "platform/fs/fs.h"
#include "storage/series/embedded_store_impl.h"

namespace expanse::storage {
namespace {

// How often the age of the head is looked at, and a failed sealing tried again.
constexpr auto kTick = std::chrono::seconds(5);

// Files of one size class become one: by the number of heads in them, in powers of merge_files.
int TierOf(const SealedFile& file, size_t merge_files) {
  uint64_t heads = file.last_sequence() - file.first_sequence() + 1;
  int tier = 0;
  for (; heads >= merge_files; heads /= merge_files) ++tier;
  return tier;
}

}  // namespace

void EmbeddedStore::BackgroundLoop() {
  std::unique_lock lock(background_mutex_);
  while (true) {
    background_wake_.wait_for(lock, kTick, [this] { return stop_ || work_; });
    if (stop_) return;
    work_ = false;
    lock.unlock();
    RotateWhenOld();
    while (SealOne()) {
    }
    while (MergeOnce()) {
    }
    lock.lock();
  }
}

// A head that nothing is appended to any more is sealed too.
void EmbeddedStore::RotateWhenOld() {
  // A writer that holds the lock may be waiting for this thread; it looks at the age itself.
  const std::unique_lock writer(writer_mutex_, std::try_to_lock);
  if (!writer.owns_lock() || active_ == nullptr || active_->samples() == 0 || !HeadIsDue()) return;
  {
    const std::shared_lock state(state_mutex_);
    if (!frozen_.empty()) return;  // sealing is behind already
  }
  if (auto rotated = Rotate(); !rotated.ok()) SetBackgroundError(rotated.error().message());
}

void EmbeddedStore::SetBackgroundError(const std::string& error) {
  const std::lock_guard lock(background_mutex_);
  if (!error.empty() && error != background_error_)
    log::Error("storage.series_seal_failed", {{"error", error}});
  background_error_ = error;
}

// True when a head was sealed and there may be another.
bool EmbeddedStore::SealOne() {
  {
    const std::lock_guard lock(background_mutex_);
    if (stop_) return false;
  }
  std::shared_ptr<const Head> head;
  Adoptions adoptions;
  int64_t keep_from_ms = 0;
  {
    const std::shared_lock state(state_mutex_);
    if (!frozen_.empty()) head = frozen_.front();
    adoptions = facts_->adoptions();
    keep_from_ms = facts_->keep_from_ms();
  }
  if (head == nullptr) {
    sealed_some_.notify_all();
    return false;
  }
  auto sealed = files_.Seal(*head, adoptions, keep_from_ms);
  if (!sealed.ok()) {
    SetBackgroundError(sealed.error().message());
    const std::lock_guard lock(background_mutex_);
    ++seal_failures_;
    sealed_some_.notify_all();
    return false;
  }
  {
    const std::unique_lock state(state_mutex_);
    if (*sealed != nullptr) sealed_.push_back(*sealed);
    frozen_.pop_front();
  }
  // Only now: the sealed file and its name are on the disk.
  if (auto removed = RemoveFile(files_.WalPath(head->sequence())); !removed.ok())
    log::Warning("storage.series_log_not_removed", {{"error", removed.error().message()}});
  SetBackgroundError("");
  {
    const std::lock_guard lock(
        background_mutex_);  // a waiter is either before its check or waiting
  }
  sealed_some_.notify_all();
  return true;
}

// The oldest run of merge_files neighbours of one tier, or nothing.
SealedFiles EmbeddedStore::MergeCandidates() const {
  const std::shared_lock state(state_mutex_);
  const size_t want = options_.merge_files;
  if (want < 2) return {};
  const auto fits = [this](const SealedFiles& run) {
    int64_t bytes = 0;
    int64_t first = kMaxTimestampMs;
    int64_t last = 0;
    for (const auto& file : run) {
      bytes += file->bytes();
      first = std::min(first, file->first_ms());
      last = std::max(last, file->last_ms());
      if (unmergeable_.contains(file->first_sequence())) return false;
    }
    const uint64_t begin = run.front()->first_sequence();
    const uint64_t end = run.back()->last_sequence();
    return bytes <= options_.max_file_bytes && last - first <= options_.max_file_span.count() &&
           std::none_of(unreadable_.begin(), unreadable_.end(), [&](const SequenceRange& hole) {
             return begin < hole.first && hole.last < end;
           });
  };
  for (size_t i = 0; i + want <= sealed_.size(); ++i) {
    const SealedFiles run(sealed_.begin() + static_cast<std::ptrdiff_t>(i),
                          sealed_.begin() + static_cast<std::ptrdiff_t>(i + want));
    const int tier = TierOf(*run.front(), want);
    if (std::all_of(run.begin(), run.end(),
                    [&](const auto& file) { return TierOf(*file, want) == tier; }) &&
        fits(run))
      return run;
  }
  return {};
}

// True when files were merged and more may follow.
bool EmbeddedStore::MergeOnce() {
  {
    const std::lock_guard lock(background_mutex_);
    if (stop_) return false;
  }
  const std::lock_guard merging(merge_mutex_);
  const SealedFiles run = MergeCandidates();
  if (run.empty()) return false;
  Adoptions adoptions;
  int64_t keep_from_ms = 0;
  {
    const std::shared_lock state(state_mutex_);
    adoptions = facts_->adoptions();
    keep_from_ms = facts_->keep_from_ms();
  }
  auto merged = files_.Merge(run, adoptions, keep_from_ms);
  if (!merged.ok()) {
    log::Error("storage.series_merge_failed", {{"error", merged.error().message()}});
    if (merged.error().code() == Code::kDataLoss) {
      ReportDamage({merged.error().message()});
      // The readable parts stay readable where they are; all of the run is left alone.
      const std::unique_lock state(state_mutex_);
      for (const auto& file : run) unmergeable_.insert(file->first_sequence());
      return true;
    }
    return false;
  }
  {
    const std::unique_lock state(state_mutex_);
    const auto at = std::find(sealed_.begin(), sealed_.end(), run.front());
    const auto after = sealed_.erase(at, at + static_cast<std::ptrdiff_t>(run.size()));
    if (*merged != nullptr) sealed_.insert(after, *merged);
  }
  for (const auto& file : run)
    if (auto removed = RemoveFile(file->path()); !removed.ok())
      log::Warning("storage.series_file_not_removed", {{"error", removed.error().message()}});
  return true;
}

void EmbeddedStore::DropOldFiles() {
  const std::lock_guard merging(merge_mutex_);
  SealedFiles dropped;
  {
    const std::unique_lock state(state_mutex_);
    const int64_t keep_from_ms = facts_->keep_from_ms();
    std::erase_if(sealed_, [&](const auto& file) {
      if (file->last_ms() >= keep_from_ms) return false;
      dropped.push_back(file);
      return true;
    });
  }
  for (const auto& file : dropped)
    if (auto removed = RemoveFile(file->path()); !removed.ok())
      log::Warning("storage.series_file_not_removed", {{"error", removed.error().message()}});
}

Status EmbeddedStore::BackupTo(const std::string& directory) {
  const platform::Fs fs;
  if (fs.Exists(directory))
    return Error(Code::kAlreadyExists, directory + " exists already; name a new directory");
  EXPANSE_CHECK_OK(Flush());
  const StoreFiles target(directory);
  EXPANSE_CHECK_OK(target.MakeDirectories());
  // Sealed files never change: a second name is a copy, except onto another file system.
  const std::lock_guard merging(merge_mutex_);
  SealedFiles sealed;
  Adoptions adoptions;
  int64_t keep_from_ms = 0;
  {
    const std::shared_lock state(state_mutex_);
    sealed = sealed_;
    adoptions = facts_->adoptions();
    keep_from_ms = facts_->keep_from_ms();
  }
  for (const auto& file : sealed) {
    const auto path = target.SealedPath({file->first_sequence(), file->last_sequence()});
    if (link(file->path().c_str(), path.c_str()) == 0) continue;
    if (errno != EXDEV && errno != EPERM && errno != EMLINK)
      return FileError("cannot link " + file->path() + " as", path, errno);
    EXPANSE_CHECK_OK(CopyFile(file->path(), path));
  }
  EXPANSE_CHECK_OK(SyncDirectory(directory + "/sealed"));
  EXPANSE_TRY(auto facts, StoreFacts::Open(target.FactsPath()));
  for (const auto& link : adoptions.Links())
    EXPANSE_CHECK_OK(facts.Adopt(link.org, link.from, link.to));
  return facts.DropBefore(keep_from_ms);
}

}  // namespace expanse::storage
