// SPDX-License-Identifier: Apache-2.0
// Every serializer that 24.11 and 26.05 offer, through the same readers; versions of SLURM; fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/node_reader.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/slurm_version.h"
#include "collect/slurm/squeue_reader.h"
#include "collect/slurm/state_map.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Serializer {
  const char* version;
  const char* name;
};
const Serializer kSerializers[] = {
    {"24.11", "v0.0.40"},         {"24.11", "v0.0.41"}, {"24.11", "v0.0.42"},
    {"24.11", "v0.0.42+complex"}, {"26.05", "v0.0.42"}, {"26.05", "v0.0.42+complex"},
    {"26.05", "v0.0.43"},         {"26.05", "v0.0.44"}, {"26.05", "v0.0.45"},
};

class EverySerializer : public ::testing::TestWithParam<Serializer> {
 protected:
  static std::string File(const std::string& tool) {
    return Recorded(std::string("data-parsers/") + GetParam().name + "." + tool + ".json",
                    GetParam().version);
  }
};

TEST_P(EverySerializer, ScontrolTellsTheSameJob) {
  const bool newer = GetParam().version == std::string("26.05");
  const auto batch = ParseScontrolJson(File("scontrol"));
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  ASSERT_EQ(batch->jobs.size(), 1u);
  const JobRecord& job = batch->jobs[0];
  EXPECT_EQ(job.tool, Tool::kScontrol);
  EXPECT_EQ(job.job_id, 3);
  EXPECT_EQ(job.array_job_id, std::nullopt);
  EXPECT_EQ(job.het_job_id, std::nullopt);
  EXPECT_EQ(job.name, "succeed");
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(job.state, "COMPLETED");
  EXPECT_EQ(job.exit->code, 0);
  EXPECT_EQ(job.derived_exit_code, 0);
  EXPECT_EQ(job.submit, newer ? 1796073954 : 1796073957);
  EXPECT_EQ(job.time_limit_seconds, 300);
  EXPECT_FALSE(job.time_limit_unlimited);
  EXPECT_EQ(job.memory_per_node_bytes, 200 * kMiB);
  EXPECT_EQ(job.memory_per_cpu_bytes, std::nullopt);
  EXPECT_EQ(job.memory_explicit, true);
  EXPECT_EQ(job.requested.memory_bytes, 200 * kMiB);
  EXPECT_EQ(job.allocated.cpus, 1);
  EXPECT_EQ(job.node_list, newer ? "s1" : "t1");
  EXPECT_EQ(job.stdout_path, "/LAB/work/alice/succeed-3.out");
  EXPECT_EQ(job.stderr_path, "/LAB/work/alice/succeed-3.err");
  EXPECT_TRUE(job.paths_expanded);
  EXPECT_EQ(job.batch, true);
  EXPECT_EQ(job.restarts, 0);
  EXPECT_EQ(job.resized, std::nullopt);
  const bool named =
      GetParam().name == std::string("v0.0.44") || GetParam().name == std::string("v0.0.45");
  EXPECT_EQ(job.sluid, named ? "s4S9M8Q5K78B00" : "");
}

TEST_P(EverySerializer, SacctTellsTheSameJob) {
  const auto batch = ParseSacctJson(File("sacct"));
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  ASSERT_EQ(batch->jobs.size(), 1u);
  const JobRecord& job = batch->jobs[0];
  EXPECT_EQ(job.job_id, 3);
  EXPECT_EQ(job.array_job_id, std::nullopt);
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(job.account, "research");
  EXPECT_EQ(job.state, "COMPLETED");
  EXPECT_EQ(job.exit->code, 0);
  EXPECT_TRUE(job.unknown.empty());
  EXPECT_EQ(job.time_limit_seconds, 300);
  EXPECT_EQ(job.requested.memory_bytes, 200 * kMiB);
  const StepRecord* step = FindStep(job, "batch");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->state, "COMPLETED");
  EXPECT_EQ(step->exit->code, 0);
  EXPECT_TRUE(step->start && step->end);
  EXPECT_GT(step->max_rss_bytes, 60 * kMiB);
}

TEST_P(EverySerializer, AnEmptyQueueIsAnAnswerAndNodesAreTheSame) {
  const auto queue = ParseSqueueJson(File("squeue"));
  ASSERT_TRUE(queue.ok()) << queue.error().message();
  EXPECT_TRUE(queue->jobs.empty());
  data::v1::ComputeFacts facts;
  ASSERT_TRUE(ParseNodesJson(File("sinfo"), &facts).ok());
  ASSERT_EQ(facts.nodes_size(), 2);
  EXPECT_EQ(facts.nodes(0).cpus(), 4);
  EXPECT_EQ(facts.nodes(0).memory_bytes(), 4000 * kMiB);
  EXPECT_EQ(facts.nodes(0).gpus(), 2);
  EXPECT_EQ(facts.nodes(0).gpu_type(), "fake");
  EXPECT_EQ(facts.nodes(0).state(), "IDLE");
  EXPECT_EQ(facts.nodes(0).partitions(0), "main");
}

TEST_P(EverySerializer, NothingOrACutAnswerIsAnError) {
  const std::string text = File("scontrol");
  for (size_t size = 0; size + 2 < text.size(); size += 397)
    EXPECT_FALSE(ParseScontrolJson(std::string_view(text).substr(0, size)).ok()) << size;
  EXPECT_EQ(ParseSacctJson("").error().code(), Code::kDataLoss);
}

INSTANTIATE_TEST_SUITE_P(Offered, EverySerializer, ::testing::ValuesIn(kSerializers),
                         [](const auto& i) {
                           std::string name = std::string(i.param.version) + i.param.name;
                           for (char& c : name)
                             if (c == '.' || c == '+') c = '_';
                           return "Slurm" + name;
                         });

TEST(JsonFields, NumbersThatNoMachineHasAreAbsent) {
  const auto root = ParseToolJson(
      R"({"a":{"set":true,"infinite":false,"number":5},"b":{"set":false,"infinite":true,"number":0},
          "c":{"set":false,"infinite":false,"number":7},"d":4294967294,"e":18446744073709551614,
          "f":-2,"g":4660781411630841856,"h":2.0,"i":2.5,"j":"Infinity","k":null,"l":[1]})");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(JsonPositive(*root, "a"), 5);
  EXPECT_TRUE(JsonIsInfinite(*root, "b"));
  EXPECT_TRUE(JsonIsInfinite(*root, "j"));
  for (const char* absent : {"b", "c", "d", "e", "f", "g", "i", "j", "k", "l", "m"})
    EXPECT_EQ(JsonPositive(*root, absent), std::nullopt) << absent;
  EXPECT_EQ(JsonInt(*root, "h"), 2);
  EXPECT_EQ(JsonMebibytes(*root, "g"), std::nullopt);
}

TEST(JsonFields, OneStateOfBaseAndFlags) {
  EXPECT_EQ(OneState({"PENDING", "REQUEUED"}), "REQUEUED");
  EXPECT_EQ(OneState({"PENDING", "RESIZING"}), "RESIZING");
  EXPECT_EQ(OneState({"COMPLETED", "COMPLETING"}), "COMPLETING");
  EXPECT_EQ(OneState({"RUNNING", "CONFIGURING", "POWER_UP_NODE"}), "CONFIGURING");
  EXPECT_EQ(OneState({"PENDING", "LAUNCH_FAILED"}), "PENDING");
  EXPECT_EQ(OneState({"FAILED", "EXPEDITING"}), "FAILED");
  EXPECT_EQ(OneState({}), "");
}

TEST(SlurmVersion, IsReadFromWhatEachToolPrints) {
  EXPECT_EQ(ParseSlurmVersion("slurm-wlm 22.05.8\n"), (SlurmVersion{22, 5}));
  EXPECT_EQ(ParseSlurmVersion("slurm 26.05.5"), (SlurmVersion{26, 5}));
  EXPECT_EQ(ParseSlurmVersion("24.11.5"), kSlurm2411);
  EXPECT_EQ(ParseSlurmVersion("26.05.0-0rc1"), kSlurm2605);
  for (const char* bad : {"", "slurm", "slurm 26", "x.y.z", "26.5.1", "26.13.0", "{\"jobs\":[]}"})
    EXPECT_EQ(ParseSlurmVersion(bad), std::nullopt) << bad;
}

TEST(SlurmVersion, FormsFollowFromIt) {
  EXPECT_FALSE(FormsOf(SlurmVersion{22, 5}).scontrol_json);
  EXPECT_TRUE(FormsOf(kSlurm2411).scontrol_json);
  EXPECT_FALSE(FormsOf(kSlurm2411).sacct_exact_codes);
  EXPECT_TRUE(FormsOf(kSlurm2605).sacct_exact_codes);
  EXPECT_FALSE(FormsOf(std::nullopt).scontrol_json);
  for (const auto& version : {SlurmVersion{22, 5}, kSlurm2411, kSlurm2605})
    EXPECT_THAT(FormsOf(version).squeue_json,
                ElementsAre(ElementsAre("squeue", "--json", "--all", "--states=all")));
  const auto later = FormsOf(SlurmVersion{27, 11}).squeue_json;
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0][1], "--json=v0.0.45");
}

TEST(SlurmVersion, WhatMaxRssMeansFollowsFromTheOldestNode) {
  EXPECT_EQ(MaxRssKindOf(SlurmVersion{22, 5}, "jobacct_gather/cgroup"), MaxRssKind::kSampledRss);
  EXPECT_EQ(MaxRssKindOf(kSlurm2411, "jobacct_gather/cgroup"), MaxRssKind::kCgroupPeak);
  EXPECT_EQ(MaxRssKindOf(kSlurm2605, "jobacct_gather/linux"), MaxRssKind::kSampledRss);
  EXPECT_EQ(MaxRssKindOf(kSlurm2605, ""), MaxRssKind::kUnknown);
  EXPECT_EQ(MaxRssKindOf(std::nullopt, "jobacct_gather/cgroup"), MaxRssKind::kUnknown);
}

TEST(SacctFields, OnlyWhatThisSacctHasIsAskedFor) {
  const auto format = [](const std::string& version) {
    const auto offered = ParseSacctFields(Recorded("cluster/sacct-fields.txt", version));
    for (const auto& argument : SacctTextArguments({}, "M", offered))
      if (argument.starts_with("--format=")) return argument;
    return std::string();
  };
  EXPECT_THAT(format("22.05"), Not(HasSubstr("SLUID")));
  EXPECT_THAT(format("24.11"), HasSubstr(",SLUID,Restarts,"));
  EXPECT_THAT(format("26.05"), HasSubstr(",SLUID,OriginalSLUID,Restarts,"));
  EXPECT_THAT(format("22.05"), HasSubstr("SubmitLine,JobName"));
  // Columns as `sacct --helpformat` prints them, and nothing known.
  EXPECT_TRUE(ParseSacctFields("Account  JobID   SLUID\nState\n").contains("sluid"));
  EXPECT_THAT(SacctTextArguments({}, "M"), Not(Contains(HasSubstr("SLUID"))));
}

TEST(SacctFields, ColumnsAreFoundByTheHeaderAndOneThatIsMissingIsAnError) {
  const auto batch = ParseSacctText("Submit|State|JobIDRaw|New|\n1000|COMPLETED|7|x\ny|\n", "|");
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  EXPECT_EQ(batch->jobs[0].job_id, 7);
  EXPECT_EQ(batch->jobs[0].submit, 1000);
  EXPECT_EQ(batch->jobs[0].name, std::nullopt);
  EXPECT_EQ(ParseSacctText("State|JobIDRaw|\nCOMPLETED|7|\n", "|").error().code(), Code::kDataLoss);
  EXPECT_FALSE(ParseSacctText("State|JobIDRaw|Submit\n", "|").ok());
}

TEST(SacctFields, ExitCodesOf2605AreNotShifted) {
  const char* row = "JobIDRaw|State|Submit|ExitCode|\n7|FAILED|1000|11:0|\n";
  EXPECT_EQ(ParseSacctText(row, "|", {true, {}})->jobs[0].exit->code, 11);
  EXPECT_EQ(ParseSacctText(row, "|", {true, {}})->jobs[0].exit->signal, std::nullopt);
  EXPECT_EQ(ParseSacctText(row, "|", {true, {}})->jobs[0].exit->ambiguity, "");
  EXPECT_EQ(ParseSacctText(row, "|")->jobs[0].exit->signal, 11);
}

TEST(NodesAsJson, AreTheSameFromEveryToolAndVersion) {
  for (const auto& [file, version] : {std::pair("cluster/sinfo.json", "22.05"),
                                      {"cluster/scontrol-show-node.json", "24.11"},
                                      {"cluster/scontrol-show-node.json", "26.05"}}) {
    data::v1::ComputeFacts facts;
    ASSERT_TRUE(ParseNodesJson(Recorded(file, version), &facts).ok());
    ASSERT_EQ(facts.nodes_size(), 2) << version;
    data::v1::ComputeFacts text;
    ParseNodes(Recorded("cluster/scontrol-show-node.txt", version), &text);
    for (int i = 0; i < 2; ++i) {
      // MiB in each: 14 to 16 GiB free of a machine's memory, whatever the node is said to have.
      EXPECT_GT(facts.nodes(i).free_memory_bytes(), 14'000 * kMiB);
      EXPECT_LT(facts.nodes(i).free_memory_bytes(), 17'000 * kMiB);
      EXPECT_EQ(facts.nodes(i).DebugString(), text.nodes(i).DebugString()) << version;
    }
  }
}

TEST(InteractiveJobs, HaveNoPathsInScontrolsText) {
  std::string text = Recorded("jobs/multistep/scontrol-dd.ended.txt", "26.05");
  text.replace(text.find("BatchFlag=1"), 11, "BatchFlag=0");
  text.erase(text.find("   StdErr="));
  const auto batch = ParseScontrolJobs(text + "\n", nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].work_dir, "/LAB/work/alice");
  EXPECT_EQ(batch.jobs[0].stdout_path, std::nullopt);
}

TEST(EmptyStdErr, IsTheFileOfStdout) {
  std::string text = Recorded("slurmd-killed.txt", "26.05");
  text = text.substr(text.find("JobId=44"));
  text = text.substr(0, text.find("\n\n") + 1);
  const auto batch = ParseScontrolJobs(text, nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].stderr_path, "/LAB/work/alice/slurm-44.out");
  EXPECT_EQ(batch.jobs[0].submit_line,
            "sbatch --parsable --no-requeue -w s2 --mem=10M --wrap sleep 300");
  EXPECT_EQ(batch.jobs[0].command, std::nullopt);
  // NODE_FAIL 0:1: nobody saw it exit.
  const auto facts = BuildFacts(batch.jobs[0], {44, 1, 0}, {});
  EXPECT_FALSE(facts.execution().has_signal());
  EXPECT_FALSE(facts.execution().has_exit_code());
  EXPECT_THAT(facts.execution().unknown().at("exit_code"), HasSubstr("did not exit"));
}

TEST(PendingArray, HasNoPathsYet) {
  const auto batch =
      ParseScontrolJobs(Recorded("jobs/array/scontrol-dd.pending.txt", "26.05"), nullptr);
  ASSERT_EQ(batch.jobs.size(), 1u);
  EXPECT_EQ(batch.jobs[0].stdout_path, std::nullopt);
  EXPECT_THAT(batch.jobs[0].unknown.at("stdout_path"), HasSubstr("several array tasks"));
}

}  // namespace
}  // namespace expanse::collect::slurm
