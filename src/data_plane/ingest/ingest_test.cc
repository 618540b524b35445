// SPDX-License-Identifier: Apache-2.0
// Intake over real HTTP, SQLite, blobs and series.
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data_plane/fact_builder.h"
#include "data_plane/ingest/sequence.h"
#include "data_plane/ingest/validate.h"
#include "data_plane/merge/fold.h"
#include "data_plane/plane_fixture.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::FACT_ORIGIN_HOOK_EPILOG;
using data::v1::FACT_ORIGIN_HOOK_PROLOG;
using data::v1::FACT_ORIGIN_SACCT;
using data::v1::FACT_ORIGIN_SQUEUE;
using data::v1::ListExecutionsRequest;
using testing::ElementsAre;
using testing::HasSubstr;

class IngestTest : public PlaneFixture {};

TEST_F(IngestTest, AJobThatWasPushedIsListedWithItsFields) {
  const auto response = Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  EXPECT_EQ(response.acknowledged_through(), 1u);
  EXPECT_EQ(response.missing_before(), 0u);
  EXPECT_EQ(response.server_clock_ms(), kNow);
  const auto executions = List();
  ASSERT_EQ(executions.size(), 1u);
  EXPECT_EQ(executions[0].native_id(), "7");
  EXPECT_EQ(executions[0].user(), "alice");
  EXPECT_EQ(executions[0].outcome(), common::v1::EXECUTION_OUTCOME_SUCCESS);
  EXPECT_EQ(executions[0].runtime_seconds().value(), 400);
  EXPECT_EQ(executions[0].compute_id(), kCompute);
  EXPECT_EQ(executions[0].attempt(), 1);
  EXPECT_TRUE(executions[0].unknown().contains("memory_need"));
  EXPECT_THAT(executions[0].seen_by(), ElementsAre("sacct"));
}

TEST_F(IngestTest, AResentBatchChangesNothing) {
  const auto batch = Batch({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended()),
                            Samples(Job("7", kSubmit, 0), "n1", "0", "cpu", kStart, 1000, {1, 2})});
  ASSERT_TRUE(Send(batch).ok());
  const auto before = List();
  const auto again = Send(batch);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->duplicates(), 2u);
  EXPECT_EQ(again->acknowledged_through(), 2u);
  const auto after = List();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(DeterministicBytes(after[0]), DeterministicBytes(before[0]));
}

TEST_F(IngestTest, AGapIsKnownAndItsLateRecordsAreTaken) {
  const auto job = [](const std::string& id) {
    return Facts(FACT_ORIGIN_SACCT, Job(id, kSubmit, 0), kNow, Ended());
  };
  ASSERT_TRUE(Send(Batch({job("1")}, 1)).ok());
  auto after_gap = Send(Batch({job("5")}, 5));
  ASSERT_TRUE(after_gap.ok());
  EXPECT_EQ(after_gap->missing_before(), 3u);
  // Part of the gap, and one that is known.
  const auto late = Send(Batch({job("3"), job("4"), job("5")}, 3));
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->duplicates(), 1u);
  EXPECT_EQ(late->missing_before(), 0u);
  EXPECT_EQ(List().size(), 4u);
  Restart();
  EXPECT_EQ(Send(Batch({job("3")}, 3))->duplicates(), 1u);
  EXPECT_EQ(Send(Batch({job("2")}, 2))->duplicates(), 0u);
}

TEST_F(IngestTest, AMalformedRecordIsRefusedWithItsReasonAndTheOthersAreTaken) {
  auto no_origin = Facts(FACT_ORIGIN_SACCT, Job("1", kSubmit, 0), kNow, Ended());
  no_origin.mutable_facts()->set_origin(data::v1::FACT_ORIGIN_UNSPECIFIED);
  auto no_id = Facts(FACT_ORIGIN_SACCT, Job(""), kNow, Ended());
  data::v1::Record empty;
  empty.set_observed_time_ms(kNow);
  data::v1::Record long_tail;
  long_tail.set_observed_time_ms(kNow);
  *long_tail.mutable_log_tail()->mutable_key() = Job("1", kSubmit, 0);
  long_tail.mutable_log_tail()->set_stream("stdout");
  long_tail.mutable_log_tail()->set_content(std::string(kMaxLogTailBytes + 1, 'x'));
  auto long_name = Facts(FACT_ORIGIN_SACCT, Job("1", kSubmit, 0), kNow, Ended());
  long_name.mutable_facts()->mutable_execution()->set_job_name(std::string(100'000, 'n'));
  auto nul_step = Facts(FACT_ORIGIN_SACCT, Job("1", kSubmit, 0), kNow, Ended());
  nul_step.mutable_facts()->set_step_id(std::string("0\0x", 3));
  const auto batch = Batch({no_origin, no_id, empty, long_tail, long_name, nul_step,
                            Facts(FACT_ORIGIN_SACCT, Job("9", kSubmit, 0), kNow, Ended())});
  const auto response = Send(batch);
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->rejected_size(), 6);
  EXPECT_EQ(response->rejected(0).sequence(), 1u);
  EXPECT_THAT(response->rejected(0).reason(), HasSubstr("origin"));
  EXPECT_THAT(response->rejected(3).reason(), HasSubstr("64 KiB"));
  EXPECT_EQ(response->acknowledged_through(), 7u);
  EXPECT_EQ(List().size(), 1u);
  // Never tried again: sent again they are duplicates.
  EXPECT_EQ(Send(batch)->duplicates(), 7u);
}

TEST_F(IngestTest, OneBadSeriesDoesNotTakeTheOthersOfItsRecord) {
  auto record = Samples(Job("7", kSubmit, 0), "n1", "0", "cpu", kStart, 1000, {1, 2});
  auto* bad = record.mutable_samples()->add_series();
  *bad = record.samples().series(0);
  bad->set_metric("memory");
  bad->set_values(0, std::numeric_limits<double>::quiet_NaN());
  const auto response =
      Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended()), record});
  ASSERT_EQ(response.rejected_size(), 1);
  EXPECT_THAT(response.rejected(0).reason(), HasSubstr("1 of 2 series refused"));
  data::v1::ListMetricsRequest list;
  list.set_execution_id(List()[0].execution_id());
  EXPECT_THAT(Metrics().ListMetrics(Owner(), list)->metrics(), ElementsAre("cpu"));
}

TEST_F(IngestTest, SeriesOfSeveralRunsInOneRecordStayApart) {
  auto record = Samples(Job("7", kSubmit, 0), "n1", "0", "cpu", kStart, 1000, {1, 1});
  for (const auto& [restart, metric] : {std::pair(1, "cpu"), std::pair(0, "memory")}) {
    auto* other = record.mutable_samples()->add_series();
    *other = record.samples().series(0);
    other->set_metric(metric);
    other->mutable_run()->set_restart_count(restart);
  }
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended()), record});
  std::map<int, std::vector<std::string>> metrics;
  for (const auto& execution : List()) {
    data::v1::ListMetricsRequest list;
    list.set_execution_id(execution.execution_id());
    const auto names = Metrics().ListMetrics(Owner(), list)->metrics();
    metrics[execution.attempt()] = {names.begin(), names.end()};
  }
  EXPECT_THAT(metrics[1], ElementsAre("cpu", "memory"));
  EXPECT_THAT(metrics[2], ElementsAre("cpu"));
}

TEST_F(IngestTest, TextOfAnyBytesIsTaken) {
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, [](Execution& e) {
    Ended(std::string("a\0lice", 6))(e);
    e.set_job_name("nul \0 'quote' \"; DROP TABLE \n\t \xF0\x9F\x8C\x8D");
    e.set_native_id(std::string("7\0", 2));
    e.set_script_hash(std::string("s\0", 2));
  })});
  const auto executions = List();
  ASSERT_EQ(executions.size(), 1u);
  EXPECT_EQ(executions[0].user(), std::string("a\0lice", 6));
  ListExecutionsRequest by_user;
  by_user.set_user("a\xEF\xBF\xBDlice");
  EXPECT_EQ(List(by_user).size(), 1u);
}

TEST_F(IngestTest, ASourceBelongsToOneCompute) {
  const auto batch = Batch({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  ASSERT_TRUE(Send(batch).ok());
  const auto other = Send(batch, 't');
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(other.error().message(), HasSubstr("belongs to another compute"));
  // Another organisation is not told of it.
  EXPECT_TRUE(Send(batch, 'x').ok());
}

TEST_F(IngestTest, ARequestThatCannotBeTakenAsAWholeIsAnError) {
  auto request = Batch({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  request.set_source_id("spool");
  EXPECT_EQ(Send(request).error().code(), Code::kInvalidArgument);
  request.set_source_id(kSource);
  request.set_first_sequence(0);
  EXPECT_EQ(Send(request).error().code(), Code::kInvalidArgument);
  request.set_first_sequence(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Send(request).error().code(), Code::kInvalidArgument);
}

TEST_F(IngestTest, AClockFarAheadDoesNotWinForGood) {
  Push({Facts(FACT_ORIGIN_SQUEUE, Job("7", kSubmit, 0), kNow + 900'000'000,
              [](Execution& e) { e.set_partition("future"); })});
  clock_.Advance(Millis(600'000));
  Push({Facts(FACT_ORIGIN_SQUEUE, Job("7", kSubmit, 0), kNow + 600'000,
              [](Execution& e) { e.set_partition("now"); })});
  EXPECT_EQ(List()[0].partition(), "now");
}

TEST_F(IngestTest, ANativeIdUsedAgainIsAnotherExecution) {
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended("alice"))});
  Push({Facts(FACT_ORIGIN_SQUEUE, Job("7", kNow, 0), kNow, [](Execution& e) {
    e.set_user("bob");
    e.set_status(common::v1::EXECUTION_STATUS_QUEUED);
  })});
  const auto executions = List();
  ASSERT_EQ(executions.size(), 2u);
  EXPECT_EQ(executions[0].user(), "bob");
  EXPECT_EQ(executions[1].user(), "alice");
}

TEST_F(IngestTest, AProvisionalExecutionIsAdoptedAndItsIdStillFindsTheRun) {
  Push({Facts(FACT_ORIGIN_HOOK_PROLOG, Job("7"), kStart - 200, {}, "n1"),
        Samples(Job("7"), "n1", "0", "cpu", kStart, 1000, {1, 1, 1})});
  const auto provisional = List();
  ASSERT_EQ(provisional.size(), 1u);
  EXPECT_EQ(provisional[0].status(), common::v1::EXECUTION_STATUS_RUNNING);
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  const auto adopted = List();
  ASSERT_EQ(adopted.size(), 1u);
  EXPECT_THAT(adopted[0].seen_by(), ElementsAre("prolog", "sacct"));
  EXPECT_EQ(Get(provisional[0].execution_id()).execution_id(), adopted[0].execution_id());
  // The series followed.
  data::v1::QueryMetricsRequest query;
  query.set_execution_id(provisional[0].execution_id());
  query.add_metrics("cpu");
  query.set_interval_ms(1000);
  const auto metrics = Metrics().QueryMetrics(Owner(), query);
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  ASSERT_EQ(metrics->series_size(), 1) << metrics->ShortDebugString();
  EXPECT_EQ(metrics->series(0).points(0).sample_count(), 1);
}

// slurmd runs a hook again when it missed the answer of the first: other times, the same run.
TEST_F(IngestTest, HooksThatRanTwiceAreCountedOnce) {
  const auto step = [](Execution& e) {
    auto* s = e.add_steps();
    s->set_step_id("0");
    s->mutable_cpu_seconds()->set_value(40);
    s->mutable_cpu_seconds()->set_bound(common::v1::BOUND_EXACT);
    s->mutable_memory_peak_enforced()->set_value(1'000'000);
    s->mutable_memory_peak_enforced()->set_bound(common::v1::BOUND_EXACT);
  };
  std::vector<data::v1::Record> once{
      Facts(FACT_ORIGIN_HOOK_PROLOG, Job("7"), kStart - 200, {}, "n1"),
      Facts(data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG, Job("7"), kStart + 399'000, step, "n1", "0"),
      Facts(FACT_ORIGIN_HOOK_EPILOG, Job("7"), kStart + 400'100, {}, "n1"),
      Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())};
  Push(once);
  const auto before = List();
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].cpu_seconds().value(), 40);
  once.pop_back();
  for (auto& record : once) record.set_observed_time_ms(record.observed_time_ms() + 90);
  Push(once);
  const auto after = List();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(DeterministicBytes(after[0]), DeterministicBytes(before[0]));
}

TEST_F(IngestTest, AnEpilogWithoutAPrologIsARunWithNamedUnknowns) {
  Push({Facts(
      FACT_ORIGIN_HOOK_EPILOG, Job("7"), kStart + 400'100,
      [](Execution& e) { e.set_end_time_ms(kStart + 400'100); }, "n1")});
  const auto alone = List();
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].status(), common::v1::EXECUTION_STATUS_UNKNOWN);
  EXPECT_EQ(alone[0].outcome(), common::v1::EXECUTION_OUTCOME_UNKNOWN);
  EXPECT_FALSE(alone[0].has_start_time_ms());
  EXPECT_FALSE(alone[0].has_runtime_seconds());
  for (const char* field : {"outcome", "start_time_ms", "runtime_seconds", "user"})
    EXPECT_TRUE(alone[0].unknown().contains(field)) << field;
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  const auto known = List();
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].outcome(), common::v1::EXECUTION_OUTCOME_SUCCESS);
  EXPECT_THAT(known[0].seen_by(), ElementsAre("epilog", "sacct"));
}

TEST_F(IngestTest, BundlesAndLogTailsComeBackAsSent) {
  data::v1::Record bundle;
  bundle.set_observed_time_ms(kSubmit);
  auto* b = bundle.mutable_bundle();
  *b->mutable_key() = Job("7", kSubmit, 0);
  b->set_bundle_id("b1:abc");
  b->set_script_hash("s");
  b->set_tree_hash("t");
  b->set_args_hash("a");
  b->set_script_path("run.sh");
  b->add_arguments("--epochs=3");
  auto* file = b->add_files();
  file->set_path("run.sh");
  file->set_sha256("raw");
  file->set_size(9);
  file->set_content(std::string("#!/bin\0sh", 9));
  (*b->mutable_unknown())["big.bin"] = "too large";
  data::v1::Record tail;
  tail.set_observed_time_ms(kNow);
  auto* t = tail.mutable_log_tail();
  *t->mutable_key() = Job("7", kSubmit, 0);
  t->set_stream("stderr");
  t->set_path("/w/slurm-7.err");
  t->set_total_bytes(500'000);
  t->set_tail_offset(400'000);
  t->set_content("Traceback\xff\n");
  auto older = tail;
  older.set_observed_time_ms(kNow - 1000);
  older.mutable_log_tail()->set_content("older");
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended()), bundle, tail, older});
  const auto execution = List()[0];
  EXPECT_EQ(execution.bundle_id(), "b1:abc");
  EXPECT_EQ(execution.args_hash(), "a");
  data::v1::GetBundleRequest get;
  get.set_execution_id(execution.execution_id());
  EXPECT_FALSE(Executions().GetBundle(Owner(), get)->bundle().files(0).has_content());
  get.set_with_content(true);
  const auto stored = Executions().GetBundle(Owner(), get)->bundle();
  EXPECT_EQ(stored.files(0).content(), std::string("#!/bin\0sh", 9));
  EXPECT_EQ(stored.files(0).sha256(), "raw");
  EXPECT_EQ(stored.unknown().at("big.bin"), "too large");
  EXPECT_THAT(stored.arguments(), ElementsAre("--epochs=3"));
  data::v1::GetLogTailsRequest logs;
  logs.set_execution_id(execution.execution_id());
  const auto tails = Executions().GetLogTails(Owner(), logs);
  ASSERT_TRUE(tails.ok());
  ASSERT_EQ(tails->tails_size(), 1);
  EXPECT_EQ(tails->tails(0).content(), "Traceback\xff\n");
  EXPECT_EQ(tails->tails(0).tail_offset(), 400'000);
}

TEST_F(IngestTest, ClusterFactsOfSeveralSourcesAddUp) {
  data::v1::Record scheduler;
  scheduler.set_observed_time_ms(kNow);
  scheduler.mutable_compute()->set_scheduler_version("22.05.8");
  for (const char* name : {"n1", "n2"}) scheduler.mutable_compute()->add_nodes()->set_name(name);
  data::v1::Record sampler;
  sampler.set_observed_time_ms(kNow + 1);
  auto* health = sampler.mutable_compute()->add_health();
  health->set_node("n1");
  health->set_part("sampler");
  health->set_status("ok");
  Push({scheduler, sampler});
  scheduler.set_observed_time_ms(kNow + 2);
  scheduler.mutable_compute()->mutable_nodes()->RemoveLast();  // n2 left the cluster
  Push({scheduler});
  data::v1::GetComputeFactsRequest request;
  request.set_compute_id(kCompute);
  const auto facts = Executions().GetComputeFacts(Owner(), request);
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_EQ(facts->compute_name(), "hpc");
  EXPECT_EQ(facts->facts().nodes_size(), 1);
  EXPECT_EQ(facts->facts().health_size(), 1);
  EXPECT_EQ(facts->as_of_ms(), kNow + 2);
}

TEST_F(IngestTest, TheClockOfANodeDoesNotFreezeThePictureOfTheCluster) {
  data::v1::Record scheduler;
  scheduler.set_observed_time_ms(kNow);
  scheduler.mutable_compute()->set_scheduler_version("22.05.8");
  for (const char* name : {"n1", "n2"}) scheduler.mutable_compute()->add_nodes()->set_name(name);
  data::v1::Record samplers;
  samplers.set_observed_time_ms(kNow + 86'400'000);  // a day ahead
  for (const char* node : {"n1", "n2", "head"}) {
    auto* health = samplers.mutable_compute()->add_health();
    health->set_node(node);
    health->set_part("sampler");
    health->set_status("degraded");
  }
  Push({scheduler, samplers});
  data::v1::Record recovered;  // by a node whose clock is right
  recovered.set_observed_time_ms(kNow + 1);
  auto* line = recovered.mutable_compute()->add_health();
  line->set_node("n1");
  line->set_part("sampler");
  line->set_status("ok");
  scheduler.set_observed_time_ms(kNow + 2);
  scheduler.mutable_compute()->mutable_nodes()->RemoveLast();
  Push({recovered, scheduler});
  data::v1::GetComputeFactsRequest request;
  request.set_compute_id(kCompute);
  const auto facts = Executions().GetComputeFacts(Owner(), request);
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_EQ(facts->as_of_ms(), kNow + 2);
  EXPECT_EQ(facts->facts().nodes_size(), 1);
  std::map<std::string, std::string> status;
  for (const auto& health : facts->facts().health()) status[health.node()] = health.status();
  const std::map<std::string, std::string> expected = {{"n1", "ok"}, {"head", "degraded"}};
  EXPECT_EQ(status, expected) << "n2 is gone; the scheduler's host never was one of its nodes";
}

TEST(Sequence, GapsFillFromEitherSide) {
  SequenceState state;
  EXPECT_EQ(state.Take(10, 5), 9);
  EXPECT_EQ(state.next, 15);
  EXPECT_EQ(state.Take(3, 2), 0);
  EXPECT_EQ(FormatGaps(state.gaps), "1-2,5-9");
  EXPECT_EQ(state.missing, 7);
  EXPECT_TRUE(state.IsNew(5));
  EXPECT_FALSE(state.IsNew(4));
  EXPECT_EQ(state.Take(1, 14), 0);
  EXPECT_TRUE(state.gaps.empty());
  EXPECT_EQ(state.missing, 0);
  EXPECT_EQ(ParseGaps("1-2,5-9")->size(), 2u);
  EXPECT_FALSE(ParseGaps("1-2;5").ok());
}

}  // namespace
}  // namespace expanse::data_plane
