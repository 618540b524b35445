// SPDX-License-Identifier: Apache-2.0
// The class behind OpenEmbeddedStore; included by embedded_store*.cc only.
//
// Lock order: merge_mutex_, writer_mutex_, background_mutex_, state_mutex_; queue_mutex_ is a leaf.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "storage/file.h"
#include "storage/series/embedded_store.h"
#include "storage/series/store_files.h"
#include "storage/series/store_view.h"

namespace expanse::storage {

class EmbeddedStore final : public SeriesStore {
 public:
  explicit EmbeddedStore(EmbeddedStoreOptions options);
  ~EmbeddedStore() override;

  /// Recovery: sealed files, then logs; a new log is begun and the background thread started.
  Status Start();

  Status Append(std::span<const SeriesBlock> batch, std::string_view batch_id) override;
  Result<SeriesAnswer<BucketSeries>> Query(const SeriesSelector& selector,
                                           const BucketQuery& query) override;
  Result<SeriesAnswer<RawSeries>> Read(const SeriesSelector& selector, TimeRange range,
                                       size_t max_samples) override;
  Result<std::vector<SeriesKey>> ListSeries(const SeriesSelector& selector,
                                            TimeRange range) override;
  Result<SeriesAnswer<SeriesSummary>> Summarise(const SeriesSelector& selector,
                                                TimeRange range) override;
  Status Reassign(const OrgId& org, const ExecutionId& from, const ExecutionId& to) override;
  Status DropBefore(int64_t time_ms) override;
  Status Flush() override;
  Status BackupTo(const std::string& directory) override;
  SeriesStoreStats Stats() const override;

 private:
  struct Request {
    std::span<const SeriesBlock> batch;
    bool done = false;
    Status status;
  };

  struct GroupSeries {
    std::vector<std::vector<HeadSeries*>> of_request;  // one for each block of each batch
    std::vector<HeadSeries*> defined;                  // by this group, so far
  };

  // Writing (writer_mutex_ held).
  Status WriteGroup(const std::vector<Request*>& group);
  void EncodeGroup(const std::vector<Request*>& group, GroupSeries& series);
  Status MakeRoom();
  Status BeginSegment();
  bool HeadIsDue() const;
  Status Rotate();

  // Reading.
  struct Collected {
    SeriesPieces pieces;
    std::vector<std::string> damage;
  };
  /// Range is narrowed to what retention keeps.
  Result<Collected> Collect(const SeriesSelector& selector, TimeRange& range);
  void ReportDamage(const std::vector<std::string>& damage);
  template <typename T, typename Make>
  Result<SeriesAnswer<T>> Answer(const SeriesSelector& selector, TimeRange range, Make make);

  // Background thread.
  void BackgroundLoop();
  void RotateWhenOld();
  bool SealOne();
  bool MergeOnce();
  SealedFiles MergeCandidates() const;
  void DropOldFiles();
  void SetBackgroundError(const std::string& error);

  // Recovery.
  Status TakeLock();
  Status ReplayWal(uint64_t sequence);

  EmbeddedStoreOptions options_;
  const platform::Clock& clock_;
  StoreFiles files_;
  int lock_fd_ = -1;

  // Callers put their request here; whoever holds writer_mutex_ writes all that wait.
  std::mutex queue_mutex_;
  std::vector<Request*> queue_;

  std::mutex writer_mutex_;
  FrameLogWriter wal_;
  uint64_t next_sequence_ = 1;
  std::optional<MonoTime> head_since_;

  // What readers see. The active head is changed under the exclusive lock only.
  mutable std::shared_mutex state_mutex_;
  std::shared_ptr<Head> active_;
  std::deque<std::shared_ptr<const Head>> frozen_;  // oldest first
  SealedFiles sealed_;                              // by sequence
  std::vector<SequenceRange> unreadable_;           // no merge goes across these
  std::set<uint64_t> unmergeable_;                  // first sequences of files with damage
  std::vector<std::string> standing_damage_;        // unreadable files, named in every answer
  std::set<std::string> known_damage_;              // logged and counted once
  std::optional<StoreFacts> facts_;

  std::mutex merge_mutex_;  // held while sealed files are replaced or removed
  mutable std::mutex background_mutex_;
  std::condition_variable background_wake_;
  std::condition_variable sealed_some_;
  bool stop_ = false;
  bool work_ = false;
  uint64_t seal_failures_ = 0;
  std::string background_error_;
  std::thread background_;

  std::atomic<int64_t> appended_samples_ = 0;
  std::atomic<int64_t> appended_batches_ = 0;
  std::atomic<int64_t> fsyncs_ = 0;
  std::atomic<int64_t> damaged_parts_ = 0;
  std::atomic<int64_t> wal_bytes_ = 0;  // of the active log
};

}  // namespace expanse::storage
