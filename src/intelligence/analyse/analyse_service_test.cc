// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/analyse_service.h"

#include <condition_variable>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/analyse/analyser_fixture.h"
#include "platform/fs/fs.h"
#include "storage/relational/migrate.h"

namespace expanse::intelligence::analyse {
namespace {

using ::testing::HasSubstr;

const char kCompute[] = "01900000-0000-7000-8000-000000000001";

/// Answers the two calls that analyse makes, and notes whose token came.
class FakeDataPlane final : public rpc::Channel {
 public:
  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline /*deadline*/) override {
    std::unique_lock lock(mutex_);
    bearers.emplace_back(bearer);
    open_.wait(lock, [this] { return !held_; });
    if (error) return *error;
    if (path == "/expanse.data.v1.ExecutionService/ListRunsOfSource") {
      asked = static_cast<const data::v1::ListRunsOfSourceRequest&>(request);
      for (const auto& run : runs)
        *static_cast<data::v1::ListRunsOfSourceResponse*>(response)->add_runs() = run;
      return {};
    }
    return Error(Code::kNotFound, "no facts yet");
  }
  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    open_.notify_all();
  }

  std::vector<data::v1::RecordedRun> runs;
  std::optional<Error> error;
  std::vector<std::string> bearers;
  data::v1::ListRunsOfSourceRequest asked;

 private:
  std::mutex mutex_;
  std::condition_variable open_;
  bool held_ = false;
};

class AnalyseServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = storage::Database::Open("sqlite:" + dir_.path() + "/i.db");
    ASSERT_TRUE(database.ok()) << database.error().message();
    database_ = std::move(*database);
    ASSERT_TRUE(storage::Migrate(*database_, storage::IntelligenceMigrations()).ok());
    Start();
  }
  void Start() {
    api_.reset();
    api_ = std::make_unique<AnalyseApi>(*database_, data_plane_, clock_, random_);
  }
  static rpc::CallContext Caller(const std::string& user = "u1") {
    rpc::CallContext context{{}, Deadline::In(Seconds(10)), ""};
    context.caller.kind = rpc::CallerKind::kUser;
    context.caller.org = OrgId("org");
    context.caller.user = UserId(user);
    context.caller.bearer = "token-of-" + user;
    return context;
  }
  static v1::AnalyseRequest Request(
      const std::string& script = "#!/bin/bash\n#SBATCH --mem=8G -t 60\npython x.py\n") {
    auto request = Question(script).request;
    request.set_compute_id(kCompute);
    request.mutable_bundle()->set_script_hash("s");
    request.mutable_bundle()->set_tree_hash("t");
    request.mutable_bundle()->set_args_hash("a");
    request.set_user("alice");
    return request;
  }
  v1::AnalyseRun Await(const std::string& run_id) {
    v1::GetAnalyseRunRequest get;
    get.set_run_id(run_id);
    const Deadline deadline = Deadline::In(Seconds(20));
    while (!deadline.Expired()) {
      auto run = api_->GetAnalyseRun(Caller(), get);
      if (!run.ok()) break;
      if (run->status() != v1::RUN_STATUS_QUEUED && run->status() != v1::RUN_STATUS_RUNNING)
        return *run;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "the run did not end";
    return {};
  }

  platform::TempDir dir_;
  platform::FakeClock clock_{FromUnixMillis(1'700'000'000'000)};
  platform::FakeRandom random_{7};
  FakeDataPlane data_plane_;
  std::unique_ptr<storage::Database> database_;
  std::unique_ptr<AnalyseApi> api_;
};

TEST_F(AnalyseServiceTest, AsksTheDataPlaneWithTheCallersOwnToken) {
  data_plane_.runs = {Ran("2", 1, 600), Ran("1", 1, 600)};
  const auto run = api_->Analyse(Caller(), Request());
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(run->target(), "train.slurm");
  for (const auto& bearer : data_plane_.bearers) EXPECT_EQ(bearer, "token-of-u1");
  EXPECT_EQ(data_plane_.asked.script_hash(), "s");
  EXPECT_EQ(data_plane_.asked.args_hash(), "a");
  EXPECT_EQ(data_plane_.asked.job_name(), "train.slurm");
  EXPECT_EQ(data_plane_.asked.user(), "alice");
}

TEST_F(AnalyseServiceTest, AnIdenticalQuestionIsAnsweredFromTheStoreUntilEvidenceChanges) {
  data_plane_.runs = {Ran("1", 1, 600)};
  const auto first = api_->Analyse(Caller(), Request());
  const auto second = api_->Analyse(Caller(), Request());
  EXPECT_FALSE(first->cached());
  EXPECT_TRUE(second->cached());
  EXPECT_EQ(first->run_id(), second->run_id());
  EXPECT_EQ(first->result().SerializeAsString(), second->result().SerializeAsString());

  auto fresh = Request();
  fresh.set_no_cache(true);
  EXPECT_NE(api_->Analyse(Caller(), fresh)->run_id(), first->run_id());
  auto other = Request();
  other.set_risk(v1::RISK_TOLERANCE_LOW);
  EXPECT_FALSE(api_->Analyse(Caller(), other)->cached());
  EXPECT_FALSE(api_->Analyse(Caller("u2"), Request())->cached()) << "answers are a user's own";
  data_plane_.runs.push_back(Ran("2", 1.2, 600));
  EXPECT_FALSE(api_->Analyse(Caller(), Request())->cached());
}

TEST_F(AnalyseServiceTest, ThePatchIsFetchedByItsOwnerOnly) {
  data_plane_.runs = {Ran("2", 1, 600), Ran("1", 1, 600)};
  const auto run = api_->Analyse(Caller(), Request());
  ASSERT_EQ(run->result().artifacts_size(), 1);
  v1::GetArtifactRequest get;
  get.set_run_id(run->run_id());
  get.set_artifact_id(run->result().artifacts(0).artifact_id());
  const auto artifact = api_->GetArtifact(Caller(), get);
  ASSERT_TRUE(artifact.ok());
  EXPECT_EQ("sha256:" + platform::Sha256Hex(artifact->content()), artifact->content_hash());
  EXPECT_EQ(artifact->content_hash(), run->result().artifacts(0).content_hash());
  EXPECT_EQ(api_->GetArtifact(Caller("u2"), get).error().code(), Code::kNotFound);
  get.set_artifact_id("other");
  EXPECT_EQ(api_->GetArtifact(Caller(), get).error().code(), Code::kNotFound);
  v1::GetAnalyseRunRequest again;
  again.set_run_id(run->run_id());
  EXPECT_EQ(api_->GetAnalyseRun(Caller(), again)->result().evidence_size(), 2);
  EXPECT_EQ(api_->GetAnalyseRun(Caller("u2"), again).error().code(), Code::kNotFound);
}

TEST_F(AnalyseServiceTest, AQueuedRunIsAnsweredInTheBackground) {
  data_plane_.runs = {Ran("1", 1, 600)};
  auto request = Request();
  request.set_queue(true);
  data_plane_.Hold(true);
  const auto queued = api_->Analyse(Caller(), request);
  ASSERT_TRUE(queued.ok());
  EXPECT_EQ(queued->status(), v1::RUN_STATUS_QUEUED);
  EXPECT_FALSE(queued->has_result());
  data_plane_.Hold(false);
  const auto run = Await(queued->run_id());
  EXPECT_EQ(run.status(), v1::RUN_STATUS_SUCCEEDED);
  EXPECT_EQ(run.result().evidence_size(), 1);
}

TEST_F(AnalyseServiceTest, AQueuedRunThatCannotBeAnsweredSaysWhy) {
  data_plane_.error = Error(Code::kUnavailable, "the data plane is away");
  auto request = Request();
  request.set_queue(true);
  const auto run = Await(api_->Analyse(Caller(), request)->run_id());
  EXPECT_EQ(run.status(), v1::RUN_STATUS_FAILED);
  EXPECT_THAT(run.error(), HasSubstr("the data plane is away"));
}

TEST_F(AnalyseServiceTest, ARestartFailsRunsThatWereLeftOpen) {
  v1::AnalyseRun open;
  open.set_run_id("r1");
  open.set_status(v1::RUN_STATUS_QUEUED);
  ASSERT_TRUE(RunStore(*database_)
                  .Put({OrgId("org"), UserId("u1")}, open, "", std::nullopt, clock_.Now())
                  .ok());
  Start();
  v1::GetAnalyseRunRequest get;
  get.set_run_id("r1");
  const auto run = api_->GetAnalyseRun(Caller(), get);
  EXPECT_EQ(run->status(), v1::RUN_STATUS_FAILED);
  EXPECT_THAT(run->error(), HasSubstr("restarted"));
}

TEST_F(AnalyseServiceTest, MissingClusterFactsAreNamedAndRunsAreRequired) {
  const auto run = api_->Analyse(Caller(), Request());
  bool named = false;
  for (const auto& warning : run->result().warnings())
    named = named || warning.find("no facts yet") != std::string::npos;
  EXPECT_TRUE(named);
  data_plane_.error = Error(Code::kPermissionDenied, "not yours");
  auto fresh = Request();
  fresh.set_no_cache(true);
  EXPECT_EQ(api_->Analyse(Caller(), fresh).error().code(), Code::kPermissionDenied);
}

TEST_F(AnalyseServiceTest, BadRequestsAreRefusedBeforeAnythingIsAsked) {
  auto no_compute = Request();
  no_compute.clear_compute_id();
  EXPECT_EQ(api_->Analyse(Caller(), no_compute).error().code(), Code::kInvalidArgument);
  auto manifest = Request();
  manifest.mutable_bundle()->mutable_key()->set_source_type(common::v1::SOURCE_TYPE_NOMAD);
  manifest.set_queue(true);
  EXPECT_EQ(api_->Analyse(Caller(), manifest).error().code(), Code::kUnimplemented);
  auto negative = Request();
  negative.set_memory_bytes(-1);
  EXPECT_EQ(api_->Analyse(Caller(), negative).error().code(), Code::kInvalidArgument);
  auto large = Request();
  large.mutable_bundle()->add_files()->set_content(std::string(17 << 20, 'x'));
  EXPECT_EQ(api_->Analyse(Caller(), large).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(data_plane_.bearers.empty());
}

}  // namespace
}  // namespace expanse::intelligence::analyse
