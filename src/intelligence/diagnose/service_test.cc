// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/service.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "storage/relational/migrate.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr char kExecution[] = "01970000-0000-7000-8000-000000000001";

// Answers like a data plane that knows one execution; each part can be made to fail.
class FakeDataPlane final : public rpc::Channel {
 public:
  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& /*request*/, google::protobuf::Message* response,
              Deadline /*deadline*/) override {
    const std::string method(path.substr(path.rfind('/') + 1));
    bearers.emplace_back(bearer);
    ++calls[method];
    if (bearer != "token-of-u1") return Error(Code::kNotFound, "there is no such execution");
    if (const auto it = errors.find(method); it != errors.end()) return it->second;
    if (method == "GetExecution") {
      *static_cast<data::v1::GetExecutionResponse*>(response)->mutable_execution() = execution;
    } else if (method == "GetLogTails") {
      auto* tail = static_cast<data::v1::GetLogTailsResponse*>(response)->add_tails();
      tail->set_stream("stderr");
      tail->set_content("ModuleNotFoundError: No module named 'yaml'\n");
      tail->set_tail_offset(512);
    } else if (method == "GetComputeFacts") {
      static_cast<data::v1::GetComputeFactsResponse*>(response)->set_compute_name("hpc-01");
    } else if (method == "ListRunsOfSource") {
      auto* run = static_cast<data::v1::ListRunsOfSourceResponse*>(response)->add_runs();
      *run->mutable_execution() = execution;  // the run itself is no other run
    }
    return {};
  }

  common::v1::Execution execution;
  std::map<std::string, Error> errors;
  std::map<std::string, int> calls;
  std::vector<std::string> bearers;
};

class DiagnoseServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = storage::Database::Open("sqlite::memory:");
    ASSERT_TRUE(database.ok()) << database.error().message();
    database_ = std::move(*database);
    ASSERT_TRUE(storage::Migrate(*database_, storage::IntelligenceMigrations()).ok());
    api_ = std::make_unique<DiagnoseApi>(*database_, plane_, clock_, random_);
    auto& e = plane_.execution;
    e.set_execution_id(kExecution);
    e.set_compute_id("01970000-0000-7000-8000-0000000000cc");
    e.set_scheduler_state("FAILED");
    e.set_status(common::v1::EXECUTION_STATUS_FAILED);
    e.set_outcome(common::v1::EXECUTION_OUTCOME_FAILURE);
    e.set_exit_code(1);
    e.set_bundle_id("b1:00");
  }
  static rpc::CallContext Caller(const std::string& user = "u1") {
    rpc::CallContext context{{}, Deadline::In(Seconds(10)), ""};
    context.caller.kind = rpc::CallerKind::kUser;
    context.caller.org = OrgId("org");
    context.caller.user = UserId(user);
    context.caller.bearer = "token-of-" + user;
    return context;
  }
  Result<v1::DiagnoseRun> Ask(bool no_cache = false) {
    v1::DiagnoseRequest request;
    request.set_execution_id(kExecution);
    request.set_no_cache(no_cache);
    return api_->Diagnose(Caller(), request);
  }
  static const v1::PipelineStage& Stage(const v1::DiagnoseRun& run, std::string_view name) {
    for (const auto& stage : run.result().pipeline())
      if (stage.name() == name) return stage;
    return v1::PipelineStage::default_instance();
  }

  FakeDataPlane plane_;
  platform::FakeClock clock_{FromUnixMillis(1'796'000'000'000)};
  platform::FakeRandom random_{7};
  std::unique_ptr<storage::Database> database_;
  std::unique_ptr<DiagnoseApi> api_;
};

TEST_F(DiagnoseServiceTest, AnswersFromWhatTheCallerMayRead) {
  const auto run = Ask();
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(run->result().display().failure_class(), "missing_python_module");
  EXPECT_EQ(run->result().display().compute(), "hpc-01");
  EXPECT_EQ(Stage(*run, "similar").summary(), "0 similar executions");
  EXPECT_NE(run->result().root_cause().find("yaml"), std::string::npos);
  bool positioned = false;
  for (const auto& fact : run->result().facts()) positioned |= fact.position() == "bytes 512-555";
  EXPECT_TRUE(positioned);
  for (const auto& bearer : plane_.bearers) EXPECT_EQ(bearer, "token-of-u1");
}

TEST_F(DiagnoseServiceTest, APartThatIsNotAnsweredDegradesItsStage) {
  for (const char* method :
       {"GetLogTails", "ListRunsOfSource", "GetBundle", "QueryMetrics", "GetComputeFacts"})
    plane_.errors.emplace(method, Error(Code::kUnavailable, "the store is busy"));
  const auto run = Ask();
  ASSERT_TRUE(run.ok()) << run.error().message();
  for (const char* stage : {"evidence", "similar", "sources", "metrics"}) {
    EXPECT_EQ(Stage(*run, stage).status(), v1::PIPELINE_STAGE_STATUS_DEGRADED) << stage;
    EXPECT_NE(Stage(*run, stage).summary().find("the store is busy"), std::string::npos) << stage;
  }
  EXPECT_EQ(run->result().display().failure_class(), "task_failure_unattributed");
  EXPECT_EQ(run->result().confidence(), v1::CONFIDENCE_LABEL_LOW);
}

TEST_F(DiagnoseServiceTest, AnExecutionThatCannotBeReadIsTheErrorOfTheDataPlane) {
  plane_.errors.emplace("GetExecution", Error(Code::kNotFound, "there is no such execution"));
  EXPECT_EQ(Ask().error().code(), Code::kNotFound);
  v1::DiagnoseRequest request;
  request.set_execution_id("41982");
  EXPECT_EQ(api_->Diagnose(Caller(), request).error().code(), Code::kInvalidArgument);
}

TEST_F(DiagnoseServiceTest, TheSameEvidenceIsAnsweredFromTheCache) {
  const auto first = Ask();
  const auto second = Ask();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(first->cached());
  EXPECT_TRUE(second->cached());
  EXPECT_EQ(first->run_id(), second->run_id());
  const auto fresh = Ask(/*no_cache=*/true);
  EXPECT_FALSE(fresh->cached());
  EXPECT_NE(fresh->run_id(), first->run_id());
  // Other evidence, another answer.
  plane_.execution.set_exit_code(2);
  EXPECT_FALSE(Ask()->cached());
}

TEST_F(DiagnoseServiceTest, AStoredRunIsReadableOnlyWithItsExecution) {
  const auto run = Ask();
  v1::GetDiagnoseRunRequest request;
  request.set_run_id(run->run_id());
  const auto again = api_->GetDiagnoseRun(Caller(), request);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->result().root_cause(), run->result().root_cause());
  EXPECT_EQ(api_->GetDiagnoseRun(Caller("u2"), request).error().code(), Code::kNotFound);
  auto other_org = Caller();
  other_org.caller.org = OrgId("other");
  EXPECT_EQ(api_->GetDiagnoseRun(other_org, request).error().code(), Code::kNotFound);
}

TEST_F(DiagnoseServiceTest, AQueuedRunIsNotAskedForLogs) {
  plane_.execution.set_status(common::v1::EXECUTION_STATUS_QUEUED);
  plane_.execution.set_scheduler_state("PENDING");
  plane_.execution.clear_outcome();
  plane_.execution.clear_exit_code();
  const auto run = Ask();
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->result().display().failure_class(), "none");
  EXPECT_TRUE(run->result().agent_prompt().empty());
  EXPECT_EQ(plane_.calls.count("GetLogTails"), 0u);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
