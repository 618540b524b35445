// SPDX-License-Identifier: Apache-2.0
// Which stage a run is in and how it ended. The collectors map the scheduler's words to status and
// outcome; here they are only reconciled.
#include <algorithm>

#include "data_plane/merge/fold.h"
#include "data_plane/merge/parts.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::StoredFacts;

// A run only moves forward: what has ended does not wait or run again (another attempt would).
int Stage(const Execution& e) {
  switch (e.status()) {
    case common::v1::EXECUTION_STATUS_QUEUED:
      return 1;
    case common::v1::EXECUTION_STATUS_RUNNING:
      return 2;
    case common::v1::EXECUTION_STATUS_SUCCEEDED:
    case common::v1::EXECUTION_STATUS_FAILED:
    case common::v1::EXECUTION_STATUS_CANCELLED:
      return 3;
    case common::v1::EXECUTION_STATUS_UNKNOWN:
      return e.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED ? 3 : 0;
    default:
      return 0;
  }
}

// A field that goes with the state is of the state only when it is not older than it.
bool IsOfState(const StoredFacts& row, int field) {
  return ObservedAt(row, field) >= ObservedAt(row, Execution::kStatusFieldNumber);
}

void TakeState(const OrderedRows& rows, int stage, Execution* out) {
  bool exit_taken = false;
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (!row->step_id().empty() || Stage(in) != stage) continue;
    if (out->status() == common::v1::EXECUTION_STATUS_UNSPECIFIED) out->set_status(in.status());
    if (out->outcome() == common::v1::EXECUTION_OUTCOME_UNSPECIFIED &&
        IsOfState(*row, Execution::kOutcomeFieldNumber))
      out->set_outcome(in.outcome());
    if (out->ending_cause() == common::v1::ENDING_CAUSE_UNSPECIFIED &&
        IsOfState(*row, Execution::kEndingCauseFieldNumber))
      out->set_ending_cause(in.ending_cause());
    if (out->scheduler_state().empty()) out->set_scheduler_state(in.scheduler_state());
    if (out->scheduler_reason().empty() && IsOfState(*row, Execution::kSchedulerReasonFieldNumber))
      out->set_scheduler_reason(in.scheduler_reason());
    if (!exit_taken && stage == 3 && (in.has_exit_code() || in.has_signal())) {
      // Both from one source: sacct and scontrol split a wait status in different ways.
      exit_taken = true;
      if (in.has_exit_code()) out->set_exit_code(in.exit_code());
      if (in.has_signal()) out->set_signal(in.signal());
    }
    if (!out->has_derived_exit_code() && in.has_derived_exit_code())
      out->set_derived_exit_code(in.derived_exit_code());
  }
}

void TakeTimes(const MergeContext& context, const OrderedRows& rows, int stage, Execution* out) {
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (!out->has_submit_time_ms() && in.has_submit_time_ms())
      out->set_submit_time_ms(in.submit_time_ms());
    if (!row->step_id().empty()) continue;
    // Of a waiting run the scheduler shows the start it expects.
    if (!out->has_start_time_ms() && in.has_start_time_ms() && Stage(in) != 1)
      out->set_start_time_ms(in.start_time_ms());
    // Of a running one the end by its time limit.
    const bool says_ended = Stage(in) == 3 || row->origin() == data::v1::FACT_ORIGIN_HOOK_EPILOG;
    if (stage == 3 && !out->has_end_time_ms() && in.has_end_time_ms() && says_ended)
      out->set_end_time_ms(in.end_time_ms());
  }
  if (!out->has_submit_time_ms() && context.submit_ms) out->set_submit_time_ms(*context.submit_ms);
  if (!out->has_start_time_ms() && context.start_ms && stage >= 2)
    out->set_start_time_ms(*context.start_ms);
}

bool HasOutOfMemoryStep(const Execution& e) {
  return std::any_of(e.steps().begin(), e.steps().end(), [](const auto& step) {
    return step.outcome() == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY;
  });
}

// The exit code of Epilog and the hooks' times, of a run that no scheduler tool spoke of.
void TakeHooksAlone(const OrderedRows& rows, Execution* out) {
  bool ended = false;
  bool ran = false;
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (!IsNodeScoped(*row)) continue;
    ran = true;
    if (row->origin() != data::v1::FACT_ORIGIN_HOOK_EPILOG) continue;
    ended = true;
    if (!row->step_id().empty()) continue;
    if (in.has_end_time_ms() && (!out->has_end_time_ms() || out->end_time_ms() < in.end_time_ms()))
      out->set_end_time_ms(in.end_time_ms());
    if (!out->has_exit_code() && in.has_exit_code()) out->set_exit_code(in.exit_code());
    if (!out->has_signal() && in.has_signal()) out->set_signal(in.signal());
  }
  if (!ran) return;
  if (!ended) {
    out->set_status(common::v1::EXECUTION_STATUS_RUNNING);
    return;
  }
  const std::string reason = "only hooks saw the end; no scheduler tool reported the final state";
  out->set_status(common::v1::EXECUTION_STATUS_UNKNOWN);
  out->set_outcome(common::v1::EXECUTION_OUTCOME_UNKNOWN);
  (*out->mutable_unknown())["status"] = reason;
  (*out->mutable_unknown())["outcome"] = reason;
}

void EndUnseen(Superseded superseded, Execution* out) {
  out->set_status(common::v1::EXECUTION_STATUS_UNKNOWN);
  out->set_outcome(common::v1::EXECUTION_OUTCOME_UNKNOWN);
  const bool requeued = superseded == Superseded::kByAttempt;
  out->set_ending_cause(requeued ? common::v1::ENDING_CAUSE_REQUEUED
                                 : common::v1::ENDING_CAUSE_NOT_SEEN);
  const std::string reason = requeued
                                 ? "a later attempt exists; nobody saw this one end"
                                 : "the scheduler has given the id to another run since; nobody "
                                   "saw this one end";
  (*out->mutable_unknown())["outcome"] = reason;
  (*out->mutable_unknown())["end_time_ms"] = reason;
}

}  // namespace

bool IsEnded(const Execution& e) { return Stage(e) == 3; }

void MergeLifecycle(const MergeContext& context, const OrderedRows& rows, Execution* out) {
  int stage = 0;
  bool scheduler_spoke = false;
  for (const StoredFacts* row : rows) {
    if (!row->step_id().empty()) continue;
    stage = std::max(stage, Stage(row->execution()));
    scheduler_spoke = scheduler_spoke || (!IsNodeScoped(*row) && Stage(row->execution()) > 0);
  }
  TakeState(rows, stage, out);
  TakeTimes(context, rows, stage, out);
  if (!scheduler_spoke && stage < 3) TakeHooksAlone(rows, out);
  if (stage < 3 && !IsEnded(*out) && context.superseded != Superseded::kNo)
    EndUnseen(context.superseded, out);
  if (out->status() == common::v1::EXECUTION_STATUS_UNSPECIFIED) {
    out->set_status(common::v1::EXECUTION_STATUS_UNKNOWN);
    out->mutable_unknown()->insert({"status", "no scheduler tool reported a state yet"});
  }
  if (!IsEnded(*out)) return;
  if (out->outcome() == common::v1::EXECUTION_OUTCOME_UNSPECIFIED)
    out->set_outcome(common::v1::EXECUTION_OUTCOME_UNKNOWN);
  // Slurm calls a job COMPLETED (or FAILED) whose step was killed for memory; its own words stay
  // in scheduler_state.
  if (HasOutOfMemoryStep(*out) && (out->outcome() == common::v1::EXECUTION_OUTCOME_SUCCESS ||
                                   out->outcome() == common::v1::EXECUTION_OUTCOME_FAILURE)) {
    out->set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
    out->set_ending_cause(common::v1::ENDING_CAUSE_MEMORY_LIMIT);
  }
}

}  // namespace expanse::data_plane
