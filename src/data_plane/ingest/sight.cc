// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/sight.h"

#include <algorithm>

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::RunKey;
using data::v1::ExecutionFacts;

bool IsSchedulerTool(data::v1::FactOrigin origin) {
  return origin == data::v1::FACT_ORIGIN_SACCT || origin == data::v1::FACT_ORIGIN_SCONTROL ||
         origin == data::v1::FACT_ORIGIN_SQUEUE;
}

bool IsTerminal(const Execution& e) {
  return e.status() == common::v1::EXECUTION_STATUS_SUCCEEDED ||
         e.status() == common::v1::EXECUTION_STATUS_FAILED ||
         e.status() == common::v1::EXECUTION_STATUS_CANCELLED ||
         (e.status() == common::v1::EXECUTION_STATUS_UNKNOWN &&
          e.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED);
}

int64_t AnchoredFlag(const RunKey& key) {
  for (const Alias& alias : StrongAliases(key))
    if (alias.kind != "start" || key.source_type() == common::v1::SOURCE_TYPE_VM) return kAnchored;
  return 0;
}

Fragment Seen(const RunKey& key, int64_t observed_ms) {
  Fragment seen;
  if (key.has_submit_time_ms()) seen.submit_ms = FloorToSecond(key.submit_time_ms());
  if (key.has_restart_count()) seen.restart_count = key.restart_count();
  if (key.has_db_index() && key.db_index() > 0) seen.db_index = key.db_index();
  if (key.has_start_time_ms()) seen.start_ms = FloorToSecond(key.start_time_ms());
  seen.first_observed_ms = observed_ms;
  seen.last_observed_ms = observed_ms;
  seen.flags = AnchoredFlag(key);
  return seen;
}

int64_t FlagsOfOrigin(data::v1::FactOrigin origin) {
  switch (origin) {
    case data::v1::FACT_ORIGIN_HOOK_PROLOG:
      return kRunsHere | kProlog;
    case data::v1::FACT_ORIGIN_HOOK_EPILOG:
      return kRunsHere | kEpilog;
    case data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG:
    case data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG:
    case data::v1::FACT_ORIGIN_CGROUP:
      return kRunsHere;
    default:
      return 0;
  }
}

void AddLife(const ExecutionFacts& facts, int64_t observed_ms, Fragment* seen) {
  const Execution& e = facts.execution();
  if (!IsSchedulerTool(facts.origin()) || !facts.step_id().empty()) return;
  if (e.status() == common::v1::EXECUTION_STATUS_QUEUED) seen->pending_until_ms = observed_ms;
  if (e.status() == common::v1::EXECUTION_STATUS_QUEUED ||
      e.status() == common::v1::EXECUTION_STATUS_RUNNING)
    seen->alive_until_ms = observed_ms;
  if (e.scheduler_state().starts_with("RESIZING")) seen->flags |= kResizing;
  if (!IsTerminal(e)) return;
  seen->flags |= kTerminal;
  if (e.has_end_time_ms()) seen->end_ms = e.end_time_ms();
  if (e.ending_cause() == common::v1::ENDING_CAUSE_REQUEUED ||
      e.ending_cause() == common::v1::ENDING_CAUSE_PREEMPTED ||
      e.ending_cause() == common::v1::ENDING_CAUSE_NODE_FAILURE)
    seen->flags |= kRequeueCause;
}

}  // namespace

Sight SightOfFacts(const ExecutionFacts& facts, int64_t observed_ms, const std::string& node) {
  RunKey key = facts.key();
  const Execution& e = facts.execution();
  if (IsSchedulerTool(facts.origin()) && facts.step_id().empty()) {
    if (!key.has_submit_time_ms() && e.has_submit_time_ms())
      key.set_submit_time_ms(e.submit_time_ms());
    const bool started =
        e.status() == common::v1::EXECUTION_STATUS_RUNNING ||
        (IsTerminal(e) && e.ending_cause() != common::v1::ENDING_CAUSE_NEVER_STARTED);
    if (!key.has_start_time_ms() && started && e.has_start_time_ms())
      key.set_start_time_ms(e.start_time_ms());
    if (key.has_start_time_ms() && e.status() == common::v1::EXECUTION_STATUS_QUEUED)
      key.clear_start_time_ms();
  }
  const int64_t at =
      key.has_observed_time_ms() ? std::min(key.observed_time_ms(), observed_ms) : observed_ms;
  Sight sight;
  sight.weak = WeakAlias(key, at, OriginName(facts.origin()), node, facts.step_id());
  sight.seen = Seen(key, at);
  sight.seen.flags |= FlagsOfOrigin(facts.origin());
  AddLife(facts, observed_ms, &sight.seen);
  sight.key = std::move(key);
  return sight;
}

Sight SightOfKey(const RunKey& key, int64_t observed_ms, const std::string& what,
                 const std::string& node, const std::string& step_id) {
  const int64_t at =
      key.has_observed_time_ms() ? std::min(key.observed_time_ms(), observed_ms) : observed_ms;
  Sight sight;
  sight.key = key;
  sight.weak = WeakAlias(key, at, what, node, step_id);
  sight.seen = Seen(key, at);
  return sight;
}

}  // namespace expanse::data_plane
