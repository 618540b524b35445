// SPDX-License-Identifier: Apache-2.0
#include "data_plane/metrics/series_owners.h"

#include <algorithm>
#include <optional>
#include <string>

namespace expanse::data_plane {
namespace {

// Schedulers give whole seconds: the last second of a run is its own.
constexpr int64_t kSecond = 1000;
constexpr int64_t kClockSlack = 300'000;

// When the id was given to a later run; nothing when it was not.
Result<std::optional<int64_t>> NextRunAt(storage::Transaction& transaction, const OrgId& org,
                                         const common::v1::Execution& execution,
                                         const std::string& native_id, int64_t after_ms) {
  EXPANSE_TRY(auto rows,
              transaction.Query(
                  "SELECT MIN(COALESCE(start_ms, sort_ms)) FROM executions WHERE "
                  "org_id = $1 AND native_id = $2 AND compute_id = $3 AND "
                  "execution_id <> $4 AND COALESCE(start_ms, sort_ms) > $5",
                  {org, native_id, execution.compute_id(), execution.execution_id(), after_ms}));
  return rows.empty() ? std::nullopt : rows[0].OptInt64(0);
}

}  // namespace

Result<SeriesOwners> OwnersOf(storage::Transaction& transaction, const OrgId& org,
                              const common::v1::Execution& execution, int64_t now_ms) {
  const ComputeId compute(execution.compute_id());
  SeriesOwners out;
  EXPANSE_TRY(auto aliases,
              transaction.Query("SELECT a.kind, a.value, f.native_id FROM run_fragments f "
                                "JOIN execution_aliases a ON a.org_id = f.org_id AND "
                                "a.fragment_id = f.fragment_id WHERE f.org_id = $1 AND "
                                "f.execution_id = $2 AND a.has_series = 1",
                                {org, execution.execution_id()}));
  for (const auto row : aliases)
    if (row.Text(0) != "weak")
      out.owners.emplace_back(DerivedId(org, compute, {row.Text(0), row.Text(1)}));
  EXPANSE_TRY(auto fragments,
              transaction.Query("SELECT native_id, source_type, first_observed_ms FROM "
                                "run_fragments WHERE org_id = $1 AND execution_id = $2 "
                                "ORDER BY first_observed_ms",
                                {org, execution.execution_id()}));
  std::string native_id;
  for (const auto row : fragments)
    if (!row.Text(0).empty()) native_id = row.Text(0);
  if (!native_id.empty())
    out.owners.push_back(SightSeriesOwner(org, compute, execution.source_type(), native_id));
  std::sort(out.owners.begin(), out.owners.end());
  out.owners.erase(std::unique(out.owners.begin(), out.owners.end()), out.owners.end());

  if (execution.has_start_time_ms())
    out.life.from_ms = FloorToSecond(execution.start_time_ms());
  else if (!fragments.empty())
    out.life.from_ms = FloorToSecond(fragments[0].Int64(2));
  if (execution.has_end_time_ms()) {
    out.life.to_ms = FloorToSecond(execution.end_time_ms()) + kSecond;
    return out;
  }
  out.life.to_ms = now_ms + kClockSlack;
  if (native_id.empty()) return out;
  EXPANSE_TRY(const auto next, NextRunAt(transaction, org, execution, native_id, out.life.from_ms));
  if (next) out.life.to_ms = std::min(out.life.to_ms, *next);
  return out;
}

}  // namespace expanse::data_plane
