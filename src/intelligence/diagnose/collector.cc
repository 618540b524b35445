// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/collector.h"

#include <algorithm>
#include <set>
#include <utility>

namespace expanse::intelligence::diagnose {
namespace {

constexpr int kMaxSimilar = 200;
constexpr int kMaxPoints = 400;

constexpr const char* kMetrics[] = {"cpu",       "memory",   "memory-need",     "processes",
                                    "oom-kills", "gpu-util", "gpu-memory-used", "gpu-power",
                                    "gpu-temp"};

std::string Reason(const Error& error) { return error.message(); }

bool IsAbsent(const Error& error) { return error.code() == Code::kNotFound; }

}  // namespace

Status Collector::CheckReadable(std::string_view bearer, const std::string& execution_id,
                                Deadline deadline) const {
  data::v1::GetExecutionRequest request;
  request.set_execution_id(execution_id);
  EXPANSE_CHECK_OK(executions_.GetExecution(bearer, request, deadline));
  return {};
}

Result<CaseInputs> Collector::Collect(std::string_view bearer, const std::string& execution_id,
                                      Deadline deadline) const {
  data::v1::GetExecutionRequest request;
  request.set_execution_id(execution_id);
  EXPANSE_TRY(auto response, executions_.GetExecution(bearer, request, deadline));
  CaseInputs in;
  in.execution = std::move(*response.mutable_execution());
  Compute(bearer, &in, deadline);
  Similar(bearer, &in, deadline);
  Bundle(bearer, &in, deadline);
  // A queued run has neither logs nor series; asking would only report their absence.
  if (in.execution.status() != common::v1::EXECUTION_STATUS_QUEUED) {
    Logs(bearer, &in, deadline);
    Metrics(bearer, &in, deadline);
  }
  return in;
}

void Collector::Logs(std::string_view bearer, CaseInputs* in, Deadline deadline) const {
  data::v1::GetLogTailsRequest request;
  request.set_execution_id(in->execution.execution_id());
  auto response = executions_.GetLogTails(bearer, request, deadline);
  if (!response.ok()) {
    in->not_seeable["logs"] = Reason(response.error());
    return;
  }
  std::string why;
  for (const auto& tail : response->tails()) {
    if (tail.content().empty() && !tail.unknown_reason().empty()) {
      why += (why.empty() ? "" : "; ") + tail.stream() + ": " + tail.unknown_reason();
      continue;
    }
    in->texts.push_back(
        {tail.stream(), TextKind::kProgram, tail.path(), tail.content(), tail.tail_offset()});
  }
  if (in->texts.empty()) in->not_seeable["logs"] = why.empty() ? "no log tail was captured" : why;
}

void Collector::Bundle(std::string_view bearer, CaseInputs* in, Deadline deadline) const {
  if (in->execution.bundle_id().empty()) return;
  data::v1::GetBundleRequest request;
  request.set_execution_id(in->execution.execution_id());
  request.set_with_content(true);
  auto response = executions_.GetBundle(bearer, request, deadline);
  if (!response.ok()) {
    if (!IsAbsent(response.error())) in->not_seeable["bundle"] = Reason(response.error());
    return;
  }
  in->bundle = std::move(*response->mutable_bundle());
}

void Collector::Similar(std::string_view bearer, CaseInputs* in, Deadline deadline) const {
  const auto& run = in->execution;
  data::v1::ListRunsOfSourceRequest request;
  request.set_compute_id(run.compute_id());
  request.set_script_hash(run.script_hash());
  request.set_tree_hash(run.tree_hash());
  request.set_args_hash(run.args_hash());
  request.set_job_name(run.job_name());
  request.set_user(run.user());
  request.set_limit(kMaxSimilar);
  auto response = executions_.ListRunsOfSource(bearer, request, deadline);
  if (!response.ok()) {
    in->not_seeable["similar"] = Reason(response.error());
    return;
  }
  for (auto& recorded : *response->mutable_runs())
    if (recorded.execution().execution_id() != run.execution_id())
      in->similar.push_back(std::move(recorded));
}

void Collector::Metrics(std::string_view bearer, CaseInputs* in, Deadline deadline) const {
  data::v1::QueryMetricsRequest request;
  request.set_execution_id(in->execution.execution_id());
  for (const char* name : kMetrics) request.add_metrics(name);
  request.set_aggregation(data::v1::METRIC_AGGREGATION_MAX);
  request.set_max_points(kMaxPoints);
  auto response = metrics_.QueryMetrics(bearer, request, deadline);
  if (!response.ok()) {
    in->not_seeable["metrics"] = Reason(response.error());
    return;
  }
  for (auto& series : *response->mutable_series())
    if (series.points_size() > 0) in->series.push_back(std::move(series));
}

void Collector::Compute(std::string_view bearer, CaseInputs* in, Deadline deadline) const {
  data::v1::GetComputeFactsRequest request;
  request.set_compute_id(in->execution.compute_id());
  auto response = executions_.GetComputeFacts(bearer, request, deadline);
  if (!response.ok()) {
    in->not_seeable["nodes"] = Reason(response.error());
    return;
  }
  in->compute_name = response->compute_name();
  const std::set<std::string> mine(in->execution.nodes().begin(), in->execution.nodes().end());
  for (auto& node : *response->mutable_facts()->mutable_nodes())
    if (mine.count(node.name()) != 0) in->nodes.push_back(std::move(node));
}

}  // namespace expanse::intelligence::diagnose
