// SPDX-License-Identifier: Apache-2.0
// Intake. What is acknowledged is durable: contents and samples first, each fsynced, then one SQL
// transaction that also moves the source's sequence. A crash between the two leaves bytes that the
// resent batch writes again under the same names; nothing is doubled.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "data_plane/ingest/batch.h"
#include "data_plane/ingest/ingest_counters.h"
#include "data_plane/ingest/sequence.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "platform/clock/clock.h"
#include "storage/blob/blob_store.h"
#include "storage/relational/database.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

class IngestService final : public data::v1::IngestService {
 public:
  /// Everything outlives the service. new_id mints execution ids. counters may be null.
  IngestService(storage::Database& database, storage::SeriesStore& series,
                storage::BlobStore& blobs, const platform::Clock& clock,
                std::function<std::string()> new_id, IngestCounters* counters = nullptr)
      : database_(database),
        series_(series),
        blobs_(blobs),
        clock_(clock),
        new_id_(std::move(new_id)),
        counters_(counters) {}

  Result<data::v1::PushResponse> Push(const rpc::CallContext& context,
                                      const data::v1::PushRequest& request) override;

 private:
  struct Source {
    bool is_new = true;
    SequenceState state;
    int64_t rejected = 0;
  };
  Result<Source> ReadSource(const Scope& scope, const std::string& source_id);
  Status SaveSource(storage::Transaction& transaction, const Scope& scope,
                    const data::v1::PushRequest& request, const Source& source, int64_t now_ms);
  /// Blobs, samples, then one transaction with the sequence; durable when ok.
  Status Commit(const Scope& scope, const data::v1::PushRequest& request, const Source& source,
                Batch* batch, int64_t now_ms);
  /// After the batch as a whole was refused by a store: each record by itself, the ones that cannot
  /// be stored rejected.
  Status CommitOneByOne(const Scope& scope, const data::v1::PushRequest& request, Source source,
                        int64_t now_ms, data::v1::PushResponse* response);
  static void Reject(const data::v1::PushRequest& request, int64_t index, const std::string& reason,
                     Source* source, data::v1::PushResponse* response);
  std::vector<SeriesRun> UnknownRuns(const Scope& scope, const Batch& batch);
  void RememberRuns(const Scope& scope, const std::vector<SeriesRun>& runs);

  storage::Database& database_;
  storage::SeriesStore& series_;
  storage::BlobStore& blobs_;
  const platform::Clock& clock_;
  std::function<std::string()> new_id_;
  IngestCounters* counters_;
  /// One push of a source at a time; by hash of the source.
  std::array<std::mutex, 64> source_locks_;
  std::mutex known_mutex_;
  std::set<std::string> known_series_runs_;
};

}  // namespace expanse::data_plane
