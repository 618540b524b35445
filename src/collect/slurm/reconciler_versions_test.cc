// SPDX-License-Identifier: Apache-2.0
// The reconciler over the tools of each version, and over resized and preempted jobs.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/reconciler_fixture.h"

namespace expanse::collect::slurm {
namespace {

using namespace expanse::common::v1;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ReconcilerVersions : public ReconcilerTest {
 protected:
  void Use(const std::string& version) {
    cluster_.version = "slurm " + version + ".5\n";
    cluster_.recorded = version;
    cluster_.fields = Recorded("cluster/sacct-fields.txt", version);
    cluster_.squeue = Recorded("cluster/scontrol-show-job.json", version);
    cluster_.scontrol_json = cluster_.squeue;
    cluster_.sacct = cluster_.sacct_ids =
        Marked(Recorded("cluster/sacct-all-duplicates.psv", version), kRecordedMark);
    Restart();
  }
  void UseLab3() {
    cluster_.squeue = Recorded("lab3/squeue.json");
    cluster_.scontrol = Recorded("lab3/scontrol.txt");
    cluster_.sacct = cluster_.sacct_ids = Recorded("lab3/sacct-window.txt");
    clock_.JumpWall(Millis((1796092800 - 1796079900) * int64_t{1000}));
    Restart();
  }
  std::set<std::string> KeysOf(const std::string& native) {
    std::set<std::string> out;
    for (const auto& record : records_)
      if (record.has_facts() && record.facts().key().native_id() == native)
        out.insert(std::to_string(record.facts().key().submit_time_ms()) + "#" +
                   std::to_string(record.facts().key().restart_count()));
    return out;
  }
  bool Called(const std::vector<std::string>& argv) {
    return ::testing::Value(cluster_.calls, Contains(argv));
  }
};

struct Want {
  const char* id;
  int restarts;
  ExecutionOutcome outcome;
  EndingCause cause;
};
const Want kWant[] = {
    {"1", 0, EXECUTION_OUTCOME_TIMEOUT, ENDING_CAUSE_TIME_LIMIT},
    {"2", 0, EXECUTION_OUTCOME_CANCELLED, ENDING_CAUSE_USER_CANCEL},
    {"3", 0, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
    {"4", 0, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
    {"5", 0, EXECUTION_OUTCOME_OUT_OF_MEMORY, ENDING_CAUSE_MEMORY_LIMIT},
    {"6", 0, EXECUTION_OUTCOME_OUT_OF_MEMORY, ENDING_CAUSE_MEMORY_LIMIT},
    {"12", 0, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
    {"13", 0, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_SIGNAL},
    {"14", 0, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_REQUEUED},
    {"14", 1, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
    {"17", 0, EXECUTION_OUTCOME_FAILURE, ENDING_CAUSE_EXITED},
    {"20", 0, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
    {"30", 0, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_NODE_FAILURE},
    {"31", 0, EXECUTION_OUTCOME_UNKNOWN, ENDING_CAUSE_NODE_FAILURE},
    {"31", 1, EXECUTION_OUTCOME_SUCCESS, ENDING_CAUSE_EXITED},
};

class ReconcilerOfVersion : public ReconcilerVersions,
                            public ::testing::WithParamInterface<const char*> {};

TEST_P(ReconcilerOfVersion, EveryJobKindIsComplete) {
  const std::string version = GetParam();
  Use(version);
  Round();
  Round();
  for (const Want& w : kWant) {
    const Execution* e = Latest(w.id, w.restarts, data::v1::FACT_ORIGIN_SACCT);
    ASSERT_NE(e, nullptr) << version << " " << w.id << " " << w.restarts;
    EXPECT_EQ(ExecutionOutcome_Name(e->outcome()), ExecutionOutcome_Name(w.outcome)) << w.id;
    EXPECT_EQ(EndingCause_Name(e->ending_cause()), EndingCause_Name(w.cause)) << w.id;
  }
  EXPECT_EQ(Latest("12", 0, data::v1::FACT_ORIGIN_SACCT)->signal(), 11);
  EXPECT_EQ(Latest("3", 0, data::v1::FACT_ORIGIN_SCONTROL)->stdout_path(),
            "/LAB/work/alice/succeed-3.out");
  // MaxRSS is the enforced peak here, and tells nothing of need.
  const Execution* e = Latest("3", 0, data::v1::FACT_ORIGIN_SACCT);
  EXPECT_EQ(e->memory_peak_enforced().bound(), BOUND_EXACT);
  EXPECT_FALSE(e->has_memory_need());
  EXPECT_THAT(e->unknown().at("memory_need"), HasSubstr("page cache"));
  EXPECT_TRUE(Called({"scontrol", "show", "job", "--json"}));
  EXPECT_FALSE(Called({"scontrol", "show", "job", "-dd"}));
}
INSTANTIATE_TEST_SUITE_P(Newer, ReconcilerOfVersion, ::testing::Values("24.11", "26.05"),
                         [](const auto& i) {
                           std::string name = std::string("Slurm") + i.param;
                           std::erase(name, '.');
                           return name;
                         });

TEST_F(ReconcilerVersions, EachAttemptHasItsOwnSluid) {
  Use("26.05");
  Round();
  std::map<int32_t, std::set<std::string>> sluids;
  for (const auto& record : records_)
    if (record.has_facts() && record.facts().key().native_id() == "14")
      for (const std::string& sluid :
           {record.facts().key().sluid(), record.facts().key().original_sluid()})
        if (!sluid.empty()) sluids[record.facts().key().restart_count()].insert(sluid);
  EXPECT_EQ(sluids[0].size(), 1u);
  EXPECT_EQ(sluids[1].size(), 1u);
  EXPECT_NE(*sluids[0].begin(), *sluids[1].begin());
}

TEST_F(ReconcilerVersions, AResizedRunOfAccountingIsOneRun) {
  UseLab3();
  Round();
  Round();
  EXPECT_EQ(KeysOf("1"), (std::set<std::string>{"1796092581000#0"}));
  const Execution* e = Latest("1", 0, data::v1::FACT_ORIGIN_SACCT);
  EXPECT_EQ(e->status(), EXECUTION_STATUS_SUCCEEDED);
  EXPECT_EQ(e->start_time_ms(), 1796092583'000);
  EXPECT_EQ(e->end_time_ms(), 1796092591'000);
  EXPECT_EQ(e->requested().nodes(), 2);
  EXPECT_EQ(e->requested().memory_bytes(), 200 * kMiB);
  EXPECT_EQ(e->allocated().nodes(), 1);
  ASSERT_EQ(e->segments_size(), 2);
  EXPECT_EQ(e->segments(0).allocated().nodes(), 2);
  EXPECT_EQ(e->segments(0).end_time_ms(), 1796092587'000);
  EXPECT_EQ(e->segments(1).start_time_ms(), 1796092587'000);
  EXPECT_EQ(e->segments(1).allocated().nodes(), 1);
  EXPECT_EQ(e->nodes_size(), 2);  // it was on both
  EXPECT_EQ(e->steps_size(), 3);  // batch and extern of the first part, 0 of the second
}

TEST_F(ReconcilerVersions, AWindowAfterTheResizeAsksForTheWholeRun) {
  UseLab3();
  cluster_.sacct = Recorded("lab3/sacct-after-resize.txt");
  Round();
  Round();
  EXPECT_EQ(KeysOf("1"), (std::set<std::string>{"1796092581000#0"}));
  const Execution* e = Latest("1", 0, data::v1::FACT_ORIGIN_SACCT);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->segments_size(), 2);
  EXPECT_EQ(e->requested().nodes(), 2);
}

TEST_F(ReconcilerVersions, WhatWasSeenBeforeAResizeStaysTheRequest) {
  UseLab3();
  const std::string after = cluster_.squeue;
  std::string before = after;
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = before.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    before.replace(at, from.size(), to);
  };
  replace("\"resize_time\": 1796092587", "\"resize_time\": 0");
  replace("\"COMPLETED\"", "\"RUNNING\"");
  replace("cpu=2,mem=200M,node=1,billing=2", "cpu=2,mem=200M,node=2,billing=2");
  cluster_.sacct = cluster_.sacct_ids = FakeCluster::Header();
  cluster_.squeue = before;
  Round();
  EXPECT_EQ(Latest("1", 0, data::v1::FACT_ORIGIN_SQUEUE)->requested().nodes(), 2);
  cluster_.squeue = after;
  Round();
  Restart();  // what is remembered is on disk
  Round();
  const Execution* e = Latest("1", 0, data::v1::FACT_ORIGIN_SQUEUE);
  EXPECT_EQ(e->status(), EXECUTION_STATUS_SUCCEEDED);
  EXPECT_EQ(e->requested().nodes(), 2);
  EXPECT_EQ(e->allocated().nodes(), 1);
}

TEST_F(ReconcilerVersions, PreemptionEndsAnAttemptAndIsNoObservation) {
  UseLab3();
  const std::string after = cluster_.squeue;
  cluster_.squeue = Recorded("lab3/squeue-preempting.json");
  Round();
  cluster_.squeue = after;
  Round();
  Round();
  EXPECT_EQ(KeysOf("3"), (std::set<std::string>{"1796092614000#0", "1796092614000#1"}));
  for (const char* id : {"3", "4"}) {
    const Execution* e = Latest(id, 0, data::v1::FACT_ORIGIN_SACCT);
    ASSERT_NE(e, nullptr) << id;
    EXPECT_EQ(e->outcome(), EXECUTION_OUTCOME_UNKNOWN);
    EXPECT_EQ(e->ending_cause(), ENDING_CAUSE_PREEMPTED);
    EXPECT_EQ(e->scheduler_state(), "PREEMPTED");
    EXPECT_EQ(e->runtime_seconds().bound(), BOUND_AT_LEAST);
  }
  EXPECT_EQ(Latest("3", 1, data::v1::FACT_ORIGIN_SACCT)->outcome(), EXECUTION_OUTCOME_SUCCESS);
}

TEST_F(ReconcilerVersions, InteractiveAndHeterogeneousJobsAreWhole) {
  UseLab3();
  Round();
  const Execution* srun = Latest("8", 0, data::v1::FACT_ORIGIN_SCONTROL);
  ASSERT_NE(srun, nullptr);
  EXPECT_EQ(srun->command(), "hostname");
  EXPECT_EQ(srun->stdout_path(), "");
  EXPECT_EQ(Latest("7", 0, data::v1::FACT_ORIGIN_SACCT)->native_id(), "6+1");
  EXPECT_EQ(Latest("7", 0, data::v1::FACT_ORIGIN_SCONTROL)->group().het_component(), 1);
}

TEST_F(ReconcilerVersions, ALaterVersionIsAskedForTheSerializerThatIsKnownThenForItsOwn) {
  Use("26.05");
  cluster_.version = "slurm 27.11.0\n";
  cluster_.refused = {{"--json=v0.0.45", "squeue: error: unable to find plugin: data_parser/x\n"}};
  Round();
  EXPECT_TRUE(Called({"squeue", "--json=v0.0.45", "--all", "--states=all"}));
  EXPECT_TRUE(Called({"squeue", "--json", "--all", "--states=all"}));
  EXPECT_EQ(tools_->health()["squeue"].status, "ok");
  cluster_.calls.clear();
  Round();
  EXPECT_FALSE(Called({"squeue", "--json=v0.0.45", "--all", "--states=all"}));
}

TEST_F(ReconcilerVersions, WithoutASerializerTheTextFormsAreRead) {
  Use("26.05");
  const std::string why = "error: plugin_load_from_file: serializer/json\n";
  cluster_.refused = {{"--json", why}};
  EXPECT_FALSE(tools_->Squeue().ok());  // the fake's squeue has no text
  EXPECT_THAT(cluster_.calls.back(), Contains("--noheader"));
  cluster_.scontrol = Recorded("jobs/multistep/scontrol-dd.ended.txt", "26.05");
  RecordBatch squeue;
  squeue.jobs.resize(1);
  squeue.jobs[0].job_id = 20;
  squeue.jobs[0].name = "multistep";
  const auto jobs = tools_->ScontrolJobs(squeue);
  ASSERT_TRUE(jobs.ok()) << jobs.error().message();
  ASSERT_EQ(jobs->jobs.size(), 1u);
  EXPECT_EQ(jobs->jobs[0].sluid, "s4S9M8Q5K82P00");
}

TEST_F(ReconcilerVersions, SacctThatLacksASerializerAnswersNothingWithStatus0AndIsNamed) {
  Use("24.11");
  cluster_.refused = {{"--parsable", "sacct: fatal: Invalid field requested: \"x\"\n"}};
  cluster_.sacct = cluster_.sacct_ids = "";
  const auto rows = tools_->Sacct({});
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(rows.error().message(), HasSubstr("answered nothing"));
  EXPECT_THAT(tools_->health()["sacct"].reason, HasSubstr("sacct --json"));
}

}  // namespace
}  // namespace expanse::collect::slurm
