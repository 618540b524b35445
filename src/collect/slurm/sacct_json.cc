// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/sacct_reader.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

std::optional<int64_t> Positive(std::optional<int64_t> number) {
  if (number && *number <= 0) number.reset();
  return number;
}

std::optional<std::string> NonEmpty(std::optional<std::string> text) {
  if (text && IsSlurmNull(*text)) text.reset();
  return text;
}

/// [{"type": "gres", "name": "gpu:a100", "count": 2}, ...]
Tres ReadTres(const json::array* list) {
  std::string text;
  if (list != nullptr) {
    for (const auto& value : *list) {
      const json::object* item = value.if_object();
      if (item == nullptr) continue;
      const auto type = JsonText(*item, "type");
      const auto count = JsonInt(*item, "count");
      if (!type || !count) continue;
      const auto name = JsonText(*item, "name");
      text += (text.empty() ? "" : ",") + *type + (name ? "/" + *name : "") + "=" +
              std::to_string(*count);
    }
  }
  return ParseTres(text, kMiB);
}

/// A signal is told; return_code is 0 whatever the program returned (22.05.8).
std::optional<ExitStatus> ReadSignal(const json::object& object, std::string_view path) {
  const auto id = JsonInt(object, std::string(path) + ".signal.signal_id");
  if (!id || *id <= 0 || *id > 127) return std::nullopt;
  return FromWaitStatus(*id);
}

std::optional<double> ReadSeconds(const json::object& object, std::string_view path) {
  const auto s = JsonInt(object, std::string(path) + ".seconds");
  const auto us = JsonInt(object, std::string(path) + ".microseconds");
  if (!s || !us) return std::nullopt;
  return static_cast<double>(*s) + static_cast<double>(*us) / 1e6;
}

StepRecord ReadStep(const json::object& s) {
  StepRecord step;
  if (const auto text = JsonText(s, "step.id"))
    step.step_id = *text;
  else if (const auto number = JsonInt(s, "step.id"))
    step.step_id = std::to_string(*number);
  step.name = JsonText(s, "step.name").value_or("");
  step.state = JsonText(s, "state").value_or("");
  step.exit = ReadSignal(s, "exit_code");
  step.start = Positive(JsonInt(s, "time.start"));
  step.end = Positive(JsonInt(s, "time.end"));
  step.tasks = Positive(JsonInt(s, "tasks.count"));
  step.cpu_seconds = ReadSeconds(s, "time.total");
  if (const auto* nodes = JsonArray(s, "nodes.list"))
    for (const auto& node : *nodes)
      if (const auto* name = node.if_string()) step.nodes.emplace_back(name->data(), name->size());
  if (const auto* usage = JsonArray(s, "tres.requested.max"))
    for (const auto& value : *usage)
      if (const auto* item = value.if_object(); item && JsonText(*item, "type") == "mem")
        step.max_rss_bytes = JsonInt(*item, "count");
  return step;
}

JobRecord ReadJob(const json::object& j, int64_t id) {
  JobRecord job;
  job.tool = Tool::kSacct;
  job.job_id = id;
  job.array_job_id = Positive(JsonInt(j, "array.job_id"));
  if (job.array_job_id) {
    job.array_task_id = JsonInt(j, "array.task_id");
    job.array_task_text = JsonText(j, "array.task").value_or("");
  }
  job.het_job_id = Positive(JsonInt(j, "het.job_id"));
  if (job.het_job_id) job.het_component = JsonInt(j, "het.job_offset");
  job.name = JsonText(j, "name");
  job.user = NonEmpty(JsonText(j, "user"));
  job.account = NonEmpty(JsonText(j, "account"));
  job.partition = NonEmpty(JsonText(j, "partition"));
  job.qos = NonEmpty(JsonText(j, "qos"));
  job.cluster = NonEmpty(JsonText(j, "cluster"));
  job.state = JsonText(j, "state.current").value_or("");
  job.state_text = job.state;
  job.reason = NonEmpty(JsonText(j, "state.reason")).value_or("");
  job.exit = ReadSignal(j, "exit_code");
  job.derived_exit = ReadSignal(j, "derived_exit_code");
  if (!job.exit) job.unknown["exit_code"] = "sacct --json of 22.05 prints 0 for every exit code";
  job.submit = Positive(JsonInt(j, "time.submission"));
  job.eligible = Positive(JsonInt(j, "time.eligible"));
  job.start = Positive(JsonInt(j, "time.start"));
  job.end = Positive(JsonInt(j, "time.end"));
  if (const auto minutes = Positive(JsonInt(j, "time.limit")))
    job.time_limit_seconds = *minutes * 60;
  job.req_cpus = Positive(JsonInt(j, "required.CPUs"));
  job.requested = ReadTres(JsonArray(j, "tres.requested"));
  job.allocated = ReadTres(JsonArray(j, "tres.allocated"));
  job.node_list = NonEmpty(JsonText(j, "nodes")).value_or("");
  job.work_dir = NonEmpty(JsonText(j, "working_directory"));
  if (const auto killer = NonEmpty(JsonText(j, "kill_request_user"))) {
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
  EXPANSE_TRY(const json::object root, ParseToolJson(text));
  if (const auto* errors = JsonArray(root, "errors"); errors != nullptr && !errors->empty())
    return Error(Code::kDataLoss, "the answer lists errors: " + json::serialize(errors->front()));
  const auto* jobs = JsonArray(root, "jobs");
  if (jobs == nullptr) return Error(Code::kDataLoss, "the answer has no list of jobs");
  RecordBatch out;
  for (const auto& value : *jobs) {
    const json::object* object = value.if_object();
    const auto id = object == nullptr ? std::nullopt : Positive(JsonInt(*object, "job_id"));
    if (!id || !JsonText(*object, "state.current")) {
      out.problems.push_back("sacct: an entry without job_id or state");
      continue;
    }
    out.jobs.push_back(ReadJob(*object, *id));
  }
  return out;
}

}  // namespace expanse::collect::slurm
