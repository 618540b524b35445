// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/squeue_reader.h"

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/marked_text.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

std::optional<std::string> NonEmpty(std::optional<std::string> text) {
  if (text && text->empty()) text.reset();
  return text;
}

/// 0 stands for "not set" in the ids and times of 22.05.
std::optional<int64_t> NonZero(std::optional<int64_t> number) {
  if (number && *number <= 0) number.reset();
  return number;
}

std::optional<int64_t> Scale(std::optional<int64_t> number, int64_t unit) {
  if (number) *number *= unit;
  return number;
}

JobRecord ReadJob(const json::object& j, int64_t id) {
  JobRecord job;
  job.tool = Tool::kSqueue;
  job.job_id = id;
  job.array_job_id = NonZero(JsonInt(j, "array_job_id"));
  if (job.array_job_id) job.array_task_id = JsonInt(j, "array_task_id");
  job.array_task_text = JsonText(j, "array_task_string").value_or("");
  job.het_job_id = NonZero(JsonInt(j, "het_job_id"));
  if (job.het_job_id) job.het_component = JsonInt(j, "het_job_offset");
  job.restarts = JsonInt(j, "restart_cnt");
  job.name = JsonText(j, "name");
  job.user = NonEmpty(JsonText(j, "user_name"));
  job.uid = JsonInt(j, "user_id");
  job.account = NonEmpty(JsonText(j, "account"));
  job.partition = NonEmpty(JsonText(j, "partition"));
  job.qos = NonEmpty(JsonText(j, "qos"));
  job.cluster = NonEmpty(JsonText(j, "cluster"));
  job.state_text = JsonText(j, "job_state").value_or("");
  job.state = job.state_text;
  if (const auto reason = JsonText(j, "state_reason"); reason && !IsSlurmNull(*reason))
    job.reason = *reason;
  if (const auto status = JsonInt(j, "exit_code")) job.exit = FromWaitStatus(*status);
  if (const auto status = JsonInt(j, "derived_exit_code")) {
    job.derived_exit = FromWaitStatus(*status);
    job.derived_exit_code = (*status >> 8) & 0xff;
  }
  job.submit = NonZero(JsonInt(j, "submit_time"));
  job.eligible = NonZero(JsonInt(j, "eligible_time"));
  job.start = NonZero(JsonInt(j, "start_time"));
  job.end = NonZero(JsonInt(j, "end_time"));
  // INFINITE and NO_VAL come as null; "Infinity" would be another serializer's.
  job.time_limit_seconds = Scale(NonZero(JsonInt(j, "time_limit")), 60);
  job.req_cpus = NonZero(JsonInt(j, "cpus"));
  job.req_nodes = NonZero(JsonInt(j, "node_count"));
  job.req_tasks = NonZero(JsonInt(j, "tasks"));
  job.memory_per_node_bytes = Scale(JsonInt(j, "memory_per_node"), kMiB);
  job.memory_per_cpu_bytes = Scale(JsonInt(j, "memory_per_cpu"), kMiB);
  if (const auto* flags = JsonArray(j, "flags")) {
    job.memory_explicit = false;
    for (const auto& flag : *flags)
      if (const auto* text = flag.if_string(); text != nullptr && *text == "JOB_MEM_SET")
        job.memory_explicit = true;
  }
  for (const char* key : {"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) {
    const auto gres = JsonText(j, key);
    if (!gres) continue;
    if (!job.gres) job.gres = "";
    if (job.gres->empty()) job.gres = *gres;
  }
  job.requested = ParseTres(JsonText(j, "tres_req_str").value_or(""), kMiB);
  job.allocated = ParseTres(JsonText(j, "tres_alloc_str").value_or(""), kMiB);
  job.node_list = JsonText(j, "nodes").value_or("");
  if (const auto* flag = FindJson(j, "batch_flag"); flag != nullptr && flag->is_bool())
    job.batch = flag->get_bool();
  job.command = NonEmpty(JsonText(j, "command"));
  job.work_dir = NonEmpty(JsonText(j, "current_working_directory"));
  job.stdout_path = NonEmpty(JsonText(j, "standard_output"));
  job.stderr_path = NonEmpty(JsonText(j, "standard_error"));
  return job;
}

/// Fields of the text form, in order.
constexpr std::string_view kTextFormats[] = {"%A", "%i", "%F", "%K", "%T", "%r", "%u", "%U",
                                             "%a", "%P", "%q", "%V", "%S", "%e", "%l", "%D",
                                             "%C", "%m", "%N", "%Z", "%o", "%j"};

JobRecord ReadRow(const std::vector<std::string_view>& f) {
  JobRecord job;
  job.tool = Tool::kSqueue;
  job.job_id = ParseInt64(f[0]).value_or(0);
  if (const auto task = ParseInt64(f[3]); task || f[1].find("_[") != std::string_view::npos) {
    job.array_job_id = ParseInt64(f[2]);
    job.array_task_id = task;
    if (!task) job.array_task_text = std::string(f[3]);
  }
  if (const size_t plus = f[1].find('+'); plus != std::string_view::npos) {
    job.het_job_id = ParseInt64(f[1].substr(0, plus));
    job.het_component = ParseInt64(f[1].substr(plus + 1));
  }
  job.state_text = job.state = std::string(f[4]);
  if (!IsSlurmNull(f[5])) job.reason = std::string(f[5]);
  const auto text = [](std::string_view v) -> std::optional<std::string> {
    if (IsSlurmNull(v)) return std::nullopt;
    return std::string(v);
  };
  job.user = text(f[6]);
  job.uid = ParseInt64(f[7]);
  job.account = text(f[8]);
  job.partition = text(f[9]);
  job.qos = text(f[10]);
  job.submit = ParseSlurmTime(f[11]);
  job.start = ParseSlurmTime(f[12]);
  job.end = ParseSlurmTime(f[13]);
  job.time_limit_unlimited = f[14] == "UNLIMITED";
  if (const auto limit = ParseSlurmDuration(f[14]))
    job.time_limit_seconds = static_cast<int64_t>(*limit);
  job.req_nodes = ParseInt64(f[15]);
  job.req_cpus = ParseInt64(f[16]);
  // %m is the minimum of a node or of a CPU; squeue does not say which.
  job.unknown["memory_bytes"] = "squeue text does not say whether memory is for a node or a CPU";
  job.node_list = std::string(f[18]);
  job.work_dir = text(f[19]);
  job.command = text(f[20]);
  job.name = std::string(f[21]);
  return job;
}

}  // namespace

Result<RecordBatch> ParseSqueueJson(std::string_view text) {
  EXPANSE_TRY(const json::object root, ParseToolJson(text));
  if (const auto* errors = JsonArray(root, "errors"); errors != nullptr && !errors->empty())
    return Error(Code::kDataLoss, "the answer lists errors: " + json::serialize(errors->front()));
  const auto* jobs = JsonArray(root, "jobs");
  if (jobs == nullptr) return Error(Code::kDataLoss, "the answer has no list of jobs");
  RecordBatch out;
  for (const auto& value : *jobs) {
    const json::object* object = value.if_object();
    const auto id = object == nullptr ? std::nullopt : NonZero(JsonInt(*object, "job_id"));
    if (!id || !JsonText(*object, "job_state")) {
      out.problems.push_back("squeue: an entry without job_id or job_state");
      continue;
    }
    out.jobs.push_back(ReadJob(*object, *id));
  }
  return out;
}

std::vector<std::string> SqueueTextArguments(std::string_view mark) {
  std::string format;
  for (std::string_view field : kTextFormats) format += std::string(field) + std::string(mark);
  return {"squeue", "--noheader", "--all", "--states=all", "--format=" + format};
}

Result<RecordBatch> ParseSqueueText(std::string_view text, std::string_view mark) {
  EXPANSE_TRY(const auto rows, SplitMarkedRows(text, mark, std::size(kTextFormats)));
  RecordBatch out;
  for (const auto& row : rows) {
    JobRecord job = ReadRow(row);
    if (job.job_id > 0)
      out.jobs.push_back(std::move(job));
    else
      out.problems.push_back("squeue: a row without a job id");
  }
  return out;
}

}  // namespace expanse::collect::slurm
