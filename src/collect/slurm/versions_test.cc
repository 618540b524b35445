// SPDX-License-Identifier: Apache-2.0
// The same 23 jobs ran on 22.05.8, 24.11.5 and 26.05.5. Every form of every version has to tell the
// same of them; what SLURM itself tells otherwise is listed here with the reason.
#include <algorithm>
#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/segments.h"
#include "collect/slurm/slurm_version.h"
#include "collect/slurm/squeue_reader.h"
#include "collect/slurm/state_map.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using Fields = std::map<std::string, std::string>;

const char* const kVersions[] = {"22.05", "24.11", "26.05"};

/// Kind to job id.
std::map<std::string, int64_t> Kinds(const std::string& version) {
  std::map<std::string, int64_t> out;
  const std::string text = Recorded("jobs/ids.tsv", version);
  for (std::string_view line : Split(text, '\n'))
    if (const size_t tab = line.find('\t'); tab != std::string_view::npos)
      out[std::string(line.substr(0, tab))] = ParseInt64(line.substr(tab + 1)).value_or(0);
  EXPECT_EQ(out.size(), 23u) << version;
  return out;
}

SacctDialect DialectOf(const std::string& version) {
  const auto parsed = ParseSlurmVersion(version + ".5");
  return {FormsOf(parsed).sacct_exact_codes, MaxRssKindOf(parsed, "jobacct_gather/cgroup")};
}

RecordBatch SacctText(const std::string& version, const std::string& kind) {
  const bool again = kind.find("requeue") != std::string::npos;
  const std::string file = again ? "/sacct-all-duplicates.psv" : "/sacct-all.psv";
  auto batch =
      ParseSacctText(Marked(Recorded("jobs/" + kind + file, version)), "|", DialectOf(version));
  EXPECT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_TRUE(batch->problems.empty());
  return *batch;
}

RecordBatch SacctJson(const std::string& version, const std::string& kind) {
  auto batch = ParseSacctJson(Recorded("jobs/" + kind + "/sacct.json", version));
  EXPECT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_TRUE(batch->problems.empty());
  return *batch;
}

RecordBatch ControllerJson(const std::string& version) {
  auto batch = version == "22.05"
                   ? ParseSqueueJson(Recorded("cluster/squeue-after.json", version))
                   : ParseScontrolJson(Recorded("cluster/scontrol-show-job.json", version));
  EXPECT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_TRUE(batch->problems.empty());
  return *batch;
}

template <typename T>
std::string Text(const std::optional<T>& value) {
  if (!value) return "-";
  if constexpr (std::is_same_v<T, std::string>)
    return *value;
  else
    return std::to_string(*value);
}
std::string Text(const std::optional<ExitStatus>& exit) {
  if (!exit) return "-";
  if (exit->out_of_memory) return "out of memory";
  return Text(exit->code) + "/" + Text(exit->signal);
}
std::string Text(const Tres& tres) {
  return "cpu " + Text(tres.cpus) + " mem " + Text(tres.memory_bytes) + " node " +
         Text(tres.nodes) + " gpu " + Text(tres.gpus) + " " + tres.gpu_type;
}

/// What every form has.
Fields CommonFields(const JobRecord& job) {
  Fields out;
  out["job_id"] = std::to_string(job.job_id);
  out["array"] = Text(job.array_job_id) + "_" + Text(job.array_task_id);
  out["name"] = Text(job.name);
  out["user"] = Text(job.user);
  out["account"] = Text(job.account);
  out["partition"] = Text(job.partition);
  out["qos"] = Text(job.qos);
  out["state"] = job.state;
  out["submit"] = Text(job.submit);
  out["start"] = Text(job.start);
  out["end"] = Text(job.end);
  out["limit"] = Text(job.time_limit_seconds);
  out["requested"] = Text(job.requested);
  out["allocated"] = Text(job.allocated);
  out["nodes"] = job.node_list;
  out["exit"] = Text(job.exit);
  out["derived"] = Text(job.derived_exit) + " " + Text(job.derived_exit_code);
  return out;
}

Fields StepFields(const StepRecord& step) {
  Fields out;
  out["name"] = step.name;
  out["state"] = step.state;
  out["exit"] = Text(step.exit);
  out["start"] = Text(step.start);
  out["end"] = Text(step.end);
  out["tasks"] = Text(step.tasks);
  out["nodes"] = Join(step.nodes, ",");
  out["allocated"] = Text(step.allocated);
  // The text rounds memory to KiB and times to milliseconds.
  out["max_rss"] = step.max_rss_bytes ? std::to_string(*step.max_rss_bytes / 1024) : "-";
  out["cpu"] = step.cpu_seconds ? std::to_string(std::llround(*step.cpu_seconds * 100)) : "-";
  return out;
}

void ExpectSame(const Fields& a, const Fields& b, const std::vector<std::string>& except,
                const std::string& where) {
  for (const auto& [field, value] : a) {
    if (std::find(except.begin(), except.end(), field) != except.end()) continue;
    EXPECT_EQ(value, b.at(field)) << where << " " << field;
  }
}

class EveryVersion : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryVersion, TheTextOfSacctAndItsJsonTellTheSame) {
  const std::string version = GetParam();
  for (const auto& [kind, id] : Kinds(version)) {
    const RecordBatch text = SacctText(version, kind), json = SacctJson(version, kind);
    for (const JobRecord& job : json.jobs) {
      const std::string where = version + " " + kind + " " + std::to_string(job.job_id);
      const JobRecord* row = nullptr;
      for (const JobRecord& candidate : text.jobs)
        if (candidate.job_id == job.job_id && candidate.submit == job.submit) row = &candidate;
      ASSERT_NE(row, nullptr) << where;
      // 22.05's JSON has no exit codes.
      std::vector<std::string> except;
      if (version == "22.05") except = {"exit", "derived"};
      // JSON has PENDING for the derived exit of a node failure, the text 0:0.
      std::vector<std::string> of_job = except;
      if (kind == "nodefail") of_job.push_back("derived");
      ExpectSame(CommonFields(*row), CommonFields(job), of_job, where);
      EXPECT_EQ(row->cancelled_by_owner, job.cancelled_by_owner) << where;
      if (version != "22.05") {
        EXPECT_EQ(row->submit_line, job.submit_line) << where;
        EXPECT_EQ(row->restarts, job.restarts) << where;
      }
      if (version == "26.05") {
        EXPECT_EQ(row->sluid, job.sluid) << where;
        EXPECT_EQ(row->original_sluid, job.original_sluid) << where;
        EXPECT_EQ(row->db_index, job.db_index) << where;
      }
      ASSERT_EQ(row->steps.size(), job.steps.size()) << where;
      for (const StepRecord& step : row->steps) {
        const StepRecord* other = FindStep(job, step.step_id);
        ASSERT_NE(other, nullptr) << where << " " << step.step_id;
        // 24.11 prints 134 as 6 in its text, and which it was cannot be told.
        std::vector<std::string> of_step = except;
        if (step.exit && !step.exit->ambiguity.empty()) of_step.push_back("exit");
        ExpectSame(StepFields(step), StepFields(*other), of_step, where + "." + step.step_id);
      }
    }
  }
}

TEST_P(EveryVersion, ScontrolTellsTheSameAsTextAndAsJson) {
  const std::string version = GetParam();
  const RecordBatch all = ControllerJson(version);
  for (const auto& [kind, id] : Kinds(version)) {
    const RecordBatch text =
        ParseScontrolJobs(Recorded("jobs/" + kind + "/scontrol-dd.ended.txt", version), nullptr);
    EXPECT_TRUE(text.problems.empty()) << version << " " << kind << " " << text.problems.front();
    for (const JobRecord& job : text.jobs) {
      const std::string where = version + " " + kind + " " + std::to_string(job.job_id);
      const JobRecord* other = FindJob(all, job.job_id);
      ASSERT_NE(other, nullptr) << where;
      // 22.05's text has one list of resources in place of two.
      std::vector<std::string> except;
      if (version == "22.05") except = {"requested"};
      ExpectSame(CommonFields(job), CommonFields(*other), except, where);
      EXPECT_EQ(job.uid, other->uid) << where;
      EXPECT_EQ(job.restarts, other->restarts) << where;
      EXPECT_EQ(job.reason, other->reason) << where;
      EXPECT_EQ(job.command, other->command) << where;
      EXPECT_EQ(job.work_dir, other->work_dir) << where;
      EXPECT_EQ(job.submit_line, other->submit_line) << where;
      EXPECT_EQ(job.sluid, other->sluid) << where;
      EXPECT_EQ(job.batch, other->batch) << where;
      EXPECT_EQ(job.req_tasks, other->req_tasks) << where;
      EXPECT_EQ(job.memory_per_node_bytes, other->memory_per_node_bytes) << where;
      if (!other->paths_expanded) continue;
      EXPECT_EQ(job.stdout_path, other->stdout_path) << where;
      EXPECT_EQ(job.stderr_path, other->stderr_path) << where;
    }
  }
}

TEST_P(EveryVersion, SacctsTextHasEachFieldOfItsFile) {
  const std::string version = GetParam();
  for (const auto& [kind, id] : Kinds(version)) {
    const std::string file = Recorded("jobs/" + kind + "/sacct-all.psv", version);
    const auto lines = RowsOf(file);
    const auto& names = lines[0];
    const auto batch = ParseSacctText(Marked(file), "|", DialectOf(version));
    ASSERT_TRUE(batch.ok()) << batch.error().message();
    size_t rows = 0;
    for (size_t i = 1; i < lines.size(); ++i) {
      std::map<std::string_view, std::string> row;
      for (size_t c = 0; c < names.size(); ++c) row[names[c]] = lines[i][c];
      if (row["JobIDRaw"].find('.') != std::string::npos) continue;
      ++rows;
      const JobRecord* job = FindJob(*batch, *ParseInt64(row["JobIDRaw"]));
      ASSERT_NE(job, nullptr);
      const auto same = [&](const char* column, const std::string& read) {
        const std::string& printed = row[column];
        EXPECT_EQ(IsSlurmNull(printed) ? "-" : printed, read) << version << kind << column;
      };
      if (version == "22.05") {
        same("DBIndex", Text(job->db_index));
      } else {
        same("DBIndex", std::to_string(IndexOfSluid(job->sluid).value_or(0)));
        same("SLUID", job->sluid);
      }
      same("State", job->state_text);
      same("User", Text(job->user));
      same("UID", Text(job->uid));
      same("Account", Text(job->account));
      same("Partition", Text(job->partition));
      same("QOS", Text(job->qos));
      same("Cluster", Text(job->cluster));
      same("JobName", Text(job->name));
      same("WorkDir", Text(job->work_dir));
      same("SubmitLine", Text(job->submit_line));
      same("ReqCPUS", Text(job->req_cpus));
      same("ReqNodes", Text(job->req_nodes));
      same("NodeList", job->node_list.empty() ? "-" : job->node_list);
      same("TimelimitRaw",
           job->time_limit_seconds ? std::to_string(*job->time_limit_seconds / 60) : "-");
      EXPECT_EQ(Text(ParseTres(row["ReqTRES"], 1 << 20)), Text(job->requested));
      EXPECT_EQ(Text(ParseTres(row["AllocTRES"], 1 << 20)), Text(job->allocated));
      EXPECT_EQ(ParseSlurmTime(row["Submit"]), job->submit);
      EXPECT_EQ(ParseSlurmTime(row["Start"]), job->start);
      EXPECT_EQ(ParseSlurmTime(row["End"]), job->end);
      EXPECT_EQ(ParseSlurmTime(row["Eligible"]), job->eligible);
      EXPECT_EQ(row["OriginalSLUID"], job->original_sluid);
      EXPECT_EQ(ParseInt64(row["Restarts"]), job->restarts);
    }
    EXPECT_EQ(rows, batch->jobs.size()) << version << " " << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, EveryVersion, ::testing::ValuesIn(kVersions), [](const auto& i) {
  std::string name = std::string("Slurm") + i.param;
  std::erase(name, '.');
  return name;
});

}  // namespace
}  // namespace expanse::collect::slurm
