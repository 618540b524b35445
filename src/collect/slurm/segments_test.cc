// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/segments.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/run_table.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/submit_line.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sluid, SpellsARowIndexThatNoSignedNumberHolds) {
  EXPECT_EQ(IndexOfSluid("s4S9M8Q67KHD00"), 5523252323569677312u);
  EXPECT_EQ(IndexOfSluid("sCY1M8Q5KBJX00"), 14917761145585103872u);
  EXPECT_EQ(SluidOfIndex(14917761145585103872u), "sCY1M8Q5KBJX00");
  EXPECT_EQ(SluidTimeMs("s4S9M8Q67KHD00"), 1796074622509);
  for (const char* bad : {"", "s", "4S9M8Q67KHD00", "s4S9M8Q67KHD0", "s4S9M8Q67KHD0U",
                          "sZZZZZZZZZZZZZ", "s0000000000000", "s4s9m8q67khd00"})
    EXPECT_EQ(IndexOfSluid(bad), std::nullopt) << bad;
}

TEST(Sluid, AnIndexWithoutASluidBesideItIsKeptAsOne) {
  const auto rows = ParseSacctText(
      "JobIDRaw|State|Submit|DBIndex|\n7|RUNNING|1000|14917761145585103872|\n"
      "8|RUNNING|1000|42|\n9|RUNNING|1000|99999999999999999999|\n",
      "|");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  EXPECT_EQ(rows->jobs[0].sluid, "sCY1M8Q5KBJX00");
  EXPECT_EQ(rows->jobs[0].db_index, std::nullopt);
  EXPECT_EQ(rows->jobs[1].db_index, 42);
  EXPECT_EQ(rows->jobs[1].sluid, "");
  EXPECT_EQ(rows->jobs[2].sluid, "");
}

TEST(Sluid, EveryRecordedRowSpellsItsIndexAndTheTimeOfItsSubmission) {
  for (const std::string version : {"24.11", "26.05"}) {
    const auto rows = RecordedRows("cluster/sacct-all-duplicates.psv", version);
    const auto column = [&](const char* name) {
      return std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin();
    };
    const auto sluid = column("SLUID"), index = column("DBIndex"), submit = column("Submit"),
               id = column("JobIDRaw");
    for (size_t i = 1; i < rows.size(); ++i) {
      EXPECT_EQ(std::to_string(IndexOfSluid(rows[i][sluid]).value_or(0)), rows[i][index]);
      if (rows[i][id].find('.') != std::string::npos) continue;
      const int64_t after_ms =
          *SluidTimeMs(rows[i][sluid]) - *ParseSlurmTime(rows[i][submit]) * 1000;
      EXPECT_GE(after_ms, 0);
      EXPECT_LT(after_ms, 6'000);
    }
  }
}

TEST(Segments, AResizedRunIsOneRecordWithItsOriginalRequest) {
  const auto batch =
      ParseSacctJson(Recorded("resized/scontrol-update-running.sacct.json", "26.05"));
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  ASSERT_EQ(batch->jobs.size(), 1u);
  const JobRecord& job = batch->jobs[0];
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.submit, 1796075007);  // not that of the resize
  EXPECT_EQ(job.start, 1796075007);
  EXPECT_EQ(job.sluid, "s4S9M8Q6KFHZ00");
  EXPECT_EQ(job.original_sluid, "s4S9M8Q6KBJ900");
  EXPECT_EQ(job.segments.front().sluid, "s4S9M8Q6KBJ900");
  EXPECT_EQ(job.requested.memory_bytes, 600 * kMiB);  // both rows say 300
  EXPECT_EQ(job.allocated.memory_bytes, 300 * kMiB);
  EXPECT_EQ(job.steps.size(), 2u);
  ASSERT_EQ(job.segments.size(), 2u);
  EXPECT_EQ(job.segments[0].allocated.memory_bytes, 600 * kMiB);
  EXPECT_EQ(job.segments[0].end, 1796075011);
  EXPECT_EQ(job.segments[1].start, 1796075011);
  EXPECT_EQ(job.segments[1].end, std::nullopt);
}

TEST(Segments, FactsOfAResizedRunHaveItsPartsAndOneKey) {
  const auto batch =
      ParseSacctJson(Recorded("resized/scontrol-update-running.sacct.json", "26.05"));
  const JobRecord& job = batch->jobs[0];
  const auto facts = BuildFacts(job, {job.job_id, *job.submit, 0}, {});
  EXPECT_EQ(facts.key().sluid(), "s4S9M8Q6KFHZ00");
  EXPECT_EQ(facts.key().original_sluid(), "s4S9M8Q6KBJ900");
  const auto& e = facts.execution();
  EXPECT_EQ(e.requested().memory_bytes(), 600 * kMiB);
  EXPECT_EQ(e.allocated().memory_bytes(), 300 * kMiB);
  ASSERT_EQ(e.segments_size(), 2);
  EXPECT_EQ(e.segments(0).allocated().memory_bytes(), 600 * kMiB);
  EXPECT_EQ(e.segments(0).end_time_ms(), 1796075011'000);
  EXPECT_EQ(e.segments(1).sluid(), "s4S9M8Q6KFHZ00");
  EXPECT_FALSE(e.segments(1).has_end_time_ms());
}

TEST(Segments, AJobThatIsKilledAfterItsLimitWasLoweredIsOneRunThatRanOutOfMemory) {
  // The recording has no ids of time: the columns that tell which rows belong together.
  std::string rows = Recorded("resized/sacct-memory.psv", "26.05");
  std::string text;
  int part = 0;
  for (std::string_view line : Split(rows, '\n')) {
    if (line.empty()) continue;
    std::string more = "|1000|1100";
    if (text.empty())
      more = "|JobIDRaw|Submit|End";
    else if (line.starts_with("315|"))
      more = "|315" + std::string(part++ == 0 ? "|1000|1080" : "|1080|1100");
    else
      more = "|" + std::string(line.substr(0, line.find('|'))) + "|1000|1100";
    text += std::string(line) + more + "|\n";
  }
  const auto batch = ParseSacctText(text, "|", {true, MaxRssKind::kCgroupPeak});
  ASSERT_TRUE(batch.ok()) << batch.error().message();
  ASSERT_EQ(batch->jobs.size(), 4u);
  const JobRecord* job = FindJob(*batch, 315);
  EXPECT_EQ(job->state, "OUT_OF_MEMORY");
  EXPECT_EQ(job->requested.memory_bytes, 600 * kMiB);  // from the first steps' allocation
  EXPECT_EQ(job->segments.size(), 2u);
  EXPECT_EQ(job->steps.size(), 2u);
  EXPECT_TRUE(FindJob(*batch, 312)->segments.empty());
}

TEST(Segments, ALaterPartAloneIsToldFromAWholeRun) {
  auto batch = ParseSacctJson(Recorded("resized/scontrol-update-running.sacct.json", "26.05"));
  JobRecord part = batch->jobs[0];
  EXPECT_FALSE(IsLaterPartAlone(part));
  part.segments.clear();
  EXPECT_TRUE(IsLaterPartAlone(part));
  part.original_sluid = part.sluid;
  EXPECT_FALSE(IsLaterPartAlone(part));
}

TEST(Segments, ScontrolOfAResizedJobShowsTheNewRequestAndWhenItWasResized) {
  const auto batch = ParseScontrolJobs(Recorded("resized/scontrol-dd.txt", "26.05"), nullptr);
  EXPECT_TRUE(batch.problems.empty());
  const JobRecord* job = FindJob(batch, 6);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->resized, job->start.value() + 13);
  EXPECT_EQ(job->requested.memory_bytes, 300 * kMiB);
  // Nothing else seen, and no --mem on the submit line: the request is unknown, not 300 MiB.
  const auto alone = BuildFacts(*job, {6, *job->submit, 0}, {});
  EXPECT_FALSE(alone.execution().requested().has_memory_bytes());
  EXPECT_THAT(alone.execution().requested().unknown().at("memory_bytes"), HasSubstr("resized"));
  RunContext context;
  context.original_request = ParseTres("cpu=1,mem=600M,node=1", kMiB);
  const auto facts = BuildFacts(*job, {6, *job->submit, 0}, context);
  EXPECT_EQ(facts.execution().requested().memory_bytes(), 600 * kMiB);
  EXPECT_EQ(facts.execution().allocated().memory_bytes(), 300 * kMiB);
}

TEST(SubmitRequest, IsReadUpToTheScript) {
  EXPECT_EQ(
      ReadSubmitRequest("sbatch --parsable --mem=600M --time=30 --wrap sleep 12").memory_per_node,
      600 * kMiB);
  EXPECT_EQ(ReadSubmitRequest("sbatch -J mu-600 --mem 1G --mem-update=20@1 mu.sh").memory_per_node,
            kGiB);
  EXPECT_EQ(ReadSubmitRequest("sbatch -N 2-4 --mem-per-cpu=50M x.sh").nodes, 2);
  EXPECT_EQ(ReadSubmitRequest("sbatch -N2 --mem-per-cpu=50M x.sh").memory_per_cpu, 50 * kMiB);
  // What follows the script or a word that can be anything is not an option of sbatch.
  for (const char* line :
       {"sbatch x.sh --mem=1G", "sbatch --wrap echo --mem=1G", "sbatch --comment=a b --mem=1G x.sh",
        "sbatch", "", "sbatch --later-option x --mem=1G x.sh", "sbatch --mem=0 x.sh"})
    EXPECT_EQ(ReadSubmitRequest(line).memory_per_node, std::nullopt) << line;
}

JobRecord RowOf(Tool tool, int64_t submit, const std::string& sluid, const std::string& original) {
  JobRecord job;
  job.tool = tool;
  job.job_id = 7;
  job.submit = submit;
  job.sluid = sluid;
  job.original_sluid = original;
  job.state = "RUNNING";
  job.restarts = 0;
  return job;
}

TEST(RunTableParts, ARowOfALaterPartBelongsToTheRunAndARequeuedOneToTheNextAttempt) {
  RunTable table;
  bool created = false;
  RunState& run = table.Resolve(RowOf(Tool::kSqueue, 1000, "sA", ""), 0, &created);
  ASSERT_TRUE(created);
  run.sluids = {"sA"};
  run.uid = 1;
  EXPECT_EQ(&table.Resolve(RowOf(Tool::kSacct, 1080, "sB", "sA"), 0, &created), &run);
  EXPECT_FALSE(created);
  JobRecord again = RowOf(Tool::kSacct, 1200, "sC", "sC");
  again.restarts = 1;
  RunState& second = table.Resolve(again, 0, &created);
  EXPECT_TRUE(created);
  EXPECT_EQ(second.id.restarts, 1);
  EXPECT_EQ(second.id.submit, 1000);
}

TEST(RunTableParts, WithoutSluidsALaterPartIsFoundByTheTimeOfTheResize) {
  RunTable table;
  bool created = false;
  RunState& run = table.Resolve(RowOf(Tool::kSqueue, 1000, "", ""), 0, &created);
  run.resize_times = {1080};
  EXPECT_EQ(&table.Resolve(RowOf(Tool::kSacct, 1080, "", ""), 0, &created), &run);
  EXPECT_FALSE(created);
}

TEST(RunTableParts, ACgroupNamedByItsSluidFindsItsRun) {
  RunTable table;
  bool created = false;
  RunState& run = table.Resolve(RowOf(Tool::kSqueue, 1000, "sA", ""), 0, &created);
  run.sluids = {"sA", "sB"};
  run.start = 1001;
  KeyIndex index;
  index.Replace(table);
  for (const char* sluid : {"sA", "sB"}) {
    common::v1::RunKey key;
    key.set_sluid(sluid);
    ASSERT_TRUE(index.Complete(&key, 1'002'000, {})) << sluid;
    EXPECT_EQ(key.native_id(), "7");
    EXPECT_EQ(key.submit_time_ms(), 1'000'000);
    EXPECT_EQ(key.original_sluid(), "sA");
  }
  common::v1::RunKey other;
  other.set_sluid("sX");
  EXPECT_FALSE(index.Complete(&other, 1'002'000, {}));
}

}  // namespace
}  // namespace expanse::collect::slurm
