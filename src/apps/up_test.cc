// SPDX-License-Identifier: Apache-2.0
// The whole deployment in one process, over its real ports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/settings.h"
#include "apps/up_stack.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "rpc/channel.h"

namespace expanse::apps {
namespace {

using testing::HasSubstr;

class UpStackTest : public testing::Test {
 protected:
  UpOptions Options() const {
    UpOptions options;
    options.data_dir = dir_.path() + "/data";
    options.base_port = 0;
    return options;
  }
  std::unique_ptr<UpStack> Start() {
    auto stack = UpStack::Start(Options());
    EXPECT_TRUE(stack.ok()) << stack.error().message();
    return stack.ok() ? std::move(stack).value() : nullptr;
  }
  Result<control::v1::MintSessionResponse> SignIn(const UpStack& stack) {
    EXPANSE_TRY(const Secret key, ReadKeyFile(stack.owner_key_file()));
    rpc::HttpChannel channel(*http_, stack.urls().control_plane);
    control::v1::MintSessionRequest request;
    request.set_api_key(key.Reveal());
    return control::v1::AuthServiceClient(channel).MintSession("", request);
  }
  std::string Get(const std::string& url) {
    platform::HttpCall call;
    call.method = "GET";
    call.url = url;
    const auto response = http_->Do(call);
    return response.ok() ? response->body : response.error().message();
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  std::unique_ptr<platform::HttpClient> http_ = platform::NewCurlHttpClient();
};

TEST_F(UpStackTest, FirstStartMakesAnOwnerWhoCanSignInAndIsToldWhereThePlanesAre) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(stack->CheckHealth().ok());
  for (const char* file : {"/data/owner.key", "/data/plane.key", "/data/control/control.db"})
    EXPECT_EQ(fs_.Stat(dir_.path() + file)->mode & 0777, 0600U) << file;
  const auto session = SignIn(*stack);
  ASSERT_TRUE(session.ok()) << session.error().message();
  EXPECT_EQ(session->identity().organisation(), "local");
  EXPECT_EQ(session->identity().role(), "Owner");
  EXPECT_EQ(session->endpoints().control_plane_url(), stack->urls().control_plane);
  EXPECT_EQ(session->endpoints().data_plane_url(), stack->urls().data_plane);
  EXPECT_EQ(session->endpoints().intelligence_url(), stack->urls().intelligence);
}

TEST_F(UpStackTest, EveryPlaneHasHealthAndMetrics) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  const auto& urls = stack->urls();
  for (const auto& url : {urls.control_plane, urls.data_plane, urls.intelligence}) {
    EXPECT_EQ(Get(url + "/healthz"), "ok\n") << url;
    EXPECT_THAT(Get(url + "/metrics"),
                HasSubstr("expanse_requests_total{code=\"200\",method=\"/healthz\""));
    Get(url + "/invented/by/the/caller");
    EXPECT_THAT(Get(url + "/metrics"), HasSubstr("code=\"501\",method=\"other\""));
    EXPECT_THAT(Get(url + "/metrics"), testing::Not(HasSubstr("invented")));
  }
}

TEST_F(UpStackTest, LaterStartsKeepTheOrganisationAndItsKeys) {
  std::string organisation;
  std::string key;
  {
    const auto stack = Start();
    ASSERT_NE(stack, nullptr);
    organisation = SignIn(*stack)->identity().organisation_id();
    key = fs_.Read(stack->owner_key_file()).value();
  }
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(fs_.Read(stack->owner_key_file()).value(), key);
  EXPECT_EQ(SignIn(*stack)->identity().organisation_id(), organisation);
}

TEST_F(UpStackTest, LostOrDeadKeyFilesAreReplaced) {
  { ASSERT_NE(Start(), nullptr); }
  ASSERT_TRUE(fs_.Remove(dir_.path() + "/data/owner.key").ok());
  const Secret foreign("exp_plane_" + std::string(43, 'A'));
  ASSERT_TRUE(WriteKeyFile(dir_.path() + "/data/plane.key", foreign).ok());
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(SignIn(*stack).ok());
  EXPECT_NE(ReadKeyFile(dir_.path() + "/data/plane.key")->Reveal(), foreign.Reveal());
}

TEST_F(UpStackTest, KeyFileThatOthersCanReadIsRefused) {
  { ASSERT_NE(Start(), nullptr); }
  ASSERT_TRUE(fs_.Chmod(dir_.path() + "/data/owner.key", 0644).ok());
  const auto stack = UpStack::Start(Options());
  ASSERT_FALSE(stack.ok());
  EXPECT_THAT(stack.error().message(), HasSubstr("can be read by others"));
}

TEST_F(UpStackTest, SecondOnTheSameDataDirectoryIsRefused) {
  const auto stack = Start();
  const auto second = UpStack::Start(Options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(second.error().message(), HasSubstr("running on this data directory already"));
}

TEST_F(UpStackTest, RecordsWhatTheControlPlaneReceives) {
  UpOptions options = Options();
  options.record_received_by_control = dir_.path() + "/received";
  const auto stack = UpStack::Start(options);
  ASSERT_TRUE(stack.ok()) << stack.error().message();
  ASSERT_TRUE(SignIn(**stack).ok());
  const std::string received = fs_.Read(dir_.path() + "/received").value();
  EXPECT_THAT(received, HasSubstr("POST /expanse.control.v1.AuthService/MintSession\n"));
  EXPECT_EQ(fs_.Stat(dir_.path() + "/received")->mode & 0777, 0600U);
}

TEST_F(UpStackTest, ComputeEnrolsThroughTheDataPlaneAndIsHeardOf) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  const std::string session = SignIn(*stack)->access_token();
  rpc::HttpChannel control_channel(*http_, stack->urls().control_plane);
  rpc::HttpChannel data_channel(*http_, stack->urls().data_plane);
  const control::v1::ComputeServiceClient computes(control_channel);
  const data::v1::EnrolmentServiceClient enrolment(data_channel);

  control::v1::RegisterComputeRequest registration;
  registration.set_type(control::v1::COMPUTE_TYPE_SLURM);
  const auto registered = computes.RegisterCompute(session, registration);
  ASSERT_TRUE(registered.ok()) << registered.error().message();
  data::v1::ExchangeInstallTokenRequest exchange;
  exchange.set_install_token(registered->install_token());
  exchange.set_scheduler_identity("hpc");
  const auto enrolled = enrolment.ExchangeInstallToken("", exchange);
  ASSERT_TRUE(enrolled.ok()) << enrolled.error().message();
  EXPECT_EQ(enrolled->organisation(), "local");
  EXPECT_EQ(enrolled->endpoints().data_plane_url(), stack->urls().data_plane);

  data::v1::HeartbeatRequest heartbeat;
  heartbeat.set_daemon_version("0.1.0");
  heartbeat.set_nodes(2);
  const auto heard = enrolment.Heartbeat(enrolled->credential(), heartbeat);
  ASSERT_TRUE(heard.ok()) << heard.error().message();
  EXPECT_TRUE(heard->recorded_by_control_plane());
  control::v1::GetComputeRequest get;
  get.set_compute_id(enrolled->compute_id());
  const auto compute = computes.GetCompute(session, get);
  ASSERT_TRUE(compute.ok()) << compute.error().message();
  EXPECT_EQ(compute->compute().state(), control::v1::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(compute->compute().nodes(), 2);

  const auto replayed = enrolment.ExchangeInstallToken("", exchange);
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message(), HasSubstr("sent its first heartbeat"));
  for (const std::string& bearer : {session, registered->install_token(), std::string("x")})
    EXPECT_EQ(enrolment.Heartbeat(bearer, heartbeat).error().code(), Code::kUnauthenticated);

  EXPECT_TRUE(enrolment.Deprovision(enrolled->credential(), {}).ok());
  EXPECT_EQ(enrolment.Heartbeat(enrolled->credential(), heartbeat).error().code(),
            Code::kUnauthenticated);
  EXPECT_EQ(computes.GetCompute(session, get)->compute().state(),
            control::v1::COMPUTE_STATE_REVOKED);
}

TEST_F(UpStackTest, ASessionIsTakenByEveryPlaneAndAStrangersByNone) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  const std::string session = SignIn(*stack)->access_token();
  rpc::HttpChannel data_channel(*http_, stack->urls().data_plane);
  rpc::HttpChannel intelligence_channel(*http_, stack->urls().intelligence);
  const data::v1::ExecutionServiceClient executions(data_channel);
  const intelligence::v1::DiagnoseServiceClient diagnose(intelligence_channel);
  const auto listed = executions.ListExecutions(session, {});
  ASSERT_TRUE(listed.ok()) << listed.error().message();
  EXPECT_EQ(listed->executions_size(), 0);
  EXPECT_NE(diagnose.GetDiagnoseRun(session, {}).error().code(), Code::kUnauthenticated);

  const platform::TempDir elsewhere;
  UpOptions options = Options();
  options.data_dir = elsewhere.path() + "/data";
  const auto stranger = UpStack::Start(options);
  ASSERT_TRUE(stranger.ok()) << stranger.error().message();
  const std::string foreign = SignIn(**stranger)->access_token();
  EXPECT_EQ(executions.ListExecutions(foreign, {}).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(diagnose.GetDiagnoseRun(foreign, {}).error().code(), Code::kUnauthenticated);
}

}  // namespace
}  // namespace expanse::apps
