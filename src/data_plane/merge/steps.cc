// SPDX-License-Identifier: Apache-2.0
// Steps of a run. Accounting speaks of a step over all its nodes; hooks and cgroups of one node.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "data_plane/merge/parts.h"
#include "data_plane/merge/peaks.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::ExecutionStep;
using common::v1::MeasuredDouble;
using data::v1::StoredFacts;

// What one row says of one step.
struct View {
  const StoredFacts* row;
  ExecutionStep step;
};

ExecutionStep StepOfRow(const StoredFacts& row) {
  const Execution& in = row.execution();
  for (const ExecutionStep& inner : in.steps())
    if (inner.step_id() == row.step_id()) return inner;
  ExecutionStep step;
  step.set_step_id(row.step_id());
  if (in.has_start_time_ms()) step.set_start_time_ms(in.start_time_ms());
  if (in.has_end_time_ms()) step.set_end_time_ms(in.end_time_ms());
  if (in.has_exit_code()) step.set_exit_code(in.exit_code());
  if (in.has_signal()) step.set_signal(in.signal());
  if (in.has_memory_peak_enforced())
    *step.mutable_memory_peak_enforced() = in.memory_peak_enforced();
  if (in.has_memory_need()) *step.mutable_memory_need() = in.memory_need();
  if (in.has_cpu_seconds()) *step.mutable_cpu_seconds() = in.cpu_seconds();
  if (in.has_oom_kills()) step.set_oom_kills(in.oom_kills());
  step.set_outcome(in.outcome());
  return step;
}

std::map<std::string, std::vector<View>> ViewsByStep(const OrderedRows& rows) {
  std::map<std::string, std::vector<View>> views;
  for (const StoredFacts* row : rows) {
    if (!row->step_id().empty()) views[row->step_id()].push_back({row, StepOfRow(*row)});
    for (const ExecutionStep& step : row->execution().steps())
      if (step.step_id() != row->step_id()) views[step.step_id()].push_back({row, step});
  }
  return views;
}

bool Ended(const ExecutionStep& step) {
  return step.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED;
}

void TakeScalars(const View& view, ExecutionStep* out) {
  const ExecutionStep& in = view.step;
  if (out->name().empty()) out->set_name(in.name());
  if (out->scheduler_state().empty()) out->set_scheduler_state(in.scheduler_state());
  if (!out->has_start_time_ms() && in.has_start_time_ms())
    out->set_start_time_ms(in.start_time_ms());
  if (!out->has_end_time_ms() && in.has_end_time_ms()) out->set_end_time_ms(in.end_time_ms());
  if (!out->has_exit_code() && !out->has_signal()) {
    if (in.has_exit_code()) out->set_exit_code(in.exit_code());
    if (in.has_signal()) out->set_signal(in.signal());
  }
  if (!out->has_tasks() && in.has_tasks()) out->set_tasks(in.tasks());
  if (!Ended(*out)) out->set_outcome(in.outcome());
}

void MergeNodes(const std::vector<View>& views, ExecutionStep* out) {
  std::set<std::string> nodes;
  for (const View& view : views) {
    if (!IsNodeScoped(*view.row) && view.step.nodes_size() > 0) {
      nodes = {view.step.nodes().begin(), view.step.nodes().end()};
      break;
    }
    if (IsNodeScoped(*view.row) && !view.row->node().empty()) nodes.insert(view.row->node());
  }
  for (const std::string& node : nodes) out->add_nodes(node);
}

// Sum over the nodes of the best that is known of each; accounting's total when that is not exact.
void MergeCpu(const std::vector<View>& views, ExecutionStep* out) {
  std::map<std::string, MeasuredDouble> exact;    // TaskEpilog, by node
  std::map<std::string, MeasuredDouble> sampled;  // cgroup sampler, by node
  MeasuredDouble total;                           // accounting
  for (const View& view : views) {
    if (!view.step.cpu_seconds().has_value()) continue;
    if (!IsNodeScoped(*view.row))
      FoldPeak(view.step.cpu_seconds(), &total);
    else if (view.row->origin() == data::v1::FACT_ORIGIN_CGROUP)
      FoldPeak(view.step.cpu_seconds(), &sampled[view.row->node()]);
    else
      FoldPeak(view.step.cpu_seconds(), &exact[view.row->node()]);
  }
  const auto sum = [](const std::map<std::string, MeasuredDouble>& parts) {
    MeasuredDouble out_sum;
    for (const auto& [node, part] : parts) {
      out_sum.set_value(out_sum.value() + part.value());
      if (out_sum.bound() != common::v1::BOUND_AT_LEAST) {
        out_sum.set_bound(part.bound());
        out_sum.set_reason(part.reason());
      }
    }
    return out_sum;
  };
  const bool every_node = !exact.empty() && exact.size() >= static_cast<size_t>(out->nodes_size());
  if (every_node)
    *out->mutable_cpu_seconds() = sum(exact);
  else if (total.has_value())
    *out->mutable_cpu_seconds() = total;
  else if (!exact.empty() || !sampled.empty()) {
    for (const auto& [node, part] : exact) sampled[node] = part;
    *out->mutable_cpu_seconds() = sum(sampled);
    Censor("not every node of the step reported its exact CPU time", out->mutable_cpu_seconds());
  }
}

void MergePeaks(const std::vector<View>& views, ExecutionStep* out) {
  std::map<std::string, int64_t> oom_by_node;
  for (const View& view : views) {
    if (view.step.has_memory_peak_enforced())
      FoldPeak(view.step.memory_peak_enforced(), out->mutable_memory_peak_enforced());
    if (view.step.has_memory_need()) FoldPeak(view.step.memory_need(), out->mutable_memory_need());
    if (!view.step.has_oom_kills()) continue;
    int64_t& kills = oom_by_node[IsNodeScoped(*view.row) ? view.row->node() : ""];
    kills = std::max(kills, view.step.oom_kills());
  }
  if (oom_by_node.empty()) return;
  int64_t by_nodes = 0;
  int64_t whole = 0;
  for (const auto& [node, kills] : oom_by_node) (node.empty() ? whole : by_nodes) += kills;
  out->set_oom_kills(std::max(whole, by_nodes));
}

// Sum over the nodes of the best that is known of each; exact when each node's is. Only nodes
// report I/O, and a reason why there is none.
template <typename Get>
common::v1::MeasuredInt64 SumOverNodes(const std::vector<View>& views, int nodes, Get get) {
  std::map<std::string, common::v1::MeasuredInt64> by_node;
  for (const View& view : views) FoldPeak(get(view.step), &by_node[view.row->node()]);
  common::v1::MeasuredInt64 sum;
  int known = 0;
  for (const auto& [node, part] : by_node) {
    if (!part.has_value()) {
      if (!sum.has_value() && sum.reason().empty()) sum.set_reason(part.reason());
      continue;
    }
    if (!sum.has_value()) sum.clear_reason();
    sum.set_value(sum.value() + part.value());
    if (sum.bound() != common::v1::BOUND_AT_LEAST) {
      sum.set_bound(part.bound());
      sum.set_reason(part.reason());
    }
    ++known;
  }
  if (known < nodes) Censor("not every node of the step reported it", &sum);
  return sum;
}

bool IsWorthKeeping(const common::v1::MeasuredInt64& m) {
  return m.has_value() || !m.reason().empty();
}

void MergeIo(const std::vector<View>& views, ExecutionStep* out) {
  const int nodes = out->nodes_size();
  const auto merge = [&](auto get, auto set) {
    auto sum = SumOverNodes(views, nodes, get);
    if (IsWorthKeeping(sum)) *set() = std::move(sum);
  };
  merge([](const ExecutionStep& s) { return s.io_read_bytes(); },
        [out] { return out->mutable_io_read_bytes(); });
  merge([](const ExecutionStep& s) { return s.io_write_bytes(); },
        [out] { return out->mutable_io_write_bytes(); });
  merge([](const ExecutionStep& s) { return s.network_receive_bytes(); },
        [out] { return out->mutable_network_receive_bytes(); });
  merge([](const ExecutionStep& s) { return s.network_transmit_bytes(); },
        [out] { return out->mutable_network_transmit_bytes(); });
}

void MergeProcesses(const std::vector<View>& views, ExecutionStep* out) {
  for (const View& view : views)
    for (const auto& process : view.step.processes()) *out->add_processes() = process;
}

bool ById(const ExecutionStep& a, const ExecutionStep& b) {
  // batch and extern first, then numbered steps by number.
  const auto key = [](const ExecutionStep& s) {
    const bool numbered = !s.step_id().empty() && s.step_id()[0] >= '0' && s.step_id()[0] <= '9';
    return std::tuple(numbered, numbered ? s.step_id().size() : 0, s.step_id());
  };
  return key(a) < key(b);
}

}  // namespace

bool SpeaksOfWholeRun(const StoredFacts& row) {
  if (row.step_id().empty()) return true;
  return std::any_of(row.execution().steps().begin(), row.execution().steps().end(),
                     [&](const ExecutionStep& step) { return step.step_id() == row.step_id(); });
}

void MergeSteps(const OrderedRows& rows, Execution* out) {
  std::vector<ExecutionStep> steps;
  for (const auto& [id, views] : ViewsByStep(rows)) {
    ExecutionStep step;
    step.set_step_id(id);
    for (const View& view : views) TakeScalars(view, &step);
    MergeNodes(views, &step);
    MergeCpu(views, &step);
    MergePeaks(views, &step);
    MergeIo(views, &step);
    MergeProcesses(views, &step);
    const bool was_killed_for_memory =
        step.oom_kills() > 0 || std::any_of(views.begin(), views.end(), [](const View& view) {
          return view.step.outcome() == common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY;
        });
    if (was_killed_for_memory) {
      step.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
      Censor("killed at the memory limit", step.mutable_memory_peak_enforced());
      Censor("killed at the memory limit", step.mutable_memory_need());
      if (!step.memory_peak_enforced().has_value()) step.clear_memory_peak_enforced();
      if (!step.memory_need().has_value()) step.clear_memory_need();
    }
    steps.push_back(std::move(step));
  }
  std::sort(steps.begin(), steps.end(), ById);
  for (ExecutionStep& step : steps) *out->add_steps() = std::move(step);
}

}  // namespace expanse::data_plane
