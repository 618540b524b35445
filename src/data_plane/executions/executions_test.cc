// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "data_plane/fact_builder.h"
#include "data_plane/plane_fixture.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::FACT_ORIGIN_SACCT;
using data::v1::ListExecutionsRequest;
using testing::ElementsAre;

class ExecutionsTest : public PlaneFixture {
 protected:
  data::v1::Record Ran(int id, const std::string& user, const Fill& more = {}) {
    const int64_t submit = kSubmit + id * 1000;
    return Facts(FACT_ORIGIN_SACCT, Job(std::to_string(id), submit, 0), kNow, [=](Execution& e) {
      Ended(user, submit)(e);
      if (more) more(e);
    });
  }
  static std::vector<std::string> Ids(const std::vector<Execution>& executions) {
    std::vector<std::string> out;
    for (const auto& e : executions) out.push_back(e.native_id());
    return out;
  }
};

TEST_F(ExecutionsTest, PagesAreNewestFirstAndDoNotOverlap) {
  std::vector<data::v1::Record> records;
  for (int i = 1; i <= 7; ++i) records.push_back(Ran(i, "alice"));
  Push(records);
  ListExecutionsRequest request;
  request.set_limit(3);
  std::vector<std::string> seen;
  for (int page = 0; page < 4; ++page) {
    auto response = Executions().ListExecutions(Owner(), request);
    ASSERT_TRUE(response.ok()) << response.error().message();
    for (const auto& e : response->executions()) seen.push_back(e.native_id());
    if (response->next_page_token().empty()) break;
    request.set_page_token(response->next_page_token());
  }
  EXPECT_THAT(seen, ElementsAre("7", "6", "5", "4", "3", "2", "1"));
  request.set_page_token("nonsense");
  EXPECT_EQ(Executions().ListExecutions(Owner(), request).error().code(), Code::kInvalidArgument);
}

TEST_F(ExecutionsTest, FiltersTakeWhatTheyName) {
  Push({Ran(1, "alice"), Ran(2, "bob"), Ran(3, ""), Ran(4, "bob", [](Execution& e) {
          e.set_status(common::v1::EXECUTION_STATUS_FAILED);
          e.set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
        })});
  ListExecutionsRequest by_user;
  by_user.set_user("bob");
  EXPECT_THAT(Ids(List(by_user)), ElementsAre("4", "2"));
  ListExecutionsRequest by_status;
  by_status.set_status(common::v1::EXECUTION_STATUS_FAILED);
  EXPECT_THAT(Ids(List(by_status)), ElementsAre("4"));
  ListExecutionsRequest by_outcome;
  by_outcome.set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
  by_outcome.set_user("bob");
  EXPECT_THAT(Ids(List(by_outcome)), ElementsAre("2"));
  ListExecutionsRequest by_compute;
  by_compute.set_compute_id(kTeamCompute);
  EXPECT_TRUE(List(by_compute).empty());
}

TEST_F(ExecutionsTest, MineIsTheLocalPartOfTheAddressUntilAMappingSaysOtherwise) {
  Push({Ran(1, "alice"), Ran(2, "bob"), Ran(3, "a.smith"), Ran(4, "")});
  ListExecutionsRequest mine;
  mine.set_mine(true);
  EXPECT_THAT(Ids(List(mine, Member())), ElementsAre("1"));
  data::v1::SetUserMappingRequest mapping;
  mapping.set_email("Alice@example.org");
  mapping.add_scheduler_users("a.smith");
  mapping.add_scheduler_users("bob");
  ASSERT_FALSE(Executions().SetUserMapping(Member(), mapping).ok());
  ASSERT_TRUE(Executions().SetUserMapping(Owner(), mapping).ok());
  EXPECT_THAT(Ids(List(mine, Member())), ElementsAre("3", "2"));
}

TEST_F(ExecutionsTest, AMemberSeesOwnTeamsComputesAndThoseWithoutATeam) {
  Push({Ran(1, "alice")});
  auto batch = Batch({Ran(2, "bob")}, 1);
  batch.set_source_id("01940000-0000-7000-8000-0000000000d2");
  ASSERT_TRUE(Send(batch, 't').ok());
  const auto all = List();
  EXPECT_THAT(Ids(all), ElementsAre("2", "1"));
  EXPECT_THAT(Ids(List({}, Member())), ElementsAre("1"));
  EXPECT_THAT(Ids(List({}, Member({"team-1"}))), ElementsAre("2", "1"));
  data::v1::GetExecutionRequest get;
  get.set_execution_id(all[0].execution_id());
  EXPECT_EQ(Executions().GetExecution(Member(), get).error().code(), Code::kNotFound);
  EXPECT_TRUE(Executions().GetExecution(Member({"team-1"}), get).ok());
  data::v1::GetComputeFactsRequest facts;
  facts.set_compute_id(kTeamCompute);
  EXPECT_EQ(Executions().GetComputeFacts(Member(), facts).error().code(), Code::kNotFound);
}

TEST_F(ExecutionsTest, AnotherOrganisationSeesNothing) {
  Push({Ran(1, "alice")});
  const std::string stranger =
      Session("eve@other.org", {"executions.read", "executions.read_all"}, {}, kOtherOrg);
  EXPECT_TRUE(List({}, stranger).empty());
  data::v1::GetExecutionRequest get;
  get.set_execution_id(List()[0].execution_id());
  EXPECT_EQ(Executions().GetExecution(stranger, get).error().code(), Code::kNotFound);
  data::v1::GetBundleRequest bundle;
  bundle.set_execution_id(get.execution_id());
  EXPECT_EQ(Executions().GetBundle(stranger, bundle).error().code(), Code::kNotFound);
  data::v1::QueryMetricsRequest metrics;
  metrics.set_execution_id(get.execution_id());
  metrics.add_metrics("cpu");
  EXPECT_EQ(Metrics().QueryMetrics(stranger, metrics).error().code(), Code::kNotFound);
}

TEST_F(ExecutionsTest, ANativeIdResolvesToEveryRunBehindItNewestFirst) {
  Push({Ran(7, "alice"),
        Facts(FACT_ORIGIN_SACCT, Job("7", kSubmit + 100'000, 0), kNow,
              Ended("bob", kSubmit + 100'000)),
        Ran(9, "carol", [](Execution& e) { e.set_native_id("8_3"); })});
  data::v1::ResolveExecutionRequest request;
  request.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  request.set_native_id("7");
  auto response = Executions().ResolveExecution(Owner(), request);
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->executions_size(), 2);
  EXPECT_EQ(response->executions(0).user(), "bob");
  request.set_native_id("8_3");
  EXPECT_EQ(Executions().ResolveExecution(Owner(), request)->executions_size(), 1);
  request.set_source_type(common::v1::SOURCE_TYPE_NOMAD);
  EXPECT_EQ(Executions().ResolveExecution(Owner(), request)->executions_size(), 0);
}

TEST_F(ExecutionsTest, RunsOfASourceSayHowTheyAreAlike) {
  const auto with = [](const std::string& script, const std::string& tree,
                       const std::string& args) {
    return [=](Execution& e) {
      e.set_script_hash(script);
      e.set_tree_hash(tree);
      e.set_args_hash(args);
    };
  };
  Push({Ran(1, "bob", with("s", "t", "a")), Ran(2, "bob", with("s", "t", "b")),
        Ran(3, "alice", with("s", "other", "a")), Ran(4, "alice", with("x", "y", "z")),
        Ran(5, "bob", with("x", "y", "z"))});
  data::v1::ListRunsOfSourceRequest request;
  request.set_compute_id(kCompute);
  request.set_script_hash("s");
  request.set_tree_hash("t");
  request.set_args_hash("a");
  request.set_user("alice");
  request.set_job_name("train");
  auto response = Executions().ListRunsOfSource(Owner(), request);
  ASSERT_TRUE(response.ok()) << response.error().message();
  std::vector<std::tuple<std::string, std::string, double>> got;
  for (const auto& run : response->runs())
    got.emplace_back(run.execution().native_id(), run.basis(), run.similarity());
  EXPECT_THAT(
      got,
      ElementsAre(std::tuple("4", "user_history", 0.1), std::tuple("3", "user_history", 0.7),
                  std::tuple("2", "similar_bundle", 0.8), std::tuple("1", "exact_bundle", 1.0)));
  request.set_compute_id("");
  EXPECT_EQ(Executions().ListRunsOfSource(Owner(), request).error().code(), Code::kInvalidArgument);
}

TEST_F(ExecutionsTest, SessionsAreRequiredAndComputesAreNoPeople) {
  EXPECT_EQ(Executions().ListExecutions("", {}).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Executions().ListExecutions(Credential("exp_compute_", 'a'), {}).error().code(),
            Code::kUnauthenticated);
  EXPECT_EQ(Executions().ListExecutions(Session("x@y", {}), {}).error().code(),
            Code::kPermissionDenied);
}

}  // namespace
}  // namespace expanse::data_plane
