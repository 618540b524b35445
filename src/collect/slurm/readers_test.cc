// SPDX-License-Identifier: Apache-2.0
// Contract tests of the readers on recorded outputs of SLURM 22.05.8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/node_reader.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/squeue_reader.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHostileName[] =
    "evil|na=me \"q\"\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n\nJobId=1 JobName=x";

KnownNames NamesOf(const RecordBatch& batch) {
  KnownNames names;
  for (const auto& job : batch.jobs) names[job.job_id] = *job.name;
  return names;
}

TEST(ScontrolJobParser, ReadsEveryFieldOfAnEndedJob) {
  const auto batch = ParseScontrolJobs(Recorded("jobs/multistep/scontrol-dd.ended.txt"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_THAT(batch.problems, IsEmpty());
  const JobRecord& job = batch.jobs[0];
  EXPECT_EQ(job.job_id, 20);
  EXPECT_EQ(job.name, "multistep");
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(job.uid, 1001);
  EXPECT_EQ(job.account, "research");
  EXPECT_EQ(job.partition, "main");
  EXPECT_EQ(job.state, "COMPLETED");
  EXPECT_EQ(job.reason, "");
  EXPECT_EQ(job.restarts, 0);
  EXPECT_EQ(job.exit->code, 0);
  EXPECT_EQ(job.derived_exit_code, 5);
  EXPECT_EQ(job.submit, 1796073368);
  EXPECT_EQ(job.start, 1796073381);
  EXPECT_EQ(job.end, 1796073388);
  EXPECT_EQ(job.time_limit_seconds, 300);
  EXPECT_EQ(job.node_list, "n[1-2]");
  EXPECT_EQ(job.req_nodes, 2);
  EXPECT_EQ(job.req_tasks, 2);
  EXPECT_EQ(job.memory_per_node_bytes, 200 * kMiB);
  EXPECT_EQ(job.allocated.memory_bytes, 400 * kMiB);
  EXPECT_EQ(job.command, "/LAB/work/alice/jobs/08-multistep.sh");
  EXPECT_EQ(job.work_dir, "/LAB/work/alice");
  EXPECT_EQ(job.stdout_path, "/LAB/work/alice/multistep-20.out");
  EXPECT_EQ(job.stderr_path, "/LAB/work/alice/multistep-20.err");
}

TEST(ScontrolJobParser, KeepsArrayTasksApart) {
  const auto batch = ParseScontrolJobs(Recorded("jobs/array/scontrol-dd.ended.txt"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 4u);
  EXPECT_EQ(batch.jobs[0].job_id, 7);
  EXPECT_EQ(batch.jobs[0].array_task_id, 4);
  EXPECT_EQ(batch.jobs[1].job_id, 29);
  EXPECT_EQ(batch.jobs[1].array_job_id, 7);
  EXPECT_EQ(batch.jobs[1].array_task_id, 3);
  EXPECT_EQ(batch.jobs[1].exit->code, 7);
}

TEST(ScontrolJobParser, APendingArrayIsOneRecordOfManyTasks) {
  const auto batch = ParseScontrolJobs(Recorded("jobs/array/scontrol-dd.pending.txt"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].array_job_id, 7);
  EXPECT_EQ(batch.jobs[0].array_task_id, std::nullopt);
  EXPECT_EQ(batch.jobs[0].array_task_text, "1-4%2");
  EXPECT_EQ(batch.jobs[0].start, std::nullopt);
}

TEST(ScontrolJobParser, ARequeuedJobHasANewSubmitTimeAndARestartCount) {
  const auto batch = ParseScontrolJobs(Recorded("jobs/requeue/scontrol-dd.ended.txt"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].restarts, 1);
  EXPECT_EQ(batch.jobs[0].submit, 1796073374);
}

TEST(ScontrolJobParser, SegfaultIs139AndTimeoutIsSignal15) {
  EXPECT_EQ(ParseScontrolJobs(Recorded("jobs/segfault/scontrol-dd.ended.txt"), nullptr)
                .jobs[0]
                .exit->signal,
            11);
  EXPECT_EQ(ParseScontrolJobs(Recorded("jobs/timeout/scontrol-dd.ended.txt"), nullptr)
                .jobs[0]
                .exit->signal,
            15);
}

TEST(ScontrolJobParser, JobsThatWaitForEverKeepTheirReason) {
  const auto batch = ParseScontrolJobs(Recorded("jobs/accepted-but-can-never-run.txt"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 2u);
  EXPECT_EQ(FindJob(batch, 25)->reason, "PartitionTimeLimit");
  EXPECT_EQ(FindJob(batch, 25)->time_limit_seconds, 9 * 86'400);
  EXPECT_EQ(FindJob(batch, 25)->command, std::nullopt);  // sbatch --wrap
  EXPECT_EQ(FindJob(batch, 23)->reason, "PartitionConfig");
  EXPECT_EQ(FindJob(batch, 23)->memory_per_cpu_bytes, 100 * kMiB);
}

TEST(ScontrolJobParser, AForgedRecordInAJobNameIsPartOfTheName) {
  const auto squeue = ParseSqueueJson(Recorded("lab2/squeue-end.json"));
  ASSERT_TRUE(squeue.ok()) << squeue.error().message();
  const KnownNames names = NamesOf(*squeue);
  const auto batch = ParseScontrolJobs(Recorded("lab2/scontrol-end.txt"), &names);
  EXPECT_THAT(batch.problems, IsEmpty());
  EXPECT_EQ(batch.jobs.size(), squeue->jobs.size());
  const JobRecord* hostile = FindJob(batch, 27);
  ASSERT_NE(hostile, nullptr);
  EXPECT_EQ(hostile->name, kHostileName);
  EXPECT_EQ(hostile->user, "alice");
  EXPECT_EQ(hostile->uid, 1001);
  EXPECT_EQ(hostile->state, "FAILED");
}

TEST(ScontrolJobParser, WithoutKnownNamesAForgedRecordIsAProblemAndNotAJob) {
  const auto batch = ParseScontrolJobs(Recorded("lab2/scontrol-end.txt"), nullptr);
  EXPECT_EQ(FindJob(batch, 27), nullptr);
  EXPECT_FALSE(batch.problems.empty());
  for (const auto& job : batch.jobs) EXPECT_NE(job.user, "root");
}

TEST(ScontrolJobParser, ACommentMayHoldLineBreaksAndSeparators) {
  std::string text = Recorded("jobs/multistep/scontrol-dd.ended.txt");
  text.insert(text.find("   StdErr="),
              "   Comment=my com|ment = x\n   StdErr=/forged\n   StdIn=/forged\n   StdOut=/forged"
              "\nline \n");
  const auto batch = ParseScontrolJobs(text, nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].work_dir, "/LAB/work/alice");
  EXPECT_EQ(batch.jobs[0].stdout_path, "/LAB/work/alice/multistep-20.out");
}

TEST(ScontrolJobParser, ReadsTheOneLineForm) {
  std::string text = Recorded("jobs/multistep/scontrol-dd.ended.txt");
  std::string one;
  for (std::string_view line : Split(text, '\n')) {
    if (!one.empty() && !Trim(line).empty()) one += ' ';
    one += Trim(line);
  }
  const auto batch = ParseScontrolJobs(one + " \n", nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].name, "multistep");
  EXPECT_EQ(batch.jobs[0].stdout_path, "/LAB/work/alice/multistep-20.out");
  EXPECT_EQ(batch.jobs[0].work_dir, "/LAB/work/alice");
}

TEST(ScontrolJobParser, EveryCutOfTheTextGivesAWholeRecordOrAProblem) {
  const std::string text = Recorded("jobs/multistep/scontrol-dd.ended.txt");
  for (size_t size = 0; size < text.size(); ++size) {
    const auto batch = ParseScontrolJobs(std::string_view(text).substr(0, size), nullptr);
    if (batch.jobs.empty()) continue;
    EXPECT_EQ(batch.jobs[0].end, 1796073388);
    EXPECT_EQ(batch.jobs[0].command, "/LAB/work/alice/jobs/08-multistep.sh");
  }
}

TEST(SqueueReader, ReadsPendingJobsAndRefusedOnes) {
  const auto batch = ParseSqueueJson(Recorded("cluster/squeue.json"));
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_EQ(batch->jobs.size(), 26u);
  const JobRecord* job = FindJob(*batch, 15);
  EXPECT_EQ(job->requested.cpus, 4);
  EXPECT_EQ(job->requested.memory_bytes, 400 * kMiB);
  EXPECT_EQ(job->time_limit_seconds, 1200);
  EXPECT_EQ(job->memory_explicit, true);
  EXPECT_EQ(job->gres, "");
  EXPECT_EQ(FindJob(*batch, 16)->requested.gpus, 2);
  EXPECT_EQ(FindJob(*batch, 26)->memory_explicit, false);
  EXPECT_EQ(FindJob(*batch, 7)->array_task_text, "1-4%2");
  EXPECT_EQ(FindJob(*batch, 22)->state, "FAILED");
  EXPECT_EQ(FindJob(*batch, 22)->reason, "BadConstraints");
}

TEST(SqueueReader, EndedJobsHaveTheirWaitStatus) {
  const auto batch = ParseSqueueJson(Recorded("cluster/squeue-after.json"));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(FindJob(*batch, 4)->exit->code, 3);
  EXPECT_EQ(FindJob(*batch, 12)->exit->signal, 11);
  EXPECT_TRUE(FindJob(*batch, 5)->exit->out_of_memory);
  EXPECT_TRUE(FindJob(*batch, 6)->derived_exit->out_of_memory);
  EXPECT_EQ(FindJob(*batch, 14)->restarts, 1);
  EXPECT_EQ(FindJob(*batch, 30)->reason, "NodeDown");
}

TEST(SqueueReader, NamesKeepEveryByte) {
  const auto batch = ParseSqueueJson(Recorded("lab2/squeue-2.json"));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(FindJob(*batch, 27)->name, kHostileName);
  EXPECT_THAT(*FindJob(*batch, 1)->name, HasSubstr("\x1f \xc3\xa9\xff"));
}

TEST(SqueueReader, TheTextFormAgreesWithJson) {
  const auto json = ParseSqueueJson(Recorded("lab2/squeue-end.json"));
  const auto text = ParseSqueueText(Recorded("lab2/squeue-text.txt"), kRecordedMark);
  ASSERT_TRUE(text.ok()) << text.error().message();
  ASSERT_EQ(text->jobs.size(), json->jobs.size());
  for (const auto& job : text->jobs) {
    const JobRecord* other = FindJob(*json, job.job_id);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(job.name, other->name);
    EXPECT_EQ(job.user, other->user);
    EXPECT_EQ(job.state, other->state);
    EXPECT_EQ(job.submit, other->submit);
    EXPECT_EQ(job.start, other->start);
    EXPECT_EQ(job.array_job_id, other->array_job_id);
    EXPECT_EQ(job.array_task_id, other->array_task_id);
    EXPECT_EQ(job.het_component, other->het_component);
    EXPECT_EQ(job.time_limit_seconds, other->time_limit_seconds);
    EXPECT_EQ(job.node_list, other->node_list);
    EXPECT_EQ(job.work_dir, other->work_dir);
    EXPECT_EQ(job.command, other->command);
  }
}

TEST(SqueueReader, NothingAndACutAnswerAreErrorsNotAnEmptyQueue) {
  const std::string text = Recorded("cluster/squeue.json");
  EXPECT_EQ(ParseSqueueJson("").error().code(), Code::kDataLoss);
  EXPECT_EQ(ParseSqueueJson("{}").error().code(), Code::kDataLoss);
  EXPECT_FALSE(ParseSqueueJson("{\"jobs\":[],\"errors\":[{\"error\":\"x\"}]}").ok());
  for (size_t size = 0; size + 2 < text.size(); size += 997)
    EXPECT_FALSE(ParseSqueueJson(std::string_view(text).substr(0, size)).ok()) << size;
  const std::string rows = Recorded("lab2/squeue-text.txt");
  EXPECT_FALSE(
      ParseSqueueText(std::string_view(rows).substr(0, rows.size() - 3), kRecordedMark).ok());
}

TEST(SacctReader, KeepsRequeuedAttemptsApart) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-ids.txt"), kRecordedMark);
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  const JobRecord* first = FindJob(*batch, 17, 0);
  const JobRecord* second = FindJob(*batch, 17, 1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->state, "REQUEUED");
  EXPECT_EQ(second->state, "COMPLETED");
  EXPECT_NE(first->db_index, second->db_index);
  EXPECT_LT(first->submit, second->submit);
  EXPECT_EQ(first->steps.size(), 2u);
  EXPECT_EQ(second->steps.size(), 2u);
}

TEST(SacctReader, TellsWhoCancelled) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_EQ(FindJob(*batch, 7)->cancelled_by_owner, true);
  EXPECT_EQ(FindJob(*batch, 23)->cancelled_by_owner, false);
  EXPECT_EQ(FindJob(*batch, 8)->cancelled_by_owner, std::nullopt);
}

TEST(SacctReader, AWindowLeavesOutJobsThatWereNeverEligible) {
  const auto window = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  EXPECT_EQ(FindJob(*window, 21), nullptr);
  const auto ids = ParseSacctText(Recorded("lab2/sacct-ids.txt"), kRecordedMark);
  ASSERT_NE(FindJob(*ids, 21), nullptr);
  EXPECT_EQ(FindJob(*ids, 21)->cancelled_by_owner, true);
  EXPECT_EQ(FindJob(*ids, 21)->start, std::nullopt);
  EXPECT_EQ(FindJob(*ids, 22)->cancelled_by_owner, false);
}

TEST(SacctReader, StepsCarryTheOutOfMemoryThatTheJobRowHides) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  const JobRecord* job = FindJob(*batch, 11);
  EXPECT_EQ(job->state, "COMPLETED");
  EXPECT_TRUE(job->derived_exit->out_of_memory);
  EXPECT_EQ(FindStep(*job, "0")->state, "OUT_OF_MEMORY");
  EXPECT_TRUE(FindStep(*job, "0")->exit->out_of_memory);
}

TEST(SacctReader, HetComponentsAndArrayTasksHaveTheirGroup) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  EXPECT_EQ(FindJob(*batch, 4)->het_job_id, 3);
  EXPECT_EQ(FindJob(*batch, 4)->het_component, 1);
  EXPECT_EQ(FindJob(*batch, 28)->array_job_id, 12);
  EXPECT_EQ(FindJob(*batch, 28)->array_task_id, 3);
}

/// The request as it is sent.
common::v1::RequestedResources RequestOf(const JobRecord& job) {
  return BuildFacts(job, {job.job_id, job.submit.value_or(0), 0}, {}).execution().requested();
}

TEST(SacctReader, ARowThatIsNotFilledYetShowsNoRequestInsteadOf0) {
  // Seconds after the start of an array task the accounting daemon has its row, not its counts.
  auto rows = RowsOf(Recorded("jobs/array/sacct-all.psv"));
  const auto set = [&](const std::string& column, const std::string& value) {
    for (size_t i = 0; i < rows[0].size(); ++i)
      if (rows[0][i] == column) rows[1][i] = value;
  };
  for (const char* counts : {"0", "-1"})
    for (const char* tres : {"", "billing=0,cpu=0,node=0"}) {
      for (const char* column : {"ReqCPUS", "ReqNodes", "AllocCPUS", "AllocNodes"})
        set(column, counts);
      set("ReqTRES", tres);
      set("AllocTRES", tres);
      std::string text;
      for (const auto& row : rows) text += Join(row, "|") + "|\n";
      const auto batch = ParseSacctText(text, "|");
      ASSERT_TRUE(batch.ok()) << batch.error().message();
      const JobRecord& unfilled = batch->jobs.at(0);
      EXPECT_EQ(unfilled.array_task_id, 1);
      const auto request = RequestOf(unfilled);
      EXPECT_FALSE(request.has_cpu_cores());
      EXPECT_FALSE(request.has_nodes());
      EXPECT_TRUE(request.unknown().contains("cpu_cores"));
      EXPECT_TRUE(request.unknown().contains("nodes"));
      EXPECT_FALSE(BuildFacts(unfilled, {27, *unfilled.submit, 0}, {})
                       .execution()
                       .allocated()
                       .has_cpu_cores());
      EXPECT_EQ(RequestOf(batch->jobs.at(1)).cpu_cores(), 1) << "the next task has its row whole";
      EXPECT_EQ(RequestOf(batch->jobs.at(1)).nodes(), 1);
    }
}

TEST(EveryReader, ACountOf0IsNotSeen) {
  std::string text = Recorded("jobs/array/scontrol-dd.ended.txt");
  for (const std::string count : {"NumNodes=", "NumCPUs=", "NumTasks="})
    for (size_t at = text.find(count); at != std::string::npos; at = text.find(count, at + 1))
      text[at + count.size()] = '0';
  const auto scontrol = ParseScontrolJobs(text, nullptr);
  ASSERT_EQ(scontrol.jobs.size(), 4u);
  for (const JobRecord& job : scontrol.jobs) {
    EXPECT_EQ(job.req_cpus, std::nullopt);
    EXPECT_EQ(job.req_nodes, std::nullopt);
    EXPECT_EQ(job.req_tasks, std::nullopt);
  }
  const auto json = ParseSacctJson(
      R"({"jobs": [{"job_id": 5, "state": {"current": "RUNNING"}, "time": {"submission": 1796073367},
          "required": {"CPUs": 0}, "tres": {"requested": [{"type": "cpu", "count": 0},
          {"type": "node", "count": 0}]}}]})");
  ASSERT_TRUE(json.ok()) << json.error().message();
  ASSERT_EQ(json->jobs.size(), 1u);
  EXPECT_FALSE(RequestOf(json->jobs[0]).has_cpu_cores());
  EXPECT_FALSE(RequestOf(json->jobs[0]).has_nodes());
  JobRecord direct;  // whoever filled it
  direct.requested.cpus = 0;
  direct.req_cpus = 3;
  direct.req_nodes = 0;
  EXPECT_EQ(RequestOf(direct).cpu_cores(), 3);
  EXPECT_FALSE(RequestOf(direct).has_nodes());
}

TEST(SacctReader, UsageIsInBytesAndSeconds) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  const JobRecord* job = FindJob(*batch, 18);
  EXPECT_GT(FindStep(*job, "batch")->max_rss_bytes, 80 * kMiB);
  EXPECT_GT(job->cpu_seconds, 0.5);
  EXPECT_EQ(FindJob(*batch, 24)->requested.memory_bytes, 400 * kMiB);  // 200M on each of 2 nodes
  EXPECT_THAT(FindStep(*FindJob(*batch, 24), "2")->nodes, ElementsAre("sa1", "sa2"));
}

TEST(SacctReader, SubmitLinesAndNamesMayHoldAnything) {
  const auto batch = ParseSacctText(Recorded("lab2/sacct-window.txt"), kRecordedMark);
  ASSERT_TRUE(batch.ok());
  const JobRecord* job = FindJob(*batch, 27);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->user, "alice");
  EXPECT_THAT(*job->name, HasSubstr("JobId=1 JobName=x"));
  EXPECT_THAT(*job->submit_line, HasSubstr("--wrap exit 11"));
}

TEST(SacctReader, NothingOrACutAnswerIsAnErrorNotAnEmptyWindow) {
  const std::string text = Recorded("lab2/sacct-window.txt");
  EXPECT_EQ(ParseSacctText("", kRecordedMark).error().code(), Code::kDataLoss);
  const std::string header = text.substr(0, text.find('\n') + 1);
  EXPECT_THAT(ParseSacctText(header, kRecordedMark)->jobs, IsEmpty());  // asked, and nothing there
  // Only a cut exactly between two rows cannot be seen.
  for (size_t size = header.size() + 1; size < text.size(); size += 13)
    EXPECT_FALSE(ParseSacctText(std::string_view(text).substr(0, size), kRecordedMark).ok() &&
                 text[size - 1] != '\n')
        << size;
}

TEST(SacctReader, JsonOf2205AgreesButHasNoExitCodes) {
  const auto batch = ParseSacctJson(Recorded("jobs/requeue/sacct.json"));
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  ASSERT_EQ(batch->jobs.size(), 2u);
  EXPECT_EQ(batch->jobs[0].state, "REQUEUED");
  EXPECT_EQ(batch->jobs[1].submit, 1796073374);
  const auto array = ParseSacctJson(Recorded("jobs/array/sacct.json"));
  const JobRecord* failed = FindJob(*array, 29);
  EXPECT_EQ(failed->state, "FAILED");
  EXPECT_FALSE(failed->exit.has_value());  // it returned 7; the JSON says 0
  EXPECT_THAT(failed->unknown.at("exit_code"), HasSubstr("prints 0"));
  const auto oom = ParseSacctJson(Recorded("jobs/oom-step/sacct.json"));
  EXPECT_TRUE(FindStep(oom->jobs[0], "0")->exit->out_of_memory);
  EXPECT_TRUE(oom->jobs[0].derived_exit->out_of_memory);
  EXPECT_EQ(ParseSacctJson(Recorded("jobs/cancel/sacct.json"))->jobs[0].cancelled_by_owner, true);
  EXPECT_EQ(ParseSacctJson(Recorded("jobs/dep-never/sacct.json"))->jobs[0].cancelled_by_owner,
            false);
}

TEST(SacctReader, AsksForAWindowOrForIds) {
  SacctQuery query;
  query.from = 1796073367;
  query.to = 1796073368;
  EXPECT_THAT(SacctTextArguments(query, "M"),
              ::testing::IsSupersetOf({"--duplicates", "--allusers", "--delimiter=M",
                                       "--starttime=2026-11-30T21:16:07",
                                       "--endtime=2026-11-30T21:16:08"}));
  query.job_ids = {21, 22};
  EXPECT_THAT(SacctTextArguments(query, "M"), ::testing::Contains("--jobs=21,22"));
}

TEST(NodeReader, ReadsNodesAndPartitions) {
  data::v1::ComputeFacts facts;
  ParseNodes(Recorded("cluster/scontrol-show-node.txt"), &facts);
  ParsePartitions(Recorded("cluster/scontrol-show-partition.txt"), &facts);
  ASSERT_EQ(facts.nodes_size(), 2);
  EXPECT_EQ(facts.nodes(0).name(), "n1");
  EXPECT_EQ(facts.nodes(0).cpus(), 4);
  EXPECT_EQ(facts.nodes(0).memory_bytes(), 4000 * kMiB);
  EXPECT_EQ(facts.nodes(0).gpus(), 2);
  EXPECT_EQ(facts.nodes(0).gpu_type(), "fake");
  EXPECT_EQ(facts.nodes(0).state(), "IDLE");
  EXPECT_EQ(facts.nodes(0).partitions(0), "main");
  ASSERT_EQ(facts.partitions_size(), 1);
  EXPECT_EQ(facts.partitions(0).max_walltime_seconds(), 7200);
  EXPECT_EQ(facts.partitions(0).default_walltime_seconds(), 600);
  EXPECT_EQ(facts.partitions(0).default_memory_per_cpu_bytes(), 100 * kMiB);
  EXPECT_TRUE(facts.partitions(0).is_default());
}

TEST(NodeReader, ADownNodeHasItsReason) {
  data::v1::ComputeFacts facts;
  ParseNodes(Recorded("cluster/scontrol-show-node-n2.down.txt"), &facts);
  ASSERT_EQ(facts.nodes_size(), 1);
  EXPECT_THAT(facts.nodes(0).state(), HasSubstr("DOWN"));
  EXPECT_THAT(facts.nodes(0).reason(), HasSubstr("simulated node failure"));
}

}  // namespace
}  // namespace expanse::collect::slurm
