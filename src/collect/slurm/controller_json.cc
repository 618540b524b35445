// SPDX-License-Identifier: Apache-2.0
// Jobs of `squeue --json` and `scontrol show job --json`: one list of fields for both.
#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/squeue_reader.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

void ReadIds(const json::object& j, JobRecord* job) {
  job->array_job_id = JsonPositive(j, "array_job_id");
  if (job->array_job_id) {
    job->array_task_id = JsonInt(j, "array_task_id");
    if (job->array_task_id && (*job->array_task_id < 0 || *job->array_task_id >= kSlurmNotSet))
      job->array_task_id.reset();
  }
  job->array_task_text = JsonText(j, "array_task_string").value_or("");
  job->het_job_id = JsonPositive(j, "het_job_id");
  if (job->het_job_id) job->het_component = JsonInt(j, "het_job_offset");
  job->restarts = JsonInt(j, "restart_cnt");
  // While a requeued job still completes, the count is that of the next attempt already: whose the
  // SLUID is then is not told.
  const bool between = job->state_text.find("COMPLETING") != std::string::npos ||
                       job->state_text.find("REQUEUE") != std::string::npos;
  if (!between) job->sluid = JsonWord(j, "step_id.sluid").value_or("");
}

void ReadRequest(const json::object& j, JobRecord* job) {
  if (const auto minutes = JsonPositive(j, "time_limit")) job->time_limit_seconds = *minutes * 60;
  job->time_limit_unlimited = JsonIsInfinite(j, "time_limit");
  job->req_cpus = JsonPositive(j, "cpus");
  job->req_nodes = JsonPositive(j, "node_count");
  job->req_tasks = JsonPositive(j, "tasks");
  job->memory_per_node_bytes = JsonMebibytes(j, "memory_per_node");
  job->memory_per_cpu_bytes = JsonMebibytes(j, "memory_per_cpu");
  if (const auto* flags = JsonArray(j, "flags")) {
    job->memory_explicit = false;
    for (const auto& flag : *flags)
      if (const auto* text = flag.if_string();
          text != nullptr && (*text == "JOB_MEM_SET" || *text == "EXACT_MEMORY_REQUESTED"))
        job->memory_explicit = true;
  }
  for (const char* key : {"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) {
    const auto gres = JsonText(j, key);
    if (!gres) continue;
    if (!job->gres) job->gres = "";
    if (job->gres->empty()) job->gres = *gres;
  }
  job->requested = ParseTres(JsonText(j, "tres_req_str").value_or(""), kMiB);
  job->allocated = ParseTres(JsonText(j, "tres_alloc_str").value_or(""), kMiB);
}

void ReadPaths(const json::object& j, JobRecord* job) {
  job->command = JsonWord(j, "command");
  job->work_dir = JsonWord(j, "current_working_directory");
  job->submit_line = JsonWord(j, "submit_line");
  // From v0.0.43 on the expansion has names of its own; before, data_parser prints it in place of
  // the pattern (v0.0.40 to v0.0.42 on every version), and 22.05 prints the pattern.
  job->paths_expanded = JsonArray(j, "job_state") != nullptr;
  const bool beside = FindJson(j, "stdout_expanded") != nullptr;
  job->stdout_path = JsonWord(j, beside ? "stdout_expanded" : "standard_output");
  job->stderr_path = JsonWord(j, beside ? "stderr_expanded" : "standard_error");
  SettlePaths(job);
}

std::optional<JobRecord> ReadJob(const json::object& j, Tool tool) {
  JobRecord job;
  const auto id = JsonPositive(j, "job_id");
  if (!id || !ReadState(j, "job_state", &job.state, &job.state_text)) return std::nullopt;
  job.tool = tool;
  job.job_id = *id;
  ReadIds(j, &job);
  job.name = JsonText(j, "name");
  job.user = JsonWord(j, "user_name");
  job.uid = JsonInt(j, "user_id");
  job.account = JsonWord(j, "account");
  job.partition = JsonWord(j, "partition");
  job.qos = JsonWord(j, "qos");
  job.cluster = JsonWord(j, "cluster");
  job.reason = JsonWord(j, "state_reason").value_or("");
  job.exit = ReadJsonExit(j, "exit_code").status;
  const JsonExit derived = ReadJsonExit(j, "derived_exit_code");
  job.derived_exit = derived.status;
  job.derived_exit_code = derived.code;
  job.submit = JsonPositive(j, "submit_time");
  job.eligible = JsonPositive(j, "eligible_time");
  job.start = JsonPositive(j, "start_time");
  job.end = JsonPositive(j, "end_time");
  job.resized = JsonPositive(j, "resize_time");
  ReadRequest(j, &job);
  job.node_list = JsonText(j, "nodes").value_or("");
  job.batch = JsonBool(j, "batch_flag");
  if (!job.batch)  // a number in some versions
    if (const auto number = JsonInt(j, "batch_flag")) job.batch = *number != 0;
  ReadPaths(j, &job);
  return job;
}

}  // namespace

Result<RecordBatch> ParseSqueueJson(std::string_view text) {
  return ParseJobsJson(text, "squeue",
                       [](const json::object& j) { return ReadJob(j, Tool::kSqueue); });
}

Result<RecordBatch> ParseScontrolJson(std::string_view text) {
  return ParseJobsJson(text, "scontrol",
                       [](const json::object& j) { return ReadJob(j, Tool::kScontrol); });
}

}  // namespace expanse::collect::slurm
