// SPDX-License-Identifier: Apache-2.0
// The records of one push that are new, sorted by where they go: samples to the series store,
// contents to the blob store, everything else to one SQL transaction.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data_plane/identity/fragments.h"
#include "data_plane/ingest/sight.h"
#include "expanse/data/v1/ingest.pb.h"
#include "expanse/data/v1/stored.pb.h"
#include "storage/blob/blob_store.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

struct FactsItem {
  Sight sight;
  const data::v1::ExecutionFacts* facts = nullptr;  // of the request or of `made`
  std::string node;                                 // empty for scheduler tools
  int64_t observed_ms = 0;
};
struct LogTailItem {
  Sight sight;
  const data::v1::LogTail* tail = nullptr;
  std::string blob_sha256;
  int64_t observed_ms = 0;
};
struct BundleItem {
  const data::v1::SourceBundle* bundle = nullptr;
  data::v1::StoredBundle manifest;
  int64_t observed_ms = 0;
};
struct ComputeItem {
  const data::v1::ComputeFacts* facts = nullptr;
  int64_t observed_ms = 0;
};
/// A run that has samples: it has to be known under the name they are kept by.
struct SeriesRun {
  Sight sight;
  Alias alias;  // of `sight.key`; kind "weak" for a partial key
};

class Batch {
 public:
  /// The request outlives the batch.
  Batch(Scope scope, int64_t now_ms) : scope_(std::move(scope)), now_ms_(now_ms) {}

  /// Makes room for so many series at once: they are large to move.
  void Reserve(size_t series) { blocks_.reserve(series); }
  /// Adds a record that is new. kInvalidArgument: refused, with the reason; parts of a sample block
  /// that are good are kept even then.
  Status Add(const data::v1::Record& record);
  /// Stores contents; durable on return.
  Status PutBlobs(storage::BlobStore& blobs);

  const std::vector<storage::SeriesBlock>& blocks() const { return blocks_; }
  const std::vector<FactsItem>& facts() const { return facts_; }
  const std::vector<LogTailItem>& log_tails() const { return log_tails_; }
  const std::vector<BundleItem>& bundles() const { return bundles_; }
  const std::vector<ComputeItem>& computes() const { return computes_; }
  const std::vector<SeriesRun>& series_runs() const { return series_runs_; }

 private:
  void AddFacts(const data::v1::ExecutionFacts& facts, const std::string& node, int64_t observed);
  Status AddSamples(const data::v1::Record& record, int64_t observed);
  Status AddSeries(const data::v1::Series& series, const std::string& node, int64_t observed);
  void AddBundle(const data::v1::SourceBundle& bundle, int64_t observed);

  Scope scope_;
  int64_t now_ms_;
  std::vector<storage::SeriesBlock> blocks_;
  std::vector<FactsItem> facts_;
  std::vector<LogTailItem> log_tails_;
  std::vector<BundleItem> bundles_;
  std::vector<ComputeItem> computes_;
  std::vector<SeriesRun> series_runs_;
  std::set<Alias> series_aliases_;
  struct {
    const common::v1::RunKey* key = nullptr;  // of the request; null: none with a strong name yet
    ExecutionId owner;
  } last_run_;                                 // of the series before
  std::deque<data::v1::ExecutionFacts> made_;  // facts that follow from bundles; stable addresses
};

}  // namespace expanse::data_plane
