// SPDX-License-Identifier: Apache-2.0
#include "data_plane/executions/projection.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "data_plane/merge/fold.h"
#include "data_plane/merge/merge.h"
#include "data_plane/stored_message.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::StoredFacts;
using storage::Blob;

// A native id with more runs than this (ids reused for years) is rewritten in part only.
constexpr size_t kRewriteAllUpTo = 4;

}  // namespace

struct Projection::Plan {
  std::vector<RunGrouping> runs;
  std::vector<std::string> ids;  // execution of each run
};

namespace {

// An id stays with the run that holds its strongest fragment; a run takes the strongest id that is
// left to it, so that ids people have seen stay.
std::vector<std::string> ChooseIds(const std::vector<Fragment>& fragments,
                                   const std::vector<RunGrouping>& runs,
                                   const std::function<std::string()>& new_id) {
  std::map<std::string, std::pair<size_t, size_t>> owner;  // execution id -> (fragment, run)
  const auto strength = [&](size_t i) {
    return std::tuple(!fragments[i].anchored(), fragments[i].weak, fragments[i].id);
  };
  for (size_t r = 0; r < runs.size(); ++r)
    for (const size_t i : runs[r].members) {
      if (fragments[i].execution_id.empty()) continue;
      auto [it, is_new] = owner.try_emplace(fragments[i].execution_id, i, r);
      if (!is_new && strength(i) < strength(it->second.first)) it->second = {i, r};
    }
  std::vector<std::string> ids(runs.size());
  std::vector<size_t> best(runs.size());
  for (const auto& [id, by] : owner) {
    const auto [fragment, run] = by;
    if (!ids[run].empty() && strength(best[run]) < strength(fragment)) continue;
    ids[run] = id;
    best[run] = fragment;
  }
  for (std::string& id : ids)
    if (id.empty()) id = new_id();
  return ids;
}

}  // namespace

Status Projection::Refresh(common::v1::SourceType source_type, const std::string& native_id,
                           const std::set<std::string>& dirty) {
  EXPANSE_TRY(const auto fragments, fragments_.OfNative(source_type, native_id));
  return Apply(source_type, native_id, fragments, dirty);
}

Status Projection::RefreshAlone(common::v1::SourceType source_type,
                                const std::string& fragment_id) {
  EXPANSE_TRY(Fragment fragment, fragments_.Get(fragment_id));
  return Apply(source_type, "", {std::move(fragment)}, {fragment_id});
}

Status Projection::Apply(common::v1::SourceType source_type, const std::string& native_id,
                         const std::vector<Fragment>& fragments,
                         const std::set<std::string>& dirty) {
  Plan plan;
  plan.runs = AssignRuns(fragments);
  plan.ids = ChooseIds(fragments, plan.runs, new_id_);
  std::set<size_t> rewrite;
  std::map<std::string, std::string> moved;  // execution id -> the one its fragment went to
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    for (const size_t i : plan.runs[r].members) {
      const Fragment& fragment = fragments[i];
      if (fragment.execution_id != plan.ids[r]) {
        EXPANSE_CHECK_OK(fragments_.SetExecution(fragment.id, plan.ids[r]));
        if (!fragment.execution_id.empty()) moved[fragment.execution_id] = plan.ids[r];
        rewrite.insert(r);
      }
      if (dirty.contains(fragment.id)) rewrite.insert(r);
    }
    if (plan.runs.size() <= kRewriteAllUpTo) rewrite.insert(r);
  }
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    // A run that lost a fragment, and the neighbours of a changed run (attempts, superseded).
    if (moved.contains(plan.ids[r])) rewrite.insert(r);
    if (!rewrite.contains(r) && r + 1 < plan.runs.size() && rewrite.contains(r + 1))
      rewrite.insert(r);
  }
  for (const auto& [from, to] : moved)
    if (std::find(plan.ids.begin(), plan.ids.end(), from) == plan.ids.end())
      EXPANSE_CHECK_OK(Redirect(from, to));
  for (const size_t r : rewrite)
    EXPANSE_CHECK_OK(Rewrite(source_type, native_id, fragments, plan, r));
  return {};
}

Status Projection::RedirectOrphans() {
  for (const auto& [execution, fragment_id] : fragments_.orphaned()) {
    EXPANSE_TRY(const auto left, fragments_.OfExecution(execution));
    if (!left.empty()) continue;
    EXPANSE_TRY(const Fragment taker, fragments_.Get(fragment_id));
    EXPANSE_CHECK_OK(Redirect(execution, taker.execution_id));
  }
  return {};
}

Status Projection::Redirect(const std::string& from, const std::string& to) {
  if (from == to) return {};
  EXPANSE_CHECK_OK(transaction_.Execute(
      "DELETE FROM executions WHERE org_id = $1 AND execution_id = $2", {scope_.org, from}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "DELETE FROM execution_redirects WHERE org_id = $1 AND from_id = $2", {scope_.org, to}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "UPDATE execution_redirects SET to_id = $3 WHERE org_id = $1 AND to_id = $2",
      {scope_.org, from, to}));
  EXPANSE_CHECK_OK(transaction_.Execute(
      "INSERT INTO execution_redirects (org_id, from_id, to_id) VALUES ($1, $2, $3) "
      "ON CONFLICT (org_id, from_id) DO UPDATE SET to_id = excluded.to_id",
      {scope_.org, from, to}));
  return {};
}

Status Projection::Rewrite(common::v1::SourceType source_type, const std::string& native_id,
                           const std::vector<Fragment>& fragments, const Plan& plan, size_t run) {
  const RunGrouping& grouping = plan.runs[run];
  MergeContext context;
  context.execution_id = plan.ids[run];
  context.compute_id = scope_.compute.str();
  context.source_type = source_type;
  context.native_id = native_id;
  context.attempt = grouping.attempt;
  context.superseded = grouping.superseded;
  if (grouping.first_attempt != run)
    context.first_attempt_execution_id = plan.ids[grouping.first_attempt];

  std::vector<StoredFacts> rows;
  int64_t first_observed = 0;
  for (const size_t i : grouping.members) {
    const Fragment& f = fragments[i];
    // The last attempt's own submission, not one that was borrowed while the one before completed.
    if (f.anchored() && f.submit_ms)
      context.submit_ms = std::max(context.submit_ms.value_or(0), *f.submit_ms);
    if (f.anchored() && f.start_ms)
      context.start_ms = std::max(context.start_ms.value_or(0), *f.start_ms);
    first_observed =
        first_observed == 0 ? f.first_observed_ms : std::min(first_observed, f.first_observed_ms);
    EXPANSE_TRY(auto stored, transaction_.Query("SELECT facts FROM execution_facts "
                                                "WHERE org_id = $1 AND fragment_id = $2",
                                                {scope_.org, f.id}));
    for (const auto row : stored)
      if (StoredFacts facts; ParseStored(row.Bytes(0), "execution_facts", f.id, &facts))
        rows.push_back(std::move(facts));
  }
  const Execution merged = Merge(context, rows);
  const auto opt = [](bool has, int64_t v) { return has ? std::optional(v) : std::nullopt; };
  const int64_t sort_ms = merged.has_submit_time_ms()  ? merged.submit_time_ms()
                          : merged.has_start_time_ms() ? merged.start_time_ms()
                                                       : first_observed;
  EXPANSE_CHECK_OK(transaction_.Execute(
      "INSERT INTO executions (org_id, execution_id, compute_id, source_type, native_id, "
      "display_id, sort_ms, submit_ms, start_ms, end_ms, status, outcome, user_name, job_name, "
      "script_hash, tree_hash, args_hash, merged) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, "
      "$10, $11, $12, $13, $14, $15, $16, $17, $18) "
      "ON CONFLICT (org_id, execution_id) DO UPDATE SET compute_id = excluded.compute_id, "
      "source_type = excluded.source_type, native_id = excluded.native_id, "
      "display_id = excluded.display_id, sort_ms = excluded.sort_ms, "
      "submit_ms = excluded.submit_ms, start_ms = excluded.start_ms, end_ms = excluded.end_ms, "
      "status = excluded.status, outcome = excluded.outcome, user_name = excluded.user_name, "
      "job_name = excluded.job_name, script_hash = excluded.script_hash, "
      "tree_hash = excluded.tree_hash, args_hash = excluded.args_hash, merged = excluded.merged",
      {scope_.org, merged.execution_id(), scope_.compute, static_cast<int64_t>(source_type),
       native_id, SqlText(merged.native_id()), sort_ms,
       opt(merged.has_submit_time_ms(), merged.submit_time_ms()),
       opt(merged.has_start_time_ms(), merged.start_time_ms()),
       opt(merged.has_end_time_ms(), merged.end_time_ms()), static_cast<int64_t>(merged.status()),
       static_cast<int64_t>(merged.outcome()), SqlText(merged.user()), SqlText(merged.job_name()),
       SqlText(merged.script_hash()), SqlText(merged.tree_hash()), SqlText(merged.args_hash()),
       Blob{DeterministicBytes(merged)}}));
  return {};
}

}  // namespace expanse::data_plane
