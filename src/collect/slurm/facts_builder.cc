// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/facts_builder.h"

#include "base/strings.h"
#include "collect/slurm/facts_usage.h"
#include "collect/slurm/secrets_filter.h"
#include "collect/slurm/segments.h"
#include "collect/slurm/state_map.h"

namespace expanse::collect::slurm {
namespace {

namespace pb = expanse::common::v1;

int32_t ToInt32(int64_t v) { return v > INT32_MAX ? INT32_MAX : static_cast<int32_t>(v); }

/// Most bytes of one text; a submit line with a wrapped script can be megabytes. Each byte that is
/// not UTF-8 takes three, and the data plane takes 64 KiB.
constexpr size_t kMostTextBytes = 20 << 10;

std::string Bounded(const std::string& text) {
  if (text.size() <= kMostTextBytes) return ToUtf8(text);
  return ToUtf8(text.substr(0, kMostTextBytes)) + "…";
}

void SetText(const std::optional<std::string>& text, std::string* field) {
  if (text) *field = Bounded(*text);
}

/// Without its secrets; these go first, so that no cut leaves half of one.
void SetCommandLine(const std::optional<std::string>& line, const char* name, std::string* field,
                    google::protobuf::Map<std::string, std::string>* unknown) {
  if (!line) return;
  const std::string clean = FilterCommandLine(*line).text;
  *field = Bounded(clean);
  if (clean.size() > kMostTextBytes)
    (*unknown)[name] = "longer than what is kept; the end is cut off";
}

std::string MemoryForm(const JobRecord& job, const RunContext& context) {
  if (job.memory_explicit == false) return "default";
  if (job.gres && job.gres->find("mem") != std::string::npos) return "mem-per-gpu";
  if (job.memory_explicit == true && job.memory_per_cpu_bytes) return "mem-per-cpu";
  if (job.memory_explicit == true && job.memory_per_node_bytes) return "mem";
  if (!context.memory_form.empty()) return context.memory_form;
  if (!job.submit_line) return "";
  for (const char* form : {"mem-per-cpu", "mem-per-gpu", "mem"}) {
    const std::string option = std::string(" --") + form;
    for (const char* end : {"=", " "})
      if (job.submit_line->find(option + end) != std::string::npos) return form;
  }
  return "";
}

/// "gres:gpu:a100:2" or "gpu:a100:2,gpu:v100:1" to its type; empty when none or several.
std::string GresType(std::string_view gres) {
  std::string type;
  for (std::string_view item : Split(gres, ',')) {
    auto parts = Split(item, ':');
    if (!parts.empty() && parts[0] == "gres/gpu") parts[0] = "gpu";  // 24.11 and newer
    if (!parts.empty() && parts[0] == "gres") parts.erase(parts.begin());
    if (parts.size() != 3 || parts[0] != "gpu") continue;
    if (!type.empty() && type != parts[1]) return "";
    type = std::string(parts[1]);
  }
  return type;
}

/// The first that is a count: no job asks for 0 of them.
std::optional<int64_t> FirstCount(std::optional<int64_t> first, std::optional<int64_t> second) {
  for (const auto& count : {first, second})
    if (count && *count > 0) return count;
  return std::nullopt;
}

void FillRequested(const JobRecord& job, const RunContext& context, pb::RequestedResources* out) {
  auto& unknown = *out->mutable_unknown();
  const auto cpus = FirstCount(job.requested.cpus, job.req_cpus);
  if (cpus)
    out->set_cpu_cores(ToInt32(*cpus));
  else
    unknown.insert({"cpu_cores", std::string(ToolName(job.tool)) + " shows no CPU request"});
  if (job.requested.memory_bytes && *job.requested.memory_bytes > 0)
    out->set_memory_bytes(*job.requested.memory_bytes);
  else
    unknown.insert({"memory_bytes", std::string(ToolName(job.tool)) + " shows no memory request"});
  out->set_memory_form(MemoryForm(job, context));
  if (out->memory_form().empty())
    unknown["memory_form"] =
        std::string(ToolName(job.tool)) + " does not tell --mem from --mem-per-cpu";
  const auto nodes = FirstCount(job.requested.nodes, job.req_nodes);
  if (nodes)
    out->set_nodes(ToInt32(*nodes));
  else
    unknown.insert({"nodes", std::string(ToolName(job.tool)) + " shows no node count"});
  if (job.req_tasks)
    out->set_tasks(ToInt32(*job.req_tasks));
  else
    unknown["tasks"] = std::string(ToolName(job.tool)) + " shows no task count";
  if (job.requested.gpus) {
    out->set_gpu_count(ToInt32(*job.requested.gpus));
  } else if (job.gres && job.gres->empty() && !job.requested.empty) {
    out->set_gpu_count(0);
  } else {
    unknown["gpu_count"] = std::string(ToolName(job.tool)) +
                           " shows GPUs only when AccountingStorageTRES has gres/gpu";
  }
  out->set_gpu_type(ToUtf8(job.requested.gpu_type));
  if (out->gpu_type().empty() && job.gres) out->set_gpu_type(ToUtf8(GresType(*job.gres)));
  if (job.time_limit_seconds)
    out->set_walltime_seconds(*job.time_limit_seconds);
  else if (job.time_limit_unlimited)
    unknown["walltime_seconds"] = "the job has no time limit";
  else
    unknown["walltime_seconds"] = std::string(ToolName(job.tool)) + " shows no time limit";
}

void FillTres(const Tres& tres, pb::RequestedResources* out) {
  if (tres.cpus) out->set_cpu_cores(ToInt32(*tres.cpus));
  if (tres.memory_bytes) out->set_memory_bytes(*tres.memory_bytes);
  if (tres.nodes) out->set_nodes(ToInt32(*tres.nodes));
  if (tres.gpus) out->set_gpu_count(ToInt32(*tres.gpus));
  out->set_gpu_type(ToUtf8(tres.gpu_type));
}

void FillAllocated(const JobRecord& job, pb::RequestedResources* out) {
  FillTres(job.allocated, out);
  if (job.time_limit_seconds) out->set_walltime_seconds(*job.time_limit_seconds);
}

void FillSegments(const JobRecord& job, bool ended, pb::Execution* out) {
  for (size_t i = 0; i < job.segments.size(); ++i) {
    const SegmentRecord& segment = job.segments[i];
    pb::RunSegment* part = out->add_segments();
    part->set_sluid(ToUtf8(segment.sluid));
    if (segment.db_index) part->set_db_index(*segment.db_index);
    if (segment.start) part->set_start_time_ms(*segment.start * 1000);
    const bool over = i + 1 < job.segments.size() || ended || job.state == "RESIZING";
    if (over && segment.end) part->set_end_time_ms(*segment.end * 1000);
    FillTres(segment.allocated, part->mutable_allocated());
  }
}

/// Why a run's length is only a floor of what it would have taken; empty when it ended by itself.
std::string RuntimeFloorReason(pb::EndingCause cause) {
  switch (cause) {
    case pb::ENDING_CAUSE_EXITED:
      return "";
    case pb::ENDING_CAUSE_SIGNAL:
      return "ended by a signal";
    case pb::ENDING_CAUSE_MEMORY_LIMIT:
      return "killed for memory";
    case pb::ENDING_CAUSE_TIME_LIMIT:
      return "killed at the time limit";
    case pb::ENDING_CAUSE_DEADLINE:
      return "killed at its deadline";
    case pb::ENDING_CAUSE_NODE_FAILURE:
      return "its node failed";
    case pb::ENDING_CAUSE_PREEMPTED:
      return "preempted";
    case pb::ENDING_CAUSE_REQUEUED:
      return "requeued";
    case pb::ENDING_CAUSE_LAUNCH_FAILURE:
      return "its launch failed";
    default:
      return "cancelled";
  }
}

void FillTimes(const JobRecord& job, const Ending& ending, bool ended, pb::Execution* out) {
  if (job.submit) out->set_submit_time_ms(*job.submit * 1000);
  const bool started = HasStarted(job);
  if (started && job.start) out->set_start_time_ms(*job.start * 1000);
  // The end of a live job is what the scheduler expects, not an end.
  if (ended && job.end) out->set_end_time_ms(*job.end * 1000);
  if (!started || !ended || !job.start || !job.end || *job.end < *job.start) return;
  auto* runtime = out->mutable_runtime_seconds();
  runtime->set_value(*job.end - *job.start);
  const std::string reason = RuntimeFloorReason(ending.cause);
  runtime->set_bound(reason.empty() ? pb::BOUND_EXACT : pb::BOUND_AT_LEAST);
  runtime->set_reason(reason);
}

/// The exit of a run that the scheduler ended: 0:0 in the job's row is no exit then (sacct prints
/// it for every time-out and cancel); the batch step may know the signal.
std::optional<ExitStatus> ExitOfEndedByScheduler(const JobRecord& job) {
  for (const auto& step : job.steps)
    if (step.step_id == "batch" && step.exit && step.exit->signal) return step.exit;
  return std::nullopt;
}

void FillExit(const JobRecord& job, pb::EndingCause cause, pb::Execution* out) {
  auto& unknown = *out->mutable_unknown();
  if (!HasStarted(job)) {
    unknown["exit_code"] = "the job never started";
    return;
  }
  std::optional<ExitStatus> exit = job.exit;
  const bool by_itself = job.state == "COMPLETED" || job.state == "FAILED";
  // A node failure is 0:0 in 22.05 and since then 1:0 in sacct and 0:1 in scontrol: nobody saw the
  // program end, and neither is what it ended with.
  if (cause == pb::ENDING_CAUSE_NODE_FAILURE) exit.reset();
  if (!by_itself && exit && exit->code == 0 && !exit->signal) exit = ExitOfEndedByScheduler(job);
  if (!exit) {
    unknown.insert({"exit_code", by_itself ? std::string(ToolName(job.tool)) + " shows no exit code"
                                           : "the scheduler ended the run: it did not exit"});
    return;
  }
  if (exit->code) out->set_exit_code(*exit->code);
  if (exit->signal) out->set_signal(*exit->signal);
  if (exit->out_of_memory)
    unknown["exit_code"] = "the scheduler says only that memory ran out";
  else if (!exit->code)
    unknown["exit_code"] = "ended by a signal";
  if (!exit->ambiguity.empty()) unknown["exit_code"] = exit->ambiguity;
}

data::v1::FactOrigin OriginOf(Tool tool) {
  switch (tool) {
    case Tool::kSqueue:
      return data::v1::FACT_ORIGIN_SQUEUE;
    case Tool::kScontrol:
      return data::v1::FACT_ORIGIN_SCONTROL;
    case Tool::kSacct:
      return data::v1::FACT_ORIGIN_SACCT;
  }
  return data::v1::FACT_ORIGIN_UNSPECIFIED;
}

/// What was seen before the resize is what was asked for.
void KeepOriginal(const Tres& original, JobRecord* job) {
  const auto keep = [&](const auto& seen, auto* shown, const char* field) {
    if (!seen) return;
    *shown = seen;
    job->unknown.erase(std::string("requested.") + field);
  };
  keep(original.cpus, &job->requested.cpus, "cpu_cores");
  keep(original.memory_bytes, &job->requested.memory_bytes, "memory_bytes");
  keep(original.nodes, &job->requested.nodes, "nodes");
  keep(original.gpus, &job->requested.gpus, "gpu_count");
}

void FillGroup(const JobRecord& job, pb::RunGroup* out) {
  if (job.array_job_id) out->set_array_job_id(std::to_string(*job.array_job_id));
  if (job.array_task_id) out->set_array_task_id(ToInt32(*job.array_task_id));
  if (job.het_job_id) out->set_het_job_id(std::to_string(*job.het_job_id));
  if (job.het_component) out->set_het_component(ToInt32(*job.het_component));
}

}  // namespace

std::string DisplayId(const JobRecord& job) {
  if (job.array_job_id) {
    const std::string array = std::to_string(*job.array_job_id);
    if (job.array_task_id) return array + "_" + std::to_string(*job.array_task_id);
    if (!job.array_task_text.empty()) return array + "_[" + ToUtf8(job.array_task_text) + "]";
  }
  if (job.het_job_id && job.het_component)
    return std::to_string(*job.het_job_id) + "+" + std::to_string(*job.het_component);
  return std::to_string(job.job_id);
}

pb::RunKey KeyOf(const JobRecord& job, const RunIdentity& id) {
  pb::RunKey key;
  key.set_source_type(pb::SOURCE_TYPE_SLURM);
  key.set_native_id(std::to_string(id.job_id));
  key.set_submit_time_ms(id.submit * 1000);
  key.set_restart_count(id.restarts);
  if (job.db_index) key.set_db_index(*job.db_index);
  key.set_sluid(ToUtf8(job.sluid));
  key.set_original_sluid(ToUtf8(job.original_sluid));
  if (HasStarted(job) && job.start) key.set_start_time_ms(*job.start * 1000);
  return key;
}

data::v1::ExecutionFacts BuildFacts(const JobRecord& original, const RunIdentity& id,
                                    const RunContext& context) {
  JobRecord job = original;
  // sacct's own exit code decides between exit and signal only when nothing better was seen.
  if (job.tool == Tool::kSacct && context.exit && !context.exit->out_of_memory &&
      !(job.exit && job.exit->out_of_memory))
    job.exit = context.exit;
  if (job.resized && job.segments.empty()) ShowOriginalRequest(&job);
  if (context.original_request) KeepOriginal(*context.original_request, &job);
  const Ending ending = EndingOf(job);
  const bool ended = IsEnded(job);
  data::v1::ExecutionFacts facts;
  facts.set_origin(OriginOf(job.tool));
  *facts.mutable_key() = KeyOf(job, id);
  pb::Execution* out = facts.mutable_execution();
  auto& unknown = *out->mutable_unknown();
  for (const auto& [field, reason] : job.unknown) {
    constexpr std::string_view kOfRequest = "requested.";
    if (field.starts_with(kOfRequest))
      (*out->mutable_requested()->mutable_unknown())[field.substr(kOfRequest.size())] = reason;
    else
      unknown[field] = reason;
  }
  out->set_source_type(pb::SOURCE_TYPE_SLURM);
  out->set_native_id(DisplayId(job));
  SetText(job.user, out->mutable_user());
  SetText(job.account, out->mutable_account());
  SetText(job.partition, out->mutable_partition());
  // The accounting database replaces characters of names; the controller has them as given.
  SetText(job.name, out->mutable_job_name());
  SetText(job.qos, out->mutable_qos());
  SetText(job.cluster, out->mutable_cluster());
  out->set_status(ending.status);
  out->set_outcome(ending.outcome);
  out->set_ending_cause(ending.cause);
  if (!ending.unknown_cause.empty()) unknown["ending_cause"] = ending.unknown_cause;
  out->set_scheduler_state(ToUtf8(job.state));
  // sacct's Reason is why the job waited, kept after it ran.
  if (job.tool != Tool::kSacct || !HasStarted(job)) out->set_scheduler_reason(ToUtf8(job.reason));
  FillTimes(job, ending, ended, out);
  if (ended) FillExit(job, ending.cause, out);
  if (ended && job.derived_exit_code && !(job.derived_exit && job.derived_exit->out_of_memory))
    out->set_derived_exit_code(*job.derived_exit_code);
  FillRequested(job, context, out->mutable_requested());
  if (HasStarted(job)) FillAllocated(job, out->mutable_allocated());
  FillSegments(job, ended, out);
  if (const auto nodes = ExpandHostList(job.node_list)) {
    for (const auto& node : *nodes) out->add_nodes(ToUtf8(node));
  } else {
    unknown["nodes"] = "the node list could not be read: " + ToUtf8(job.node_list.substr(0, 200));
  }
  SetCommandLine(job.submit_line, "submit_line", out->mutable_submit_line(), &unknown);
  SetCommandLine(job.command, "command", out->mutable_command(), &unknown);
  SetText(job.work_dir, out->mutable_work_dir());
  if (job.paths_expanded) {
    SetText(job.stdout_path, out->mutable_stdout_path());
    SetText(job.stderr_path, out->mutable_stderr_path());
  }
  FillGroup(job, out->mutable_group());
  if (job.tool == Tool::kSacct)
    FillUsage(job, ended, out);
  else if (!context.sacct_unavailable.empty() && ended)
    unknown["steps"] = context.sacct_unavailable;
  return facts;
}

}  // namespace expanse::collect::slurm
