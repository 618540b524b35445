// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/facts_usage.h"

#include "base/strings.h"
#include "collect/slurm/state_map.h"

namespace expanse::collect::slurm {
namespace {

namespace pb = expanse::common::v1;

int32_t ToInt32(int64_t v) { return v > INT32_MAX ? INT32_MAX : static_cast<int32_t>(v); }

constexpr char kSampledReason[] = "sacct MaxRSS: sampled, of the largest task, without page cache";
constexpr char kPeakReason[] = "sacct MaxRSS: the peak of the largest task's cgroup only";
constexpr char kNoNeedReason[] =
    "sacct MaxRSS is the cgroup's peak with page cache: how much of it was needed is not told";

/// 0 means that the step ended before the first sample was taken. why_floor: why the peak is no
/// more than a floor of what would have been; empty: it is the peak.
template <typename Message>
void SetMaxRss(MaxRssKind kind, int64_t bytes, const std::string& why_floor, Message* out) {
  if (bytes <= 0) return;
  auto* peak = out->mutable_memory_peak_enforced();
  peak->set_value(bytes);
  peak->set_bound(why_floor.empty() ? pb::BOUND_EXACT : pb::BOUND_AT_LEAST);
  peak->set_reason(why_floor);
  if (kind != MaxRssKind::kSampledRss) return;
  *out->mutable_memory_need() = *peak;
}

/// The limit is enforced on a step's cgroup on each node: its peak is that of its only task there.
std::string StepFloor(const JobRecord& job, const StepRecord& step) {
  if (job.max_rss_kind == MaxRssKind::kSampledRss) return kSampledReason;
  if (job.max_rss_kind == MaxRssKind::kUnknown)
    return "sacct MaxRSS: not known whether sampled or the cgroup's peak";
  if (StepOutcome(step) == pb::EXECUTION_OUTCOME_OUT_OF_MEMORY) return "killed at the memory limit";
  if (!step.tasks || *step.tasks != static_cast<int64_t>(step.nodes.size())) return kPeakReason;
  if (!step.end) return "still running";
  return StepOutcome(step) == pb::EXECUTION_OUTCOME_SUCCESS ||
                 StepOutcome(step) == pb::EXECUTION_OUTCOME_FAILURE
             ? ""
             : "the step was ended before its time";
}

void FillStep(const JobRecord& job, const StepRecord& step, pb::ExecutionStep* out) {
  out->set_step_id(ToUtf8(step.step_id));
  out->set_name(ToUtf8(step.name));
  out->set_scheduler_state(ToUtf8(step.state));
  if (step.exit && step.exit->code) out->set_exit_code(*step.exit->code);
  if (step.exit && step.exit->signal) out->set_signal(*step.exit->signal);
  if (step.start) out->set_start_time_ms(*step.start * 1000);
  if (step.end) out->set_end_time_ms(*step.end * 1000);
  if (step.tasks) out->set_tasks(ToInt32(*step.tasks));
  for (const auto& node : step.nodes) out->add_nodes(ToUtf8(node));
  out->set_outcome(StepOutcome(step));
  SetMaxRss(job.max_rss_kind, step.max_rss_bytes.value_or(0), StepFloor(job, step), out);
  if (step.cpu_seconds) {
    out->mutable_cpu_seconds()->set_value(*step.cpu_seconds);
    out->mutable_cpu_seconds()->set_bound(pb::BOUND_AT_LEAST);
    out->mutable_cpu_seconds()->set_reason("sacct TotalCPU leaves out processes not waited for");
  }
}

}  // namespace

void FillUsage(const JobRecord& job, bool ended, pb::Execution* out) {
  for (const auto& step : job.steps) FillStep(job, step, out->add_steps());
  const StepRecord* largest = nullptr;
  int measured = 0;
  for (const auto& step : job.steps) {
    if (step.step_id == "extern" || step.max_rss_bytes.value_or(0) <= 0) continue;
    ++measured;
    if (largest == nullptr || step.max_rss_bytes > largest->max_rss_bytes) largest = &step;
  }
  auto& unknown = *out->mutable_unknown();
  if (largest != nullptr) {
    std::string why = StepFloor(job, *largest);
    // The job's limit holds for all its steps together, which run at the same time.
    if (why.empty() && measured > 1) why = "sacct MaxRSS: the peak of the largest step only";
    SetMaxRss(job.max_rss_kind, *largest->max_rss_bytes, why, out);
    if (job.max_rss_kind != MaxRssKind::kSampledRss) unknown["memory_need"] = kNoNeedReason;
  } else if (ended) {
    unknown["memory_need"] = "sacct took no memory sample of this run";
  }
  if (job.cpu_seconds && ended) {
    out->mutable_cpu_seconds()->set_value(*job.cpu_seconds);
    out->mutable_cpu_seconds()->set_bound(pb::BOUND_AT_LEAST);
    out->mutable_cpu_seconds()->set_reason("sacct TotalCPU leaves out processes not waited for");
  }
}

}  // namespace expanse::collect::slurm
