// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/segments.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

/// Both parts count: the microseconds may be more than a second (24.11 and 26.05).
std::optional<double> ReadSeconds(const json::object& object, std::string_view path) {
  const auto s = JsonInt(object, std::string(path) + ".seconds");
  const auto us = JsonInt(object, std::string(path) + ".microseconds");
  if (!s || !us || *s < 0 || *us < 0 || *s >= kSlurmNotSet) return std::nullopt;
  return static_cast<double>(*s) + static_cast<double>(*us) / 1e6;
}

StepRecord ReadStep(const json::object& s) {
  StepRecord step;
  // 0 or "batch" in 22.05, "20.0" or "20.batch" since.
  if (const auto text = JsonText(s, "step.id"))
    step.step_id = text->substr(text->rfind('.') + 1);
  else if (const auto number = JsonInt(s, "step.id"))
    step.step_id = std::to_string(*number);
  step.name = JsonText(s, "step.name").value_or("");
  std::string state_text;
  ReadState(s, "state", &step.state, &state_text);
  step.exit = ReadJsonExit(s, "exit_code").status;
  step.start = JsonPositive(s, "time.start");
  if (step.state != "RESIZING") step.end = JsonPositive(s, "time.end");
  step.tasks = JsonPositive(s, "tasks.count");
  step.cpu_seconds = ReadSeconds(s, "time.total");
  step.allocated = ReadJsonTres(JsonArray(s, "tres.allocated"));
  if (const auto* nodes = JsonArray(s, "nodes.list"))
    for (const auto& node : *nodes)
      if (const auto* name = node.if_string()) step.nodes.emplace_back(name->data(), name->size());
  if (const auto* usage = JsonArray(s, "tres.requested.max"))
    for (const auto& value : *usage)
      if (const auto* item = value.if_object(); item && JsonText(*item, "type") == "mem")
        if (const auto bytes = JsonInt(*item, "count"); bytes && *bytes >= 0)
          step.max_rss_bytes = bytes;
  return step;
}

void ReadExits(const json::object& j, JobRecord* job) {
  job->exit = ReadJsonExit(j, "exit_code").status;
  const JsonExit derived = ReadJsonExit(j, "derived_exit_code");
  job->derived_exit = derived.status;
  job->derived_exit_code = derived.code;
  if (!job->exit && JsonText(j, "exit_code.status"))
    job->unknown["exit_code"] = "sacct --json of 22.05 prints 0 for every exit code";
}

void ReadTimes(const json::object& j, JobRecord* job) {
  job->submit = JsonPositive(j, "time.submission");
  job->eligible = JsonPositive(j, "time.eligible");
  job->start = JsonPositive(j, "time.start");
  job->end = JsonPositive(j, "time.end");
  if (const auto minutes = JsonPositive(j, "time.limit")) job->time_limit_seconds = *minutes * 60;
  job->time_limit_unlimited = JsonIsInfinite(j, "time.limit");
  job->cpu_seconds = ReadSeconds(j, "time.total");
}

std::optional<JobRecord> ReadJob(const json::object& j) {
  JobRecord job;
  const auto id = JsonPositive(j, "job_id");
  if (!id || !ReadState(j, "state.current", &job.state, &job.state_text)) return std::nullopt;
  job.tool = Tool::kSacct;
  job.job_id = *id;
  job.array_job_id = JsonPositive(j, "array.job_id");
  if (job.array_job_id) {
    job.array_task_id = JsonInt(j, "array.task_id");
    job.array_task_text = JsonText(j, "array.task").value_or("");
  }
  job.het_job_id = JsonPositive(j, "het.job_id");
  if (job.het_job_id) job.het_component = JsonInt(j, "het.job_offset");
  job.sluid = JsonWord(j, "sluid").value_or("");
  job.original_sluid = JsonWord(j, "original_sluid").value_or("");
  job.restarts = JsonInt(j, "restart_cnt");
  job.name = JsonText(j, "name");
  job.user = JsonWord(j, "user");
  job.account = JsonWord(j, "account");
  job.partition = JsonWord(j, "partition");
  job.qos = JsonWord(j, "qos");
  job.cluster = JsonWord(j, "cluster");
  job.reason = JsonWord(j, "state.reason").value_or("");
  ReadExits(j, &job);
  ReadTimes(j, &job);
  job.req_cpus = JsonPositive(j, "required.CPUs");
  job.memory_per_node_bytes = JsonMebibytes(j, "required.memory_per_node");
  job.memory_per_cpu_bytes = JsonMebibytes(j, "required.memory_per_cpu");
  job.requested = ReadJsonTres(JsonArray(j, "tres.requested"));
  job.allocated = ReadJsonTres(JsonArray(j, "tres.allocated"));
  job.node_list = JsonWord(j, "nodes").value_or("");
  job.work_dir = JsonWord(j, "working_directory");
  job.submit_line = JsonWord(j, "submit_line");
  job.stdout_path = JsonWord(j, "stdout_expanded");
  job.stderr_path = JsonWord(j, "stderr_expanded");
  job.paths_expanded = true;
  SettlePaths(&job);
  if (const auto killer = JsonWord(j, "kill_request_user"); killer && job.state == "CANCELLED") {
    job.state_text += " by " + *killer;
    job.cancelled_by_owner = killer == job.user;
  }
  if (const auto* steps = JsonArray(j, "steps"))
    for (const auto& value : *steps)
      if (const auto* step = value.if_object()) job.steps.push_back(ReadStep(*step));
  return job;
}

}  // namespace

Result<RecordBatch> ParseSacctJson(std::string_view text) {
  auto batch = ParseJobsJson(text, "sacct", ReadJob);
  if (batch.ok()) MergeSegments(&*batch);
  return batch;
}

}  // namespace expanse::collect::slurm
