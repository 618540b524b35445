// SPDX-License-Identifier: Apache-2.0
// Opening, recovery and closing of the embedded store.
#include "storage/series/embedded_store.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "storage/series/embedded_store_impl.h"

namespace expanse::storage {
namespace {

const platform::Clock& SystemClockInstance() {
  static const platform::SystemClock clock;
  return clock;
}

}  // namespace

EmbeddedStore::EmbeddedStore(EmbeddedStoreOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : SystemClockInstance()),
      files_(options_.directory) {}

EmbeddedStore::~EmbeddedStore() {
  {
    const std::lock_guard lock(background_mutex_);
    stop_ = true;
  }
  background_wake_.notify_all();
  if (background_.joinable()) background_.join();
  if (lock_fd_ >= 0) close(lock_fd_);
}

Status EmbeddedStore::TakeLock() {
  lock_fd_ = open(files_.LockPath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return FileError("cannot open", files_.LockPath(), errno);
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return {};
  return Error(Code::kFailedPrecondition, options_.directory +
                                              " is open in another process; a series store has one "
                                              "process at a time");
}

Status EmbeddedStore::ReplayWal(uint64_t sequence) {
  auto head = std::make_shared<Head>(sequence);
  const std::string path = files_.WalPath(sequence);
  EXPANSE_TRY(const auto damage,
              ReadFrameLog(path, [&](std::string_view payload) { head->Replay(payload); }));
  if (damage.tail_bytes > 0)
    log::Warning("storage.series_log_tail_dropped",
                 {{"file", path},
                  {"bytes", damage.tail_bytes},
                  {"why", "a write that was cut off, never acknowledged, or a damaged end"}});
  if (damage.skipped_bytes > 0 || damage.lost_frames > 0 || head->lost_samples() > 0) {
    damaged_parts_ += std::max<int64_t>(1, damage.lost_frames);
    log::Error("storage.series_log_damaged", {{"file", path},
                                              {"lost_frames", damage.lost_frames},
                                              {"skipped_bytes", damage.skipped_bytes},
                                              {"samples_without_series", head->lost_samples()}});
  }
  if (head->samples() == 0) return RemoveFile(path);
  frozen_.push_back(std::move(head));
  return {};
}

Status EmbeddedStore::Start() {
  EXPANSE_CHECK_OK(files_.MakeDirectories());
  EXPANSE_CHECK_OK(TakeLock());
  EXPANSE_TRY(auto facts, StoreFacts::Open(files_.FactsPath()));
  damaged_parts_ += facts.damaged_parts();
  facts_ = std::move(facts);
  EXPANSE_TRY(auto found, files_.Load());
  sealed_ = std::move(found.sealed);
  unreadable_ = std::move(found.unreadable);
  standing_damage_ = std::move(found.damage);
  for (const auto& what : standing_damage_) {
    ++damaged_parts_;
    log::Error("storage.series_file_unreadable", {{"what", what}});
  }
  next_sequence_ = found.last_sequence + 1;
  {
    const std::lock_guard writer(writer_mutex_);
    EXPANSE_CHECK_OK(BeginSegment());
  }
  for (const uint64_t sequence : found.wal) EXPANSE_CHECK_OK(ReplayWal(sequence));
  work_ = true;
  background_ = std::thread([this] { BackgroundLoop(); });
  return {};
}

Result<std::unique_ptr<SeriesStore>> OpenEmbeddedStore(EmbeddedStoreOptions options) {
  auto store = std::make_unique<EmbeddedStore>(std::move(options));
  EXPANSE_CHECK_OK(store->Start());
  return std::unique_ptr<SeriesStore>(std::move(store));
}

}  // namespace expanse::storage
