// SPDX-License-Identifier: Apache-2.0
// The data plane over real HTTP, SQLite, blobs and series.
#include "data_plane/fact_builder.h"
#include "data_plane/merge/fold.h"
#include "data_plane/plane_fixture.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::FACT_ORIGIN_HOOK_EPILOG;
using data::v1::FACT_ORIGIN_HOOK_PROLOG;
using data::v1::FACT_ORIGIN_SACCT;
using data::v1::FACT_ORIGIN_SCONTROL;
using data::v1::FACT_ORIGIN_SQUEUE;

class DataPlaneTest : public PlaneFixture {
 protected:
  static constexpr int64_t kSubmit = kNow - 600'000;
  static constexpr int64_t kStart = kNow - 500'000;
  static constexpr int64_t kEnd = kNow - 100'000;

  static Fill Ended(const std::string& user = "alice") {
    return [user](Execution& e) {
      e.set_user(user);
      e.set_job_name("train");
      e.set_status(common::v1::EXECUTION_STATUS_SUCCEEDED);
      e.set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
      e.set_scheduler_state("COMPLETED");
      e.set_submit_time_ms(kSubmit);
      e.set_start_time_ms(kStart);
      e.set_end_time_ms(kEnd);
      e.set_exit_code(0);
    };
  }
};

TEST_F(DataPlaneTest, AJobThatWasPushedIsListedWithItsFields) {
  const auto response = Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  EXPECT_EQ(response.acknowledged_through(), 1u);
  const auto executions = List();
  ASSERT_EQ(executions.size(), 1u);
  EXPECT_EQ(executions[0].native_id(), "7");
  EXPECT_EQ(executions[0].user(), "alice");
  EXPECT_EQ(executions[0].outcome(), common::v1::EXECUTION_OUTCOME_SUCCESS);
  EXPECT_EQ(executions[0].runtime_seconds().value(), 400);
  EXPECT_EQ(executions[0].compute_id(), kCompute);
  EXPECT_EQ(executions[0].attempt(), 1);
  EXPECT_TRUE(executions[0].unknown().contains("memory_need"));
  EXPECT_THAT(executions[0].seen_by(), testing::ElementsAre("sacct"));
}

TEST_F(DataPlaneTest, AResentBatchChangesNothing) {
  const auto batch = Batch({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  ASSERT_TRUE(Send(batch).ok());
  const auto before = List();
  const auto again = Send(batch);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->duplicates(), 1u);
  EXPECT_EQ(again->acknowledged_through(), 1u);
  const auto after = List();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(DeterministicBytes(after[0]), DeterministicBytes(before[0]));
}

TEST_F(DataPlaneTest, MetricsOfAJobAreTotalsOfItsSteps) {
  Push({Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended()),
        Samples(Job("7", kSubmit, 0), "n1", "batch", "cpu", kStart, 1000, {1, 1, 1, 1}),
        Samples(Job("7", kSubmit, 0), "n1", "0", "cpu", kStart, 1000, {2, 2, 3, 2}),
        Samples(Job("7", kSubmit, 0), "n2", "0", "memory", kStart, 1000, {5e9, 6e9})});
  data::v1::QueryMetricsRequest request;
  request.set_execution_id(List()[0].execution_id());
  request.add_metrics("cpu");
  request.add_metrics("gpu-util");
  request.set_interval_ms(2000);
  request.set_aggregation(data::v1::METRIC_AGGREGATION_MAX);
  auto response = Metrics().QueryMetrics(Owner(), request);
  ASSERT_TRUE(response.ok()) << response.error().message();
  ASSERT_EQ(response->series_size(), 1);
  const auto& cpu = response->series(0);
  EXPECT_EQ(cpu.unit(), "cores");
  ASSERT_EQ(cpu.points_size(), 2);
  EXPECT_DOUBLE_EQ(cpu.points(0).value(), 3);
  EXPECT_DOUBLE_EQ(cpu.points(1).value(), 4);
  EXPECT_DOUBLE_EQ(cpu.points(1).avg(), 3.5);
  EXPECT_EQ(cpu.points(1).sample_count(), 4);
  EXPECT_EQ(response->unknown().at("gpu-util"), "never sampled");
  data::v1::ListMetricsRequest list;
  list.set_execution_id(request.execution_id());
  EXPECT_THAT(Metrics().ListMetrics(Owner(), list)->metrics(),
              testing::ElementsAre("cpu", "memory"));
}

}  // namespace
}  // namespace expanse::data_plane
