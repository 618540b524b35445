// SPDX-License-Identifier: Apache-2.0
// A data plane behind a real HTTP server on a free port, with real stores in a temporary directory,
// a fake control plane behind another, and a clock that moves when told. For the tests here.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/sessions/session_token.h"
#include "data_plane/data_plane.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "platform/random/random.h"
#include "rpc/channel.h"
#include "rpc/router.h"

namespace expanse::data_plane {

/// 43 characters of a credential's random part, told apart by the letter.
inline std::string Credential(const std::string& prefix, char letter) {
  return prefix + std::string(43, letter);
}

/// What the data plane asks of a control plane. Switched off it answers 503, as a proxy in front of
/// a plane that is away.
class FakeControl final : public rpc::Authenticator,
                          public control::v1::PlaneService,
                          public control::v1::AuthService {
 public:
  struct KnownCompute {
    std::string org;
    std::string compute;
    std::string team;
    std::string name;
  };

  FakeControl() : key_(auth::SigningKey::Generate().value()), router_(*this) {
    control::v1::Register(router_, static_cast<control::v1::PlaneService&>(*this));
    control::v1::Register(router_, static_cast<control::v1::AuthService&>(*this));
    server_ = platform::HttpServer::Start({}, [this](const platform::HttpRequest& request) {
                if (is_away) return platform::HttpResponse{away_status, {}, "away"};
                return router_.Handle(request);
              }).value();
  }
  std::string url() const { return server_->url(); }
  const auth::SigningKey& key() const { return key_; }

  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view) override {
    if (bearer != Credential("exp_plane_", 'p')) return Error(Code::kUnauthenticated, "no plane");
    rpc::Caller caller;
    caller.kind = rpc::CallerKind::kPlane;
    return caller;
  }
  Result<control::v1::ExchangeInstallTokenResponse> ExchangeInstallToken(
      const rpc::CallContext&, const control::v1::ExchangeInstallTokenRequest& request) override {
    if (request.install_token() != "good") return Error(Code::kNotFound, "no such token");
    control::v1::ExchangeInstallTokenResponse response;
    response.set_compute_id("c");
    response.set_credential(Credential("exp_compute_", 'a'));
    return response;
  }
  Result<control::v1::VerifyComputeCredentialResponse> VerifyComputeCredential(
      const rpc::CallContext&,
      const control::v1::VerifyComputeCredentialRequest& request) override {
    ++verifications;
    const std::lock_guard lock(mutex);
    const auto it = computes.find(request.credential());
    if (it == computes.end()) return Error(Code::kPermissionDenied, "revoked");
    control::v1::VerifyComputeCredentialResponse response;
    response.set_organisation_id(it->second.org);
    response.set_compute_id(it->second.compute);
    response.set_team_id(it->second.team);
    response.set_compute_name(it->second.name);
    response.set_type(control::v1::COMPUTE_TYPE_SLURM);
    response.set_valid_for_seconds(7 * 86'400);
    return response;
  }
  Result<control::v1::RecordHeartbeatResponse> RecordHeartbeat(
      const rpc::CallContext&, const control::v1::RecordHeartbeatRequest& request) override {
    const std::lock_guard lock(mutex);
    heartbeats.push_back(request);
    return control::v1::RecordHeartbeatResponse();
  }
  Result<control::v1::DeprovisionResponse> Deprovision(
      const rpc::CallContext&, const control::v1::DeprovisionRequest&) override {
    return control::v1::DeprovisionResponse();
  }
  Result<control::v1::MintSessionResponse> MintSession(
      const rpc::CallContext&, const control::v1::MintSessionRequest&) override {
    return Error(Code::kUnimplemented, "");
  }
  Result<control::v1::WhoAmIResponse> WhoAmI(const rpc::CallContext&,
                                             const control::v1::WhoAmIRequest&) override {
    return Error(Code::kUnimplemented, "");
  }
  Result<control::v1::GetKeySetResponse> GetKeySet(const rpc::CallContext&,
                                                   const control::v1::GetKeySetRequest&) override {
    control::v1::GetKeySetResponse response;
    response.set_jwks_json(auth::KeySet::ToJwks("test", {key_.public_jwk()}));
    return response;
  }

  std::atomic<bool> is_away{false};
  std::atomic<int> away_status{503};
  std::atomic<int> verifications{0};
  std::mutex mutex;
  std::map<std::string, KnownCompute> computes;
  std::vector<control::v1::RecordHeartbeatRequest> heartbeats;

 private:
  auth::SigningKey key_;
  rpc::Router router_;
  std::unique_ptr<platform::HttpServer> server_;
};

class PlaneFixture : public testing::Test {
 protected:
  static constexpr char kOrg[] = "01940000-0000-7000-8000-0000000000a0";
  static constexpr char kOtherOrg[] = "01940000-0000-7000-8000-0000000000b0";
  static constexpr char kCompute[] = "01940000-0000-7000-8000-0000000000c1";
  static constexpr char kTeamCompute[] = "01940000-0000-7000-8000-0000000000c2";
  static constexpr char kOtherCompute[] = "01940000-0000-7000-8000-0000000000c3";
  static constexpr char kSource[] = "01940000-0000-7000-8000-0000000000d1";
  static constexpr int64_t kNow = 1'796'000'000'000;
  static constexpr int64_t kSubmit = kNow - 600'000;
  static constexpr int64_t kStart = kNow - 500'000;
  static constexpr int64_t kEnd = kNow - 100'000;

  /// A job that ran from kStart to kEnd and succeeded.
  static std::function<void(common::v1::Execution&)> Ended(const std::string& user = "alice",
                                                           int64_t submit_ms = kSubmit) {
    return [user, submit_ms](common::v1::Execution& e) {
      e.set_user(user);
      e.set_job_name("train");
      e.set_status(common::v1::EXECUTION_STATUS_SUCCEEDED);
      e.set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
      e.set_scheduler_state("COMPLETED");
      e.set_submit_time_ms(submit_ms);
      e.set_start_time_ms(kStart);
      e.set_end_time_ms(kEnd);
      e.set_exit_code(0);
    };
  }

  void SetUp() override {
    control_.computes[Credential("exp_compute_", 'a')] = {kOrg, kCompute, "", "hpc"};
    control_.computes[Credential("exp_compute_", 't')] = {kOrg, kTeamCompute, "team-1", "gpu"};
    control_.computes[Credential("exp_compute_", 'x')] = {kOtherOrg, kOtherCompute, "", "other"};
    Start();
  }

  void Start() {
    DataPlane::Options options;
    options.data_dir = dir_.path() + "/data";
    options.control_plane_url = control_.url();
    options.plane_credential = Secret(Credential("exp_plane_", 'p'));
    options.housekeeping_period = Millis(0);
    options.key_refresh_period = Millis(0);
    options.endpoints.data_plane_url = "http://data";
    auto plane = DataPlane::Open(options, clock_, random_);
    ASSERT_TRUE(plane.ok()) << plane.error().message();
    plane_ = std::move(plane).value();
    router_ = std::make_unique<rpc::Router>(plane_->authenticator());
    plane_->Register(*router_);
    server_ = platform::HttpServer::Start({}, [this](const platform::HttpRequest& request) {
                return router_->Handle(request);
              }).value();
    channel_ = std::make_unique<rpc::HttpChannel>(*http_, server_->url());
  }
  void Restart() {
    channel_.reset();
    server_.reset();
    router_.reset();
    plane_.reset();
    Start();
  }

  std::string Session(const std::string& email, std::vector<std::string> permissions,
                      std::vector<std::string> teams = {}, const std::string& org = kOrg) {
    auth::SessionClaims claims;
    claims.issuer = "test";
    claims.user = UserId("01940000-0000-7000-8000-0000000000e1");
    claims.organisation = OrgId(org);
    claims.organisation_name = "Labs";
    claims.email = email;
    claims.name = email;
    claims.role = "Member";
    claims.permissions = std::move(permissions);
    claims.teams = std::move(teams);
    claims.issued_at = clock_.Now();
    claims.expires_at = clock_.Now() + Millis(900'000);
    return auth::SignSessionToken(claims, control_.key()).value();
  }
  std::string Owner() {
    return Session("ada@example.org",
                   {"executions.read", "executions.read_all", "computes.manage"});
  }
  std::string Member(std::vector<std::string> teams = {}) {
    return Session("alice@example.org", {"executions.read"}, std::move(teams));
  }

  data::v1::IngestServiceClient Ingest() { return data::v1::IngestServiceClient(*channel_); }
  data::v1::ExecutionServiceClient Executions() {
    return data::v1::ExecutionServiceClient(*channel_);
  }
  data::v1::MetricsServiceClient Metrics() { return data::v1::MetricsServiceClient(*channel_); }
  data::v1::EnrolmentServiceClient Enrolment() {
    return data::v1::EnrolmentServiceClient(*channel_);
  }

  data::v1::PushRequest Batch(std::vector<data::v1::Record> records, uint64_t first = 0) {
    data::v1::PushRequest request;
    request.set_source_id(kSource);
    request.set_first_sequence(first == 0 ? next_sequence_ : first);
    if (first == 0) next_sequence_ += records.size();
    for (auto& record : records) *request.add_records() = std::move(record);
    return request;
  }
  Result<data::v1::PushResponse> Send(const data::v1::PushRequest& request, char compute = 'a') {
    return Ingest().Push(Credential("exp_compute_", compute), request);
  }
  data::v1::PushResponse Push(std::vector<data::v1::Record> records) {
    auto response = Send(Batch(std::move(records)));
    EXPECT_TRUE(response.ok()) << response.error().message();
    return response.ok() ? *response : data::v1::PushResponse();
  }

  std::vector<common::v1::Execution> List(data::v1::ListExecutionsRequest request = {},
                                          std::string bearer = "") {
    if (request.limit() == 0) request.set_limit(1000);
    auto response = Executions().ListExecutions(bearer.empty() ? Owner() : bearer, request);
    EXPECT_TRUE(response.ok()) << response.error().message();
    if (!response.ok()) return {};
    return {response->executions().begin(), response->executions().end()};
  }
  common::v1::Execution Get(const std::string& id) {
    data::v1::GetExecutionRequest request;
    request.set_execution_id(id);
    auto response = Executions().GetExecution(Owner(), request);
    EXPECT_TRUE(response.ok()) << response.error().message();
    return response.ok() ? response->execution() : common::v1::Execution();
  }

  FakeControl control_;
  platform::TempDir dir_;
  platform::FakeClock clock_{FromUnixMillis(kNow)};
  platform::SystemRandom random_;
  std::unique_ptr<platform::HttpClient> http_ = platform::NewCurlHttpClient();
  std::unique_ptr<DataPlane> plane_;
  std::unique_ptr<rpc::Router> router_;
  std::unique_ptr<platform::HttpServer> server_;
  std::unique_ptr<rpc::HttpChannel> channel_;
  uint64_t next_sequence_ = 1;
};

}  // namespace expanse::data_plane
