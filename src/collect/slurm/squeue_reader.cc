// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/squeue_reader.h"

#include "base/strings.h"
#include "collect/slurm/marked_text.h"

namespace expanse::collect::slurm {
namespace {

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
  job.req_nodes = ParseSlurmCount(f[15]);
  job.req_cpus = ParseSlurmCount(f[16]);
  // %m is the minimum of a node or of a CPU; squeue does not say which.
  job.unknown["memory_bytes"] = "squeue text does not say whether memory is for a node or a CPU";
  job.node_list = std::string(f[18]);
  job.work_dir = text(f[19]);
  job.command = text(f[20]);
  job.name = std::string(f[21]);
  return job;
}

}  // namespace

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
