// SPDX-License-Identifier: Apache-2.0
#include "data_plane/identity/fragments.h"

#include <algorithm>
#include <set>

#include "data_plane/merge/fold.h"
#include "data_plane/stored_message.h"
#include "expanse/data/v1/stored.pb.h"

namespace expanse::data_plane {
namespace {

using common::v1::RunKey;
using storage::Blob;
using storage::Row;

constexpr std::string_view kColumns =
    "fragment_id, execution_id, weak, submit_ms, restart_count, db_index, start_ms, end_ms, "
    "pending_until_ms, alive_until_ms, first_observed_ms, last_observed_ms, flags";

Fragment FromRow(const Row& row) {
  Fragment f;
  f.id = row.Text(0);
  f.execution_id = row.Text(1);
  f.weak = row.Bool(2);
  f.submit_ms = row.OptInt64(3);
  if (const auto restart = row.OptInt64(4)) f.restart_count = static_cast<int32_t>(*restart);
  f.db_index = row.OptInt64(5);
  f.start_ms = row.OptInt64(6);
  f.end_ms = row.OptInt64(7);
  f.pending_until_ms = row.OptInt64(8);
  f.alive_until_ms = row.OptInt64(9);
  f.first_observed_ms = row.Int64(10);
  f.last_observed_ms = row.Int64(11);
  f.flags = row.Int64(12);
  return f;
}

template <typename T>
void FoldMax(std::optional<T>& into, const std::optional<T>& from) {
  if (from && (!into || *from > *into)) into = from;
}

// Commutative and idempotent.
void FoldInto(const Fragment& seen, Fragment* f) {
  if (seen.submit_ms && (!f->submit_ms || *seen.submit_ms < *f->submit_ms))
    f->submit_ms = seen.submit_ms;
  FoldMax(f->restart_count, seen.restart_count);
  FoldMax(f->db_index, seen.db_index);
  FoldMax(f->start_ms, seen.start_ms);
  FoldMax(f->end_ms, seen.end_ms);
  FoldMax(f->pending_until_ms, seen.pending_until_ms);
  FoldMax(f->alive_until_ms, seen.alive_until_ms);
  f->first_observed_ms = std::min(f->first_observed_ms, seen.first_observed_ms);
  f->last_observed_ms = std::max(f->last_observed_ms, seen.last_observed_ms);
  f->flags |= seen.flags;
  f->weak = f->weak && seen.weak;
}

// Two fragments that contradict each other are not joined, whatever name they share.
bool Compatible(const Fragment& a, const Fragment& b) {
  if (a.restart_count && b.restart_count && *a.restart_count != *b.restart_count) return false;
  return !(a.submit_ms && b.submit_ms && *a.submit_ms != *b.submit_ms);
}

}  // namespace

Result<std::string> Fragments::Resolve(const RunKey& key, const Alias& weak, const Fragment& seen) {
  std::vector<Alias> aliases = StrongAliases(key);
  const bool is_weak = aliases.empty();
  if (is_weak) aliases.push_back(weak);
  Fragment facts = seen;
  facts.weak = is_weak;

  std::vector<std::pair<const Alias*, std::string>> found;
  std::vector<const Alias*> missing;
  for (const Alias& alias : aliases) {
    EXPANSE_TRY(std::string id, Find(alias));
    if (id.empty())
      missing.push_back(&alias);
    else
      found.emplace_back(&alias, std::move(id));
  }
  std::string home;
  if (found.empty()) {
    home = DerivedId(scope_.org, scope_.compute, aliases.front());
    EXPANSE_CHECK_OK(Insert(key, home, facts));
  }
  for (const auto& [alias, id] : found) {
    if (id == home) continue;
    // A name that belongs to a run which the key contradicts is not this run's. The original
    // SLUID is proof whatever else differs.
    EXPANSE_TRY(const Fragment other, Get(id));
    if (alias->kind != "sluid" && !Compatible(other, facts)) continue;
    if (home.empty()) {
      home = id;
      continue;
    }
    EXPANSE_TRY(const Fragment self, Get(home));
    if (alias->kind != "sluid" && !Compatible(other, self)) continue;
    const std::string into = std::min(home, id);
    EXPANSE_CHECK_OK(Join(std::max(home, id), into));
    home = into;
  }
  if (home.empty()) {  // every name it has is another run's
    home = DerivedId(scope_.org, scope_.compute, weak);
    EXPANSE_TRY(const std::string known, Find(weak));
    if (known.empty()) {
      EXPANSE_CHECK_OK(Insert(key, home, facts));
      EXPANSE_CHECK_OK(AddAlias(weak, home));
    } else {
      home = known;
    }
  }
  for (const Alias* alias : missing) EXPANSE_CHECK_OK(AddAlias(*alias, home));
  EXPANSE_CHECK_OK(Fold(key, home, facts));
  return home;
}

Result<std::string> Fragments::Find(const Alias& alias) {
  EXPANSE_TRY(auto rows,
              transaction_.Query("SELECT fragment_id FROM execution_aliases WHERE org_id = $1 AND "
                                 "compute_id = $2 AND kind = $3 AND value = $4",
                                 {scope_.org, scope_.compute, alias.kind, alias.value}));
  return rows.empty() ? std::string() : rows[0].Text(0);
}

Status Fragments::AddAlias(const Alias& alias, const std::string& fragment_id) {
  EXPANSE_CHECK_OK(transaction_.Execute(
      "INSERT INTO execution_aliases (org_id, compute_id, kind, value, fragment_id, has_series) "
      "VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (org_id, compute_id, kind, value) DO NOTHING",
      {scope_.org, scope_.compute, alias.kind, alias.value, fragment_id}));
  return {};
}

Status Fragments::MarkSeries(const Alias& alias) {
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE execution_aliases SET has_series = 1 WHERE org_id = $1 AND compute_id = $2 AND "
      "kind = $3 AND value = $4",
      {scope_.org, scope_.compute, alias.kind, alias.value}));
  return {};
}

Status Fragments::Insert(const RunKey& key, const std::string& id, const Fragment& seen) {
  EXPANSE_CHECK_OK(transaction_.Execute(
      "INSERT INTO run_fragments (org_id, fragment_id, compute_id, source_type, native_id, "
      "execution_id, weak, first_observed_ms, last_observed_ms, flags) "
      "VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, $9)",
      {scope_.org, id, scope_.compute, static_cast<int64_t>(key.source_type()), key.native_id(),
       seen.weak, seen.first_observed_ms, seen.last_observed_ms, seen.flags}));
  return {};
}

Status Fragments::Save(const Fragment& f) {
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE run_fragments SET weak = $3, submit_ms = $4, restart_count = $5, db_index = $6, "
      "start_ms = $7, end_ms = $8, pending_until_ms = $9, alive_until_ms = $10, "
      "first_observed_ms = $11, last_observed_ms = $12, flags = $13 "
      "WHERE org_id = $1 AND fragment_id = $2",
      {scope_.org, f.id, f.weak, f.submit_ms, f.restart_count, f.db_index, f.start_ms, f.end_ms,
       f.pending_until_ms, f.alive_until_ms, f.first_observed_ms, f.last_observed_ms, f.flags}));
  return {};
}

Status Fragments::Fold(const RunKey& key, const std::string& id, const Fragment& seen) {
  EXPANSE_TRY(Fragment fragment, Get(id));
  FoldInto(seen, &fragment);
  if (!key.native_id().empty())
    EXPANSE_CHECK_OK(transaction_.Execute(
        "UPDATE run_fragments SET native_id = $3, source_type = $4 "
        "WHERE org_id = $1 AND fragment_id = $2 AND native_id = ''",
        {scope_.org, id, key.native_id(), static_cast<int64_t>(key.source_type())}));
  return Save(fragment);
}

Result<Fragment> Fragments::Get(const std::string& fragment_id) {
  EXPANSE_TRY(auto rows, transaction_.Query("SELECT " + std::string(kColumns) +
                                                " FROM run_fragments WHERE org_id = $1 AND "
                                                "fragment_id = $2",
                                            {scope_.org, fragment_id}));
  if (rows.empty())
    return Error(Code::kInternal, "execution_aliases names fragment " + fragment_id +
                                      ", which run_fragments does not have");
  return FromRow(rows[0]);
}

Result<std::vector<Fragment>> Fragments::OfNative(common::v1::SourceType source_type,
                                                  const std::string& native_id) {
  EXPANSE_TRY(auto rows,
              transaction_.Query(
                  "SELECT " + std::string(kColumns) +
                      " FROM run_fragments WHERE org_id = $1 AND compute_id = $2 "
                      "AND native_id = $3 AND source_type = $4 ORDER BY fragment_id",
                  {scope_.org, scope_.compute, native_id, static_cast<int64_t>(source_type)}));
  std::vector<Fragment> out;
  for (const Row row : rows) out.push_back(FromRow(row));
  return out;
}

Result<std::vector<Fragment>> Fragments::OfExecution(const std::string& execution_id) {
  EXPANSE_TRY(auto rows,
              transaction_.Query("SELECT " + std::string(kColumns) +
                                     " FROM run_fragments WHERE org_id = $1 AND execution_id = $2 "
                                     "ORDER BY fragment_id",
                                 {scope_.org, execution_id}));
  std::vector<Fragment> out;
  for (const Row row : rows) out.push_back(FromRow(row));
  return out;
}

Status Fragments::SetExecution(const std::string& fragment_id, const std::string& execution_id) {
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE run_fragments SET execution_id = $3 WHERE org_id = $1 AND fragment_id = $2",
      {scope_.org, fragment_id, execution_id}));
  return {};
}

Status Fragments::Join(const std::string& from, const std::string& into) {
  EXPANSE_TRY(const Fragment gone, Get(from));
  EXPANSE_TRY(Fragment kept, Get(into));
  EXPANSE_CHECK_OK(JoinFacts(from, into));
  EXPANSE_CHECK_OK(JoinLogTails(from, into));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE execution_aliases SET fragment_id = $3 WHERE org_id = $1 AND fragment_id = $2",
      {scope_.org, from, into}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE run_fragments SET native_id = (SELECT g.native_id FROM run_fragments g WHERE "
      "g.org_id = $1 AND g.fragment_id = $2) "
      "WHERE org_id = $1 AND fragment_id = $3 AND native_id = ''",
      {scope_.org, from, into}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "DELETE FROM run_fragments WHERE org_id = $1 AND fragment_id = $2", {scope_.org, from}));
  FoldInto(gone, &kept);
  EXPANSE_CHECK_OK(Save(kept));
  if (gone.execution_id.empty()) return {};
  if (kept.execution_id.empty()) return SetExecution(into, gone.execution_id);
  if (kept.execution_id != gone.execution_id) orphaned_.emplace_back(gone.execution_id, into);
  return {};
}

Status Fragments::JoinFacts(const std::string& from, const std::string& into) {
  EXPANSE_TRY(auto rows, transaction_.Query("SELECT facts FROM execution_facts WHERE org_id = $1 "
                                            "AND fragment_id = $2",
                                            {scope_.org, from}));
  for (const Row row : rows) {
    data::v1::StoredFacts moved;
    if (!ParseStored(row.Bytes(0), "execution_facts", from, &moved)) continue;
    EXPANSE_TRY(auto there, transaction_.Query(
                                "SELECT facts FROM execution_facts WHERE org_id = $1 AND "
                                "fragment_id = $2 AND origin = $3 AND node = $4 AND step_id = $5",
                                {scope_.org, into, moved.origin(), moved.node(), moved.step_id()}));
    data::v1::StoredFacts kept;
    if (!there.empty()) ParseStored(there[0].Bytes(0), "execution_facts", into, &kept);
    FoldStored(moved, &kept);
    EXPANSE_CHECK_OK(transaction_.Execute(
        "INSERT INTO execution_facts (org_id, fragment_id, origin, node, step_id, observed_ms, "
        "facts) VALUES ($1, $2, $3, $4, $5, $6, $7) "
        "ON CONFLICT (org_id, fragment_id, origin, node, step_id) DO UPDATE SET "
        "observed_ms = excluded.observed_ms, facts = excluded.facts",
        {scope_.org, into, kept.origin(), kept.node(), kept.step_id(), kept.last_observed_ms(),
         Blob{DeterministicBytes(kept)}}));
  }
  EXPANSE_CHECK_OK(transaction_.Execute(
      "DELETE FROM execution_facts WHERE org_id = $1 AND fragment_id = $2", {scope_.org, from}));
  return {};
}

Status Fragments::JoinLogTails(const std::string& from, const std::string& into) {
  // The newer tail of each stream stays.
  EXPANSE_CHECK_OK(transaction_.Execute(
      "INSERT INTO log_tails (org_id, fragment_id, stream, observed_ms, tail, blob_sha256) "
      "SELECT org_id, $3, stream, observed_ms, tail, blob_sha256 FROM log_tails "
      "WHERE org_id = $1 AND fragment_id = $2 "
      "ON CONFLICT (org_id, fragment_id, stream) DO UPDATE SET observed_ms = excluded.observed_ms, "
      "tail = excluded.tail, blob_sha256 = excluded.blob_sha256 "
      "WHERE log_tails.observed_ms < excluded.observed_ms",
      {scope_.org, from, into}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "DELETE FROM log_tails WHERE org_id = $1 AND fragment_id = $2", {scope_.org, from}));
  return {};
}

}  // namespace expanse::data_plane
