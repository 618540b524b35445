// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/store_batch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "data_plane/executions/projection.h"
#include "data_plane/merge/fold.h"
#include "data_plane/stored_message.h"

namespace expanse::data_plane {
namespace {

using common::v1::RunKey;
using common::v1::SourceType;
using storage::Blob;
using storage::Transaction;

// Fragments that changed, by what they are grouped by.
class Touched {
 public:
  void Add(const RunKey& key, const std::string& fragment) {
    if (key.native_id().empty())
      alone_[fragment] = key.source_type();
    else
      by_native_[{key.source_type(), key.native_id()}].insert(fragment);
  }
  Status Refresh(Transaction& transaction, const Scope& scope, Projection* projection) {
    for (const auto& [fragment, source_type] : alone_) {
      // A later record of the batch may have told its native id, or joined it to another.
      EXPANSE_TRY(auto rows, transaction.Query("SELECT native_id FROM run_fragments WHERE "
                                               "org_id = $1 AND fragment_id = $2",
                                               {scope.org, fragment}));
      if (rows.empty()) continue;
      if (rows[0].Text(0).empty())
        EXPANSE_CHECK_OK(projection->RefreshAlone(source_type, fragment));
      else
        by_native_[{source_type, rows[0].Text(0)}].insert(fragment);
    }
    for (const auto& [native, fragments] : by_native_)
      EXPANSE_CHECK_OK(projection->Refresh(native.first, native.second, fragments));
    return projection->RedirectOrphans();
  }

 private:
  std::map<std::pair<SourceType, std::string>, std::set<std::string>> by_native_;
  std::map<std::string, SourceType> alone_;
};

Status StoreFacts(Transaction& transaction, const Scope& scope, const FactsItem& item,
                  const std::string& fragment) {
  EXPANSE_TRY(auto rows,
              transaction.Query("SELECT facts FROM execution_facts WHERE org_id = $1 AND "
                                "fragment_id = $2 AND origin = $3 AND node = $4 AND step_id = $5",
                                {scope.org, fragment, static_cast<int64_t>(item.facts->origin()),
                                 item.node, item.facts->step_id()}));
  data::v1::StoredFacts stored;
  if (!rows.empty()) ParseStored(rows[0].Bytes(0), "execution_facts", fragment, &stored);
  stored.set_node(item.node);
  FoldFacts(*item.facts, item.observed_ms, &stored);
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO execution_facts (org_id, fragment_id, origin, node, step_id, observed_ms, "
      "facts) VALUES ($1, $2, $3, $4, $5, $6, $7) "
      "ON CONFLICT (org_id, fragment_id, origin, node, step_id) DO UPDATE SET "
      "observed_ms = excluded.observed_ms, facts = excluded.facts",
      {scope.org, fragment, static_cast<int64_t>(item.facts->origin()), item.node,
       item.facts->step_id(), stored.last_observed_ms(), Blob{DeterministicBytes(stored)}}));
  return {};
}

Status StoreLogTail(Transaction& transaction, const Scope& scope, const LogTailItem& item,
                    const std::string& fragment) {
  data::v1::LogTail meta = *item.tail;
  meta.clear_content();
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO log_tails (org_id, fragment_id, stream, observed_ms, tail, blob_sha256) "
      "VALUES ($1, $2, $3, $4, $5, $6) "
      "ON CONFLICT (org_id, fragment_id, stream) DO UPDATE SET observed_ms = excluded.observed_ms, "
      "tail = excluded.tail, blob_sha256 = excluded.blob_sha256 "
      "WHERE log_tails.observed_ms < excluded.observed_ms",
      {scope.org, fragment, item.tail->stream(), item.observed_ms, Blob{DeterministicBytes(meta)},
       item.blob_sha256}));
  return {};
}

Status StoreBundle(Transaction& transaction, const Scope& scope, const BundleItem& item) {
  const auto& bundle = *item.bundle;
  if (bundle.bundle_id().empty()) return {};
  // The same bundle from another run: what is there has the same hashes; a content that was too
  // large or unreadable then may have come now.
  EXPANSE_TRY(auto rows, transaction.Query("SELECT manifest FROM bundles WHERE org_id = $1 AND "
                                           "bundle_id = $2",
                                           {scope.org, bundle.bundle_id()}));
  data::v1::StoredBundle manifest = item.manifest;
  data::v1::StoredBundle known;
  if (!rows.empty() && known.ParseFromString(rows[0].Bytes(0)))
    for (auto& file : *manifest.mutable_files()) {
      if (!file.blob_sha256().empty()) continue;
      for (const auto& old : known.files())
        if (old.path() == file.path() && old.sha256() == file.sha256())
          file.set_blob_sha256(old.blob_sha256());
    }
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO bundles (org_id, bundle_id, script_hash, tree_hash, args_hash, observed_ms, "
      "manifest) VALUES ($1, $2, $3, $4, $5, $6, $7) "
      "ON CONFLICT (org_id, bundle_id) DO UPDATE SET manifest = excluded.manifest",
      {scope.org, bundle.bundle_id(), SqlText(bundle.script_hash()), SqlText(bundle.tree_hash()),
       SqlText(bundle.args_hash()), item.observed_ms, Blob{DeterministicBytes(manifest)}}));
  return {};
}

template <typename Items, typename SameKey>
void Overlay(const Items& from, Items* into, SameKey same) {
  for (const auto& item : from) {
    auto it = std::find_if(into->begin(), into->end(),
                           [&](const auto& kept) { return same(kept, item); });
    if (it != into->end())
      *it = item;
    else
      *into->Add() = item;
  }
}

// A record with the scheduler's version is a whole picture of the cluster; one without it adds what
// it knows (a sampler speaks of its own node and health).
void FoldCompute(const data::v1::ComputeFacts& in, data::v1::ComputeFacts* into) {
  if (!in.scheduler_version().empty()) {
    into->set_scheduler_version(in.scheduler_version());
    if (in.nodes_size() > 0) into->clear_nodes();
    if (in.partitions_size() > 0) into->clear_partitions();
  }
  if (!in.cluster().empty()) into->set_cluster(in.cluster());
  const auto by_name = [](const auto& a, const auto& b) { return a.name() == b.name(); };
  Overlay(in.nodes(), into->mutable_nodes(), by_name);
  Overlay(in.partitions(), into->mutable_partitions(), by_name);
  Overlay(in.health(), into->mutable_health(), [](const auto& a, const auto& b) {
    return a.node() == b.node() && a.part() == b.part();
  });
}

bool IsPicture(const data::v1::ComputeFacts& facts) { return !facts.scheduler_version().empty(); }

bool HasNode(const data::v1::ComputeFacts& facts, const std::string& name) {
  return std::any_of(facts.nodes().begin(), facts.nodes().end(),
                     [&](const auto& node) { return node.name() == name; });
}

// Health of nodes that were in the picture of before and are not in the new one.
void DropHealthOfGoneNodes(const data::v1::ComputeFacts& before, data::v1::ComputeFacts* facts) {
  auto* health = facts->mutable_health();
  health->erase(std::remove_if(health->begin(), health->end(),
                               [&](const auto& line) {
                                 return HasNode(before, line.node()) &&
                                        !HasNode(*facts, line.node());
                               }),
                health->end());
}

// observed_ms of the row is the time of the picture, by the scheduler's own host: the clock of a
// node has no say in it. What nodes add counts as it comes, since the records of a node come in
// their order.
Status StoreCompute(Transaction& transaction, const Scope& scope, const ComputeItem& item) {
  EXPANSE_TRY(auto rows, transaction.Query("SELECT observed_ms, facts FROM compute_facts WHERE "
                                           "org_id = $1 AND compute_id = $2",
                                           {scope.org, scope.compute}));
  data::v1::ComputeFacts facts;
  int64_t observed = item.observed_ms;
  if (!rows.empty() && facts.ParseFromString(rows[0].Bytes(1))) {
    const int64_t known_ms = rows[0].Int64(0);
    const bool has_picture = IsPicture(facts);
    if (!IsPicture(*item.facts)) {
      FoldCompute(*item.facts, &facts);
      observed = has_picture ? known_ms : std::max(observed, known_ms);
    } else if (has_picture && item.observed_ms < known_ms) {
      // Older than what is there: only fills gaps.
      data::v1::ComputeFacts older = *item.facts;
      FoldCompute(facts, &older);
      facts = older;
      observed = known_ms;
    } else {
      const data::v1::ComputeFacts before = facts;
      FoldCompute(*item.facts, &facts);
      DropHealthOfGoneNodes(before, &facts);
    }
  } else {
    facts = *item.facts;
  }
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO compute_facts (org_id, compute_id, observed_ms, facts) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT (org_id, compute_id) DO UPDATE SET observed_ms = excluded.observed_ms, "
      "facts = excluded.facts",
      {scope.org, scope.compute, observed, Blob{DeterministicBytes(facts)}}));
  return {};
}

}  // namespace

Status StoreBatch(Transaction& transaction, const Scope& scope, const Batch& batch,
                  const std::vector<SeriesRun>& unknown_runs,
                  const std::function<std::string()>& new_id) {
  Fragments fragments(transaction, scope);
  Projection projection(transaction, fragments, scope, new_id);
  Touched touched;
  for (const FactsItem& item : batch.facts()) {
    EXPANSE_TRY(const std::string fragment,
                fragments.Resolve(item.sight.key, item.sight.weak, item.sight.seen));
    EXPANSE_CHECK_OK(StoreFacts(transaction, scope, item, fragment));
    touched.Add(item.sight.key, fragment);
  }
  for (const SeriesRun& run : unknown_runs) {
    EXPANSE_TRY(const std::string fragment,
                fragments.Resolve(run.sight.key, run.sight.weak, run.sight.seen));
    EXPANSE_CHECK_OK(fragments.MarkSeries(run.alias));
    touched.Add(run.sight.key, fragment);
  }
  for (const LogTailItem& item : batch.log_tails()) {
    EXPANSE_TRY(const std::string fragment,
                fragments.Resolve(item.sight.key, item.sight.weak, item.sight.seen));
    EXPANSE_CHECK_OK(StoreLogTail(transaction, scope, item, fragment));
    touched.Add(item.sight.key, fragment);
  }
  for (const BundleItem& item : batch.bundles())
    EXPANSE_CHECK_OK(StoreBundle(transaction, scope, item));
  for (const ComputeItem& item : batch.computes())
    EXPANSE_CHECK_OK(StoreCompute(transaction, scope, item));
  return touched.Refresh(transaction, scope, &projection);
}

}  // namespace expanse::data_plane
