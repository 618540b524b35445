// SPDX-License-Identifier: Apache-2.0
// Peaks, CPU seconds and durations of the whole run, with what is only a floor called one.
#include <algorithm>
#include <map>
#include <string>

#include "data_plane/merge/parts.h"
#include "data_plane/merge/peaks.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::ExecutionStep;
using common::v1::MeasuredDouble;
using data::v1::StoredFacts;

// Why measurements of a run that ended this way are floors; empty when they are what it takes.
std::string CensorReason(const Execution& e) {
  if (!IsEnded(e)) return "still running";
  switch (e.outcome()) {
    case common::v1::EXECUTION_OUTCOME_TIMEOUT:
      return "ended by the time limit";
    case common::v1::EXECUTION_OUTCOME_CANCELLED:
      return "cancelled";
    case common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY:
      return "killed at the memory limit";
    case common::v1::EXECUTION_OUTCOME_UNKNOWN:
      return "ended from outside before it was done";
    default:
      return "";
  }
}

void MergeMemory(const OrderedRows& rows, Execution* out) {
  for (const StoredFacts* row : rows) {
    if (!SpeaksOfWholeRun(*row)) continue;  // in its step
    const Execution& in = row->execution();
    if (in.has_memory_peak_enforced())
      FoldPeak(in.memory_peak_enforced(), out->mutable_memory_peak_enforced());
    if (in.has_memory_need()) FoldPeak(in.memory_need(), out->mutable_memory_need());
  }
  for (const ExecutionStep& step : out->steps()) {
    if (step.has_memory_peak_enforced())
      FoldPeak(step.memory_peak_enforced(), out->mutable_memory_peak_enforced());
    if (step.has_memory_need()) FoldPeak(step.memory_need(), out->mutable_memory_need());
  }
}

// Of the steps; exact when each is (extern holds no work of the user's).
MeasuredDouble CpuOfSteps(const Execution& e) {
  MeasuredDouble sum;
  bool complete = true;
  for (const ExecutionStep& step : e.steps()) {
    const bool exact =
        step.cpu_seconds().has_value() && step.cpu_seconds().bound() == common::v1::BOUND_EXACT;
    complete = complete && (exact || step.step_id() == "extern");
    if (step.cpu_seconds().has_value()) sum.set_value(sum.value() + step.cpu_seconds().value());
  }
  sum.set_bound(complete ? common::v1::BOUND_EXACT : common::v1::BOUND_AT_LEAST);
  if (!complete) sum.set_reason("not every step reported its exact CPU time");
  return sum;
}

// Of the job's cgroups; exact when each node's is.
MeasuredDouble CpuOfNodes(const std::map<std::string, MeasuredDouble>& by_node, int nodes) {
  MeasuredDouble sum;
  bool complete = static_cast<int>(by_node.size()) >= nodes;
  for (const auto& [node, part] : by_node) {
    sum.set_value(sum.value() + part.value());
    complete = complete && part.bound() == common::v1::BOUND_EXACT;
  }
  sum.set_bound(complete ? common::v1::BOUND_EXACT : common::v1::BOUND_AT_LEAST);
  if (!complete) sum.set_reason("not every node reported the exact CPU time of the job");
  return sum;
}

// cgroup at the end of the steps or of the job, else the largest floor there is (sacct TotalCPU
// leaves out processes that nobody waited for, samples what came after the last one).
void MergeCpu(const OrderedRows& rows, Execution* out) {
  MeasuredDouble accounted;
  std::map<std::string, MeasuredDouble> by_node;
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (!SpeaksOfWholeRun(*row) || !in.cpu_seconds().has_value()) continue;
    FoldPeak(in.cpu_seconds(), IsNodeScoped(*row) ? &by_node[row->node()] : &accounted);
  }
  const MeasuredDouble steps = CpuOfSteps(*out);
  const MeasuredDouble nodes = CpuOfNodes(by_node, out->nodes_size());
  MeasuredDouble best;
  for (const MeasuredDouble* exact : {&steps, &nodes})
    if (exact->has_value() && exact->bound() == common::v1::BOUND_EXACT) FoldPeak(*exact, &best);
  if (!best.has_value())
    for (const auto& floor : {accounted, steps, nodes}) FoldPeak(floor, &best);
  if (best.has_value()) *out->mutable_cpu_seconds() = best;
}

void MergeRuntime(const OrderedRows& rows, Execution* out) {
  if (!out->has_start_time_ms()) return;
  // Whole seconds of one source beside milliseconds of another may cross by less than a second.
  if (out->has_end_time_ms() && out->end_time_ms() + 1000 <= out->start_time_ms()) {
    (*out->mutable_unknown())["runtime_seconds"] =
        "the end is told to be before the start; a clock was set back, or one of the two is of "
        "another attempt";
    return;
  }
  auto* runtime = out->mutable_runtime_seconds();
  if (out->has_end_time_ms()) {
    const int64_t ms = std::max<int64_t>(0, out->end_time_ms() - out->start_time_ms());
    runtime->set_value((ms + 500) / 1000);
    runtime->set_bound(common::v1::BOUND_EXACT);
    // The collector knows why a length is not what the run would have taken (a signal, say).
    for (const StoredFacts* row : rows)
      if (!IsNodeScoped(*row) &&
          row->execution().runtime_seconds().bound() == common::v1::BOUND_AT_LEAST)
        Censor(row->execution().runtime_seconds().reason(), runtime);
    return;
  }
  int64_t last = 0;
  for (const StoredFacts* row : rows) last = std::max(last, row->last_observed_ms());
  runtime->set_value(std::max<int64_t>(0, last - out->start_time_ms()) / 1000);
  runtime->set_bound(common::v1::BOUND_AT_LEAST);
  runtime->set_reason(IsEnded(*out) ? "nobody saw the end" : "still running");
}

void MergeGpu(const OrderedRows& rows, Execution* out) {
  double utilisation = 0;
  int measured = 0;
  bool exact = true;
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (in.has_gpu_memory_peak_bytes())
      FoldPeak(in.gpu_memory_peak_bytes(), out->mutable_gpu_memory_peak_bytes());
    if (in.has_cpu_cores_used_peak())
      FoldPeak(in.cpu_cores_used_peak(), out->mutable_cpu_cores_used_peak());
    if (!in.gpu_utilisation_pct().has_value()) continue;
    utilisation += in.gpu_utilisation_pct().value();
    exact = exact && in.gpu_utilisation_pct().bound() == common::v1::BOUND_EXACT;
    ++measured;
  }
  if (measured == 0) return;
  out->mutable_gpu_utilisation_pct()->set_value(utilisation / measured);  // mean over nodes
  out->mutable_gpu_utilisation_pct()->set_bound(exact ? common::v1::BOUND_EXACT
                                                      : common::v1::BOUND_AT_LEAST);
}

void MergeOomKills(const OrderedRows& rows, Execution* out) {
  std::map<std::string, int64_t> by_node;
  for (const StoredFacts* row : rows)
    if (SpeaksOfWholeRun(*row) && row->execution().has_oom_kills()) {
      int64_t& kills = by_node[row->node()];
      kills = std::max(kills, row->execution().oom_kills());
    }
  bool known = !by_node.empty();
  int64_t whole = 0;
  for (const auto& [node, kills] : by_node) whole += kills;
  int64_t steps = 0;
  for (const ExecutionStep& step : out->steps()) {
    known = known || step.has_oom_kills();
    steps += step.oom_kills();
  }
  if (known) out->set_oom_kills(std::max(whole, steps));
}

// Sum over the steps. A step that reports none (extern, whose only process sleeps) takes away
// exactness unless it is that one.
template <typename Get>
common::v1::MeasuredInt64 SumOverSteps(const Execution& e, Get get) {
  common::v1::MeasuredInt64 sum;
  std::string missing;
  for (const ExecutionStep& step : e.steps()) {
    const common::v1::MeasuredInt64& part = get(step);
    if (!part.has_value()) {
      if (step.step_id() != "extern" && missing.empty())
        missing = part.reason().empty() ? "not every step reported it" : part.reason();
      continue;
    }
    sum.set_value(sum.value() + part.value());
    if (sum.bound() == common::v1::BOUND_AT_LEAST) continue;
    sum.set_bound(part.bound());
    sum.set_reason(part.reason());
  }
  if (!sum.has_value())
    sum.set_reason(missing);
  else if (!missing.empty())
    Censor(missing, &sum);
  return sum;
}

void MergeIo(Execution* out) {
  const auto keep = [](const common::v1::MeasuredInt64& sum, auto set) {
    if (sum.has_value() || !sum.reason().empty()) *set() = sum;
  };
  const Execution& e = *out;
  keep(SumOverSteps(
           e, [](const ExecutionStep& s) -> auto& { return s.io_read_bytes(); }),
       [out] { return out->mutable_io_read_bytes(); });
  keep(SumOverSteps(
           e, [](const ExecutionStep& s) -> auto& { return s.io_write_bytes(); }),
       [out] { return out->mutable_io_write_bytes(); });
  keep(SumOverSteps(
           e, [](const ExecutionStep& s) -> auto& { return s.network_receive_bytes(); }),
       [out] { return out->mutable_network_receive_bytes(); });
  keep(SumOverSteps(
           e, [](const ExecutionStep& s) -> auto& { return s.network_transmit_bytes(); }),
       [out] { return out->mutable_network_transmit_bytes(); });
}

}  // namespace

void MergeMeasurements(const OrderedRows& rows, Execution* out) {
  MergeMemory(rows, out);
  MergeCpu(rows, out);
  MergeRuntime(rows, out);
  MergeGpu(rows, out);
  MergeOomKills(rows, out);
  MergeIo(out);
  const std::string reason = CensorReason(*out);
  if (reason.empty()) return;
  if (out->has_memory_peak_enforced()) Censor(reason, out->mutable_memory_peak_enforced());
  if (out->has_memory_need()) Censor(reason, out->mutable_memory_need());
  if (out->has_cpu_seconds()) Censor(reason, out->mutable_cpu_seconds());
  if (out->has_cpu_cores_used_peak()) Censor(reason, out->mutable_cpu_cores_used_peak());
  if (out->has_runtime_seconds()) Censor(reason, out->mutable_runtime_seconds());
  if (out->has_gpu_memory_peak_bytes()) Censor(reason, out->mutable_gpu_memory_peak_bytes());
}

}  // namespace expanse::data_plane
