// SPDX-License-Identifier: Apache-2.0
#include "collect/host/event_facts.h"

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"

namespace expanse::collect::host {
namespace {

namespace v1 = expanse::common::v1;
using hook::HookEvent;
using hook::HookKind;

void Set(int64_t value, bool exact, const std::string& reason, v1::MeasuredInt64* out) {
  out->set_value(value);
  out->set_bound(exact ? v1::BOUND_EXACT : v1::BOUND_AT_LEAST);
  if (!exact) out->set_reason(reason);
}

PeakInput InputOf(const hook::HookCgroup& cgroup, const MemorySeen& seen, bool ended) {
  PeakInput input;
  input.peak = cgroup.peak;
  input.usage_now = cgroup.usage;
  if (cgroup.file_lru) input.cache_now = *cgroup.file_lru + cgroup.slab_reclaimable.value_or(0);
  input.need_floor = seen.need;
  input.cache_seen = seen.cache;
  input.cache_most = seen.cache_most;
  input.limit = cgroup.limit;
  input.limit_hits = cgroup.limit_hits;
  input.oom_kills = cgroup.oom_kills;
  input.ended = ended;
  return input;
}

void SetText(const HookEvent& event, const char* name, std::string* out) {
  if (const auto value = event.Env(name)) *out = ToUtf8(*value);
}

std::optional<int64_t> EpochMillis(const HookEvent& event, const char* name) {
  const auto seconds = event.EnvInt(name);
  if (!seconds || *seconds <= 0) return std::nullopt;
  return *seconds * 1000;
}

/// The environment of a task hook is the user's: `sbatch` inside a requeued job hands its own
/// SLURM_RESTART_COUNT on, and a script may export anything. Which attempt it is, and whose, is
/// only believed of the hooks that slurmd and slurmctld run.
void SetKey(const HookEvent& event, v1::RunKey* key) {
  key->set_source_type(v1::SOURCE_TYPE_SLURM);
  if (const auto id = event.job_id()) key->set_native_id(std::to_string(*id));
  key->set_observed_time_ms(ToUnixMillis(event.time()));
  if (IsTaskKind(event.kind)) return;
  auto restarts = event.EnvInt("SLURM_JOB_RESTART_COUNT");
  if (!restarts) restarts = event.EnvInt("SLURM_RESTART_COUNT");
  if (restarts) key->set_restart_count(static_cast<int32_t>(*restarts));
  if (const auto start = EpochMillis(event, "SLURM_JOB_START_TIME")) key->set_start_time_ms(*start);
  SetText(event, "SLURM_JOB_SLUID", key->mutable_sluid());
}

/// "139:0": exit code and signal as slurmctld has them.
void SetExit(const HookEvent& event, v1::Execution* execution) {
  const auto text = event.Env("SLURM_JOB_EXIT_CODE2");
  if (!text) return;
  const auto parts = Split(*text, ':');
  if (parts.size() != 2) return;
  const auto code = ParseInt64(parts[0]);
  const auto signal = ParseInt64(parts[1]);
  if (code) execution->set_exit_code(static_cast<int32_t>(*code));
  if (signal && *signal != 0) execution->set_signal(static_cast<int32_t>(*signal));
}

void SetGroup(const HookEvent& event, v1::Execution* execution) {
  if (const auto array = event.Env("SLURM_ARRAY_JOB_ID")) {
    execution->mutable_group()->set_array_job_id(ToUtf8(*array));
    if (const auto task = event.EnvInt("SLURM_ARRAY_TASK_ID"))
      execution->mutable_group()->set_array_task_id(static_cast<int32_t>(*task));
  }
  if (const auto het = event.Env("SLURM_HET_JOB_ID")) {
    execution->mutable_group()->set_het_job_id(ToUtf8(*het));
    if (const auto offset = event.EnvInt("SLURM_HET_JOB_OFFSET"))
      execution->mutable_group()->set_het_component(static_cast<int32_t>(*offset));
  }
}

void SetJobFields(const HookEvent& event, v1::Execution* execution) {
  execution->set_source_type(v1::SOURCE_TYPE_SLURM);
  if (IsTaskKind(event.kind)) return;
  SetText(event, "SLURM_JOB_USER", execution->mutable_user());
  SetText(event, "SLURM_JOB_ACCOUNT", execution->mutable_account());
  SetText(event, "SLURM_JOB_PARTITION", execution->mutable_partition());
  SetText(event, "SLURM_JOB_NAME", execution->mutable_job_name());
  SetText(event, "SLURM_JOB_QOS", execution->mutable_qos());
  SetText(event, "SLURM_CLUSTER_NAME", execution->mutable_cluster());
  SetText(event, "SLURM_JOB_WORK_DIR", execution->mutable_work_dir());
  SetGroup(event, execution);
}

double SecondsOf(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

constexpr char kTasksGoOn[] = "read at the end of a task; others may have gone on";

void SetStep(const HookEvent& event, const std::string& node, const EventContext& context,
             v1::ExecutionStep* step) {
  step->set_step_id(event.step_id);
  if (!node.empty()) step->add_nodes(node);
  if (event.kind == HookKind::kTaskProlog) {
    step->set_start_time_ms(ToUnixMillis(event.time()));
    return;
  }
  // The hook runs at the end of each task: only the last one has seen all of the step.
  const bool ended = context.step_ended;
  if (ended) step->set_end_time_ms(ToUnixMillis(event.time()));
  if (!event.step) return;
  const MemoryPeak peak = MeasureMemory(InputOf(*event.step, context.step, ended));
  if (peak.enforced.has_value()) *step->mutable_memory_peak_enforced() = peak.enforced;
  if (peak.need.has_value()) *step->mutable_memory_need() = peak.need;
  if (event.step->cpu_ns)
    SetMeasured(SecondsOf(*event.step->cpu_ns), ended, kTasksGoOn, step->mutable_cpu_seconds());
  if (event.step->oom_kills) step->set_oom_kills(*event.step->oom_kills);
}

/// The job's own cgroup, as it was at the end of a step. After the batch step nothing of the user
/// runs any more; after another step more may come.
void SetJobPeaks(const HookEvent& event, const EventContext& context, v1::Execution* execution) {
  if (!event.job) return;
  const bool ended = event.step_id == "batch" || event.kind == HookKind::kEpilog;
  PeakInput input = InputOf(*event.job, context.job, ended);
  // On v1 the job's own cgroup counts no kills, and the step's is gone by the end of the job.
  if (context.job_killed && input.oom_kills.value_or(0) == 0) input.oom_kills = 1;
  const MemoryPeak peak = MeasureMemory(input);
  if (peak.enforced.has_value()) *execution->mutable_memory_peak_enforced() = peak.enforced;
  if (peak.need.has_value()) *execution->mutable_memory_need() = peak.need;
  if (event.job->cpu_ns)
    SetMeasured(SecondsOf(*event.job->cpu_ns), ended, "read while the job was running",
                execution->mutable_cpu_seconds());
  if (event.job->oom_kills) execution->set_oom_kills(*event.job->oom_kills);
}

data::v1::FactOrigin OriginOf(HookKind kind) {
  switch (kind) {
    case HookKind::kProlog:
    case HookKind::kPrologSlurmctld:
      return data::v1::FACT_ORIGIN_HOOK_PROLOG;
    case HookKind::kEpilog:
    case HookKind::kEpilogSlurmctld:
      return data::v1::FACT_ORIGIN_HOOK_EPILOG;
    case HookKind::kTaskProlog:
      return data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG;
    case HookKind::kTaskEpilog:
      return data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG;
  }
  return data::v1::FACT_ORIGIN_UNSPECIFIED;
}

}  // namespace

bool IsTaskKind(HookKind kind) {
  return kind == HookKind::kTaskProlog || kind == HookKind::kTaskEpilog;
}

void SetMeasured(std::optional<double> value, bool exact, const std::string& reason,
                 v1::MeasuredDouble* out) {
  if (!value) return;
  out->set_value(*value);
  out->set_bound(exact ? v1::BOUND_EXACT : v1::BOUND_AT_LEAST);
  if (!exact) out->set_reason(reason);
}

std::optional<int64_t> TasksOnNode(const HookEvent& event) {
  // The batch script's own variables are those of the job's tasks.
  if (event.step_id == "batch" || event.step_id == "interactive") return 1;
  if (event.EnvInt("SLURM_NTASKS") == 1) return 1;
  const auto layout = event.Env("SLURM_TASKS_PER_NODE");  // "2(x3),1": nodes 0 to 2, node 3
  auto node = event.EnvInt("SLURM_NODEID");
  if (!layout || !node || *node < 0) return std::nullopt;
  for (const std::string_view part : Split(*layout, ',')) {
    const size_t open = part.find("(x");
    const auto tasks = ParseInt64(part.substr(0, open));
    std::optional<int64_t> nodes = 1;
    if (open != std::string_view::npos && part.ends_with(')'))
      nodes = ParseInt64(part.substr(open + 2, part.size() - open - 3));
    if (!tasks || *tasks < 1 || !nodes || *nodes < 1) return std::nullopt;
    if (*node < *nodes) return tasks;
    *node -= *nodes;
  }
  return std::nullopt;
}

MemoryPeak MeasureMemory(const PeakInput& input) {
  MemoryPeak result;
  const bool killed = input.oom_kills.value_or(0) > 0;
  if (killed && input.peak) {
    // Before it kills, the kernel has given back all cache it could: what was left was needed.
    Set(*input.peak, false, "killed at the limit", &result.enforced);
    Set(*input.peak, false, "killed at the limit", &result.need);
    return result;
  }
  // The kernel charges in batches of pages, so that a peak stops just below the limit.
  const bool reached = input.limit_hits.value_or(0) > 0 ||
                       (input.limit && input.peak && *input.peak >= *input.limit - kMiB);
  if (input.peak && reached && !input.oom_kills) {
    Set(*input.peak, false, "reached the limit", &result.enforced);
  } else if (input.peak) {
    Set(*input.peak, input.ended, "read while running", &result.enforced);
  }

  std::optional<int64_t> floor = input.need_floor;
  const auto raise = [&floor](int64_t value) { floor = std::max(floor.value_or(value), value); };
  if (input.usage_now && input.cache_now)
    raise(std::max<int64_t>(0, *input.usage_now - *input.cache_now));
  // Page cache stays charged until the limit is reached, when reclaim takes it away, or its file
  // goes.
  std::optional<int64_t> cache = input.cache_most;
  if (!cache && input.cache_now) cache = input.cache_seen.value_or(0);
  if (cache) cache = std::max(*cache, input.cache_now.value_or(0));
  if (input.peak && cache && !reached) raise(std::max<int64_t>(0, *input.peak - *cache));
  if (!floor) return result;
  if (!input.peak) {
    Set(*floor, false, "sampled", &result.need);
    return result;
  }
  const int64_t slack = std::max<int64_t>(kMiB, *input.peak / 100);
  if (input.ended && *input.peak - *floor <= slack) {
    Set(*input.peak, true, "", &result.need);
  } else {
    Set(std::min(*floor, *input.peak), false,
        input.ended ? "the peak holds page cache, how much of it is not known"
                    : "read while running",
        &result.need);
  }
  return result;
}

data::v1::Record FactsOfEvent(const HookEvent& event, const std::string& node,
                              const EventContext& context) {
  data::v1::Record record;
  record.set_observed_time_ms(ToUnixMillis(event.time()));
  record.set_node(node);
  auto* facts = record.mutable_facts();
  facts->set_origin(OriginOf(event.kind));
  SetKey(event, facts->mutable_key());
  v1::Execution* execution = facts->mutable_execution();
  SetJobFields(event, execution);
  switch (event.kind) {
    case HookKind::kProlog:
    case HookKind::kPrologSlurmctld:
      execution->set_status(v1::EXECUTION_STATUS_RUNNING);
      execution->set_start_time_ms(ToUnixMillis(event.time()));
      break;
    case HookKind::kEpilog:
    case HookKind::kEpilogSlurmctld:
      execution->set_end_time_ms(ToUnixMillis(event.time()));
      SetExit(event, execution);
      SetJobPeaks(event, context, execution);
      break;
    case HookKind::kTaskProlog:
    case HookKind::kTaskEpilog:
      facts->set_step_id(event.step_id);
      SetStep(event, node, context, execution->add_steps());
      if (event.kind == HookKind::kTaskEpilog) SetJobPeaks(event, context, execution);
      break;
  }
  return record;
}

}  // namespace expanse::collect::host
