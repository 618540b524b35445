// SPDX-License-Identifier: Apache-2.0
// What the published shape shows beside the cause: snapshot, field status, recurrence, evidence.
#include <algorithm>
#include <set>
#include <string>

#include "base/strings.h"
#include "base/units.h"
#include "domain/failure_class.h"
#include "intelligence/diagnose/diagnose.h"
#include "intelligence/statistics/outcome_distribution.h"

namespace expanse::intelligence::diagnose {
namespace {

using common::v1::Execution;

// Rows of the display that a class implicates.
std::set<std::string_view> Implicated(std::string_view failure_class) {
  if (failure_class == "host_out_of_memory")
    return {"host_ram_observed_peak_gb", "host_ram_requested_gb"};
  if (failure_class == "walltime_exceeded" || failure_class == "requeued_near_time_limit" ||
      failure_class == "job_hang")
    return {"runtime_s"};
  if (failure_class == "gpu_out_of_memory" || failure_class == "gpu_kv_cache_insufficient")
    return {"gpu_memory_available_gb", "gpu_memory_observed_gb"};
  if (failure_class == "gpu_idle_allocation" || failure_class == "data_loader_stalled")
    return {"gpu_utilisation_pct"};
  if (failure_class == "gpu_not_visible" || failure_class == "gpu_fallen_off_bus")
    return {"gpu_count"};
  return {};
}

std::string ReasonOf(const Execution& run, const std::string& field, const char* otherwise) {
  const auto it = run.unknown().find(field);
  return it == run.unknown().end() ? otherwise : it->second;
}

void FillGpu(const CaseView& view, v1::ResourceSnapshot* s) {
  const Execution& run = *view.run;
  const bool has_gpu = view.gpus > 0 || run.allocated().gpu_count() > 0 || !run.gpu_model().empty();
  if (!has_gpu) return;
  auto& unknown = *s->mutable_unknown();
  const int count = std::max(view.gpus, run.allocated().gpu_count());
  if (count > 0) s->set_gpu_count(count);
  const std::string type = !run.gpu_model().empty() ? run.gpu_model() : run.requested().gpu_type();
  if (!type.empty())
    s->set_gpu_type(type);
  else
    unknown["gpu_type"] = ReasonOf(run, "gpu_model", "no GPU was sampled");
  if (const auto cuda = view.Observed("cuda_version"))
    s->set_cuda_version(ToUtf8(*cuda));
  else
    unknown["cuda_version"] = "not captured by the collectors";
  if (run.gpu_utilisation_pct().has_value())
    s->set_gpu_utilisation_pct(run.gpu_utilisation_pct().value());
  else
    unknown["gpu_utilisation_pct"] = ReasonOf(run, "gpu_utilisation_pct", "no GPU was sampled");
  if (run.has_gpu_memory_total_bytes())
    s->set_gpu_memory_available_bytes(run.gpu_memory_total_bytes());
  else
    unknown["gpu_memory_available_bytes"] =
        ReasonOf(run, "gpu_memory_total_bytes", "no GPU was sampled");
  if (run.gpu_memory_peak_bytes().has_value())
    s->set_gpu_memory_observed_bytes(run.gpu_memory_peak_bytes().value());
  else
    unknown["gpu_memory_observed_bytes"] =
        ReasonOf(run, "gpu_memory_peak_bytes", "no GPU was sampled");
}

void FillSnapshot(const CaseView& view, v1::ResourceSnapshot* s) {
  const Execution& run = *view.run;
  auto& unknown = *s->mutable_unknown();
  if (view.elapsed_s)
    s->set_runtime_seconds(*view.elapsed_s);
  else if (view.ending == Ending::kQueued)
    unknown["runtime_seconds"] = "the execution has not started";
  else
    unknown["runtime_seconds"] = ReasonOf(run, "runtime_seconds", "start or end was not seen");
  FillGpu(view, s);
  if (run.requested().has_cpu_cores())
    s->set_cpu_requested(run.requested().cpu_cores());
  else
    unknown["cpu_requested"] = ReasonOf(run, "requested.cpu_cores", "the request was not seen");
  if (view.need) {
    s->set_host_ram_observed_peak_bytes(*view.need);
    s->set_host_ram_observed_peak_kind("need");
  } else if (view.peak_enforced) {
    s->set_host_ram_observed_peak_bytes(*view.peak_enforced);
    s->set_host_ram_observed_peak_kind("enforced");
  } else {
    unknown["host_ram_observed_peak_bytes"] =
        ReasonOf(run, "memory_peak_enforced", "no memory peak was measured");
  }
  if (view.memory_limit)
    s->set_host_ram_requested_bytes(*view.memory_limit);
  else
    unknown["host_ram_requested_bytes"] =
        ReasonOf(run, "requested.memory_bytes", "the request was not seen");
}

void FillFieldStatus(const CaseView& view, const Verdict& verdict, v1::DiagnoseDisplay* display) {
  auto& status = *display->mutable_field_status();
  const auto& s = display->resource_snapshot();
  const std::string& name = verdict.finding.failure_class;
  status["failure_class"] = name == domain::kNoFailure      ? v1::DIAGNOSE_FIELD_STATUS_OK
                            : name == domain::kUnattributed ? v1::DIAGNOSE_FIELD_STATUS_UNKNOWN
                                                            : v1::DIAGNOSE_FIELD_STATUS_ERROR;
  const auto set = [&](const char* row, bool seen, bool applies) {
    if (seen)
      status[row] = v1::DIAGNOSE_FIELD_STATUS_OK;
    else if (applies)
      status[row] = v1::DIAGNOSE_FIELD_STATUS_UNKNOWN;
  };
  const bool gpu = s.has_gpu_count() || !s.gpu_type().empty();
  const bool ran = view.ending != Ending::kQueued;
  set("gpu_utilisation_pct", s.has_gpu_utilisation_pct(), gpu && ran);
  set("gpu_memory_available_gb", s.has_gpu_memory_available_bytes(), gpu && ran);
  set("gpu_memory_observed_gb", s.has_gpu_memory_observed_bytes(), gpu && ran);
  set("host_ram_observed_peak_gb", s.has_host_ram_observed_peak_bytes(), ran);
  set("host_ram_requested_gb", s.has_host_ram_requested_bytes(), true);
  // Within 5 % of the limit and not killed: worth a look.
  if (view.peak_enforced && view.memory_limit &&
      *view.peak_enforced >= *view.memory_limit - *view.memory_limit / 20)
    status["host_ram_observed_peak_gb"] = v1::DIAGNOSE_FIELD_STATUS_WARNING;
  for (const auto& step : view.steps)
    if (name == domain::kNoFailure && step.step->exit_code() != 0)
      status["state"] = v1::DIAGNOSE_FIELD_STATUS_WARNING;
  const auto implicated = Implicated(name);
  if (implicated.count("runtime_s") != 0) status["runtime_s"] = v1::DIAGNOSE_FIELD_STATUS_ERROR;
  if (implicated.count("gpu_count") != 0 && gpu)
    status["gpu_count"] = v1::DIAGNOSE_FIELD_STATUS_ERROR;
  for (std::string_view row : implicated)
    if (auto it = status.find(std::string(row));
        it != status.end() && it->second != v1::DIAGNOSE_FIELD_STATUS_UNKNOWN)
      it->second = v1::DIAGNOSE_FIELD_STATUS_ERROR;
}

// Other recorded runs of exactly this source whose ending says something about it.
void FillRecurrence(const CaseView& view, v1::DiagnoseDisplay* display) {
  int runs = 0;
  int failures = 0;
  for (const auto& r : view.in->similar) {
    if (r.basis() != "exact_bundle" || r.execution().execution_id() == view.run->execution_id())
      continue;
    switch (r.execution().outcome()) {
      case common::v1::EXECUTION_OUTCOME_SUCCESS:
        ++runs;
        break;
      case common::v1::EXECUTION_OUTCOME_FAILURE:
      case common::v1::EXECUTION_OUTCOME_TIMEOUT:
      case common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY:
        ++runs;
        ++failures;
        break;
      default:
        break;  // cancelled, unknown, unfinished: no observation of the source
    }
  }
  if (runs < kMinRecordedRuns) return;
  *display->mutable_recurrence() =
      ToDistribution(JeffreysPosterior(failures, runs), runs - failures, "exact_bundle");
}

std::string Plural(int n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

int64_t PeakOf(const Execution& run) {
  return run.memory_need().has_value() ? run.memory_need().value()
                                       : run.memory_peak_enforced().value();
}

void FillEvidence(const CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result) {
  int succeeded = 0;
  int above = 0;
  int64_t least = 0;
  const Execution* representative = nullptr;
  const Execution* first = nullptr;
  int failed_alike = 0;
  const Execution* alike = nullptr;
  const bool memory = verdict.finding.failure_class == "host_out_of_memory";
  for (const auto& r : view.in->similar) {
    const Execution& e = r.execution();
    if (e.outcome() == common::v1::EXECUTION_OUTCOME_SUCCESS) {
      ++succeeded;
      if (first == nullptr) first = &e;
      const int64_t peak = PeakOf(e);
      if (memory && view.memory_limit && peak > *view.memory_limit) {
        if (above == 0 || peak < least) least = peak;
        if (representative == nullptr) representative = &e;
        ++above;
      }
    } else if (view.ending == Ending::kFailed && e.outcome() == view.run->outcome()) {
      ++failed_alike;
      if (alike == nullptr) alike = &e;
    }
  }
  const auto add = [&](const Execution& e, std::string summary) {
    auto* out = result->add_evidence();
    out->set_execution_id(e.execution_id());
    out->set_summary(std::move(summary));
  };
  if (above > 0) {
    const std::string size =
        least >= kGiB ? std::to_string(least / kGiB) + "G" : std::to_string(least / kMiB) + "M";
    add(*representative, Plural(above, "similar workload", "similar workloads") +
                             " succeeded with " + size + " or more");
  } else if (succeeded > 0) {
    add(*first, Plural(succeeded, "similar workload", "similar workloads") + " succeeded");
  }
  if (failed_alike > 0)
    add(*alike, Plural(failed_alike, "similar workload", "similar workloads") +
                    " ended with the same outcome");
}

}  // namespace

void FillDisplay(const CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result) {
  auto* display = result->mutable_display();
  display->set_target(view.run->execution_id());
  display->set_job_name(view.run->job_name());
  display->set_state(std::string(StateName(view)));
  display->set_failure_class(verdict.finding.failure_class);
  display->set_compute(view.in->compute_name);
  FillSnapshot(view, display->mutable_resource_snapshot());
  FillFieldStatus(view, verdict, display);
  FillRecurrence(view, display);
  FillEvidence(view, verdict, result);
}

}  // namespace expanse::intelligence::diagnose
