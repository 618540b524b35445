// SPDX-License-Identifier: Apache-2.0
// A control plane behind a real HTTP server on a free port, with a real SQLite file and a clock
// that moves when told. For the tests of this folder.
#pragma once

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control_plane/control_plane.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "platform/random/random.h"
#include "rpc/channel.h"
#include "rpc/router.h"

namespace expanse::control_plane {

class PlaneFixture : public testing::Test {
 protected:
  void SetUp() override {
    Start();
    auto made = plane_->bootstrap().Create({"Example Labs", "Ada@Example.org", "Ada", UserId()});
    ASSERT_TRUE(made.ok()) << made.error().message();
    first_ = std::move(made).value();
    owner_ = Session(first_.api_key);
  }

  void Start() {
    Options options;
    options.data_dir = dir_.path() + "/control";
    options.endpoints = {"http://c", "http://d", "http://i", "http://w"};
    auto plane = ControlPlane::Open(options, clock_, random_);
    ASSERT_TRUE(plane.ok()) << plane.error().message();
    plane_ = std::move(plane).value();
    router_ = std::make_unique<rpc::Router>(plane_->authenticator());
    plane_->Register(*router_);
    auto server = platform::HttpServer::Start(
        {}, [this](const platform::HttpRequest& request) { return router_->Handle(request); });
    ASSERT_TRUE(server.ok()) << server.error().message();
    server_ = std::move(server).value();
    channel_ = std::make_unique<rpc::HttpChannel>(*http_, server_->url());
  }

  void Restart() {
    channel_.reset();
    server_.reset();
    router_.reset();
    plane_.reset();
    Start();
  }

  Result<control::v1::MintSessionResponse> Mint(const Secret& key, const std::string& org = "") {
    control::v1::MintSessionRequest request;
    request.set_api_key(key.Reveal());
    request.set_organisation_id(org);
    return Auth().MintSession("", request);
  }
  std::string Session(const Secret& key) {
    auto minted = Mint(key);
    EXPECT_TRUE(minted.ok()) << minted.error().message();
    return minted.ok() ? minted->access_token() : "";
  }

  control::v1::AuthServiceClient Auth() { return control::v1::AuthServiceClient(*channel_); }
  control::v1::OrganisationServiceClient Org() {
    return control::v1::OrganisationServiceClient(*channel_);
  }
  control::v1::ComputeServiceClient Computes() {
    return control::v1::ComputeServiceClient(*channel_);
  }
  control::v1::PlaneServiceClient Plane() { return control::v1::PlaneServiceClient(*channel_); }
  std::string PlaneBearer() const { return first_.plane_credential.Reveal(); }

  /// A member with its own session; makes the team "everyone" on first use.
  std::string MemberSession(const std::string& email, const std::string& role = "Member") {
    if (team_.empty()) {
      control::v1::CreateTeamRequest team;
      team.set_name("everyone");
      team_ = Org().CreateTeam(owner_, team).value().team().team_id();
    }
    control::v1::CreateUserRequest user;
    user.set_email(email);
    user.set_role(role);
    user.add_team_ids(team_);
    auto created = Org().CreateUser(owner_, user);
    EXPECT_TRUE(created.ok()) << created.error().message();
    control::v1::CreateApiKeyRequest key;
    key.set_user_id(created->user().user_id());
    auto secret = Org().CreateApiKey(owner_, key);
    EXPECT_TRUE(secret.ok()) << secret.error().message();
    return Session(Secret(secret->secret()));
  }

  Result<control::v1::RegisterComputeResponse> RegisterCompute(const std::string& bearer,
                                                               const std::string& name = "") {
    control::v1::RegisterComputeRequest request;
    request.set_type(control::v1::COMPUTE_TYPE_SLURM);
    request.set_name(name);
    return Computes().RegisterCompute(bearer, request);
  }
  Result<control::v1::ExchangeInstallTokenResponse> Exchange(const std::string& token,
                                                             const std::string& identity = "hpc",
                                                             const std::string& bearer = "") {
    control::v1::ExchangeInstallTokenRequest request;
    request.set_install_token(token);
    request.set_scheduler_identity(identity);
    return Plane().ExchangeInstallToken(bearer.empty() ? PlaneBearer() : bearer, request);
  }
  Result<control::v1::VerifyComputeCredentialResponse> Verify(const std::string& credential,
                                                              const std::string& bearer = "") {
    control::v1::VerifyComputeCredentialRequest request;
    request.set_credential(credential);
    return Plane().VerifyComputeCredential(bearer.empty() ? PlaneBearer() : bearer, request);
  }
  Result<control::v1::RecordHeartbeatResponse> Heartbeat(const std::string& compute_id) {
    control::v1::RecordHeartbeatRequest request;
    request.set_compute_id(compute_id);
    request.set_at_ms(ToUnixMillis(clock_.Now()));
    request.set_daemon_version("0.1.0");
    request.set_nodes(2);
    request.set_gpus(0);
    return Plane().RecordHeartbeat(PlaneBearer(), request);
  }
  control::v1::ComputeState StateNow(const std::string& compute_id) {
    control::v1::GetComputeRequest request;
    request.set_compute_id(compute_id);
    owner_ = Session(first_.api_key);
    auto got = Computes().GetCompute(owner_, request);
    EXPECT_TRUE(got.ok()) << got.error().message();
    return got.ok() ? got->compute().state() : control::v1::COMPUTE_STATE_UNSPECIFIED;
  }
  std::vector<std::string> AuditActions() {
    owner_ = Session(first_.api_key);
    auto events = Org().ListAuditEvents(owner_, {});
    EXPECT_TRUE(events.ok()) << events.error().message();
    std::vector<std::string> out;
    for (const auto& event : events->events()) out.push_back(event.action());
    return out;
  }

  platform::TempDir dir_;
  platform::FakeClock clock_{FromUnixMillis(1'796'000'000'000)};
  platform::SystemRandom random_;
  std::unique_ptr<platform::HttpClient> http_ = platform::NewCurlHttpClient();
  std::unique_ptr<ControlPlane> plane_;
  std::unique_ptr<rpc::Router> router_;
  std::unique_ptr<platform::HttpServer> server_;
  std::unique_ptr<rpc::HttpChannel> channel_;
  BootstrapResult first_;
  std::string owner_;
  std::string team_;
};

/// kInternal, which nothing here answers on purpose, when the call went well.
template <typename T>
Code CodeOf(const Result<T>& result) {
  return result.ok() ? Code::kInternal : result.error().code();
}
template <typename T>
std::string MessageOf(const Result<T>& result) {
  return result.ok() ? "" : result.error().message();
}

}  // namespace expanse::control_plane
