// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "control_plane/compute_state.h"
#include "control_plane/plane_fixture.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;
using testing::Contains;
using testing::HasSubstr;

class Registration : public PlaneFixture {
 protected:
  /// A compute with a credential and a first heartbeat.
  v1::ExchangeInstallTokenResponse Enrolled(const std::string& identity,
                                            const std::string& bearer = "") {
    const auto registered = RegisterCompute(bearer.empty() ? owner_ : bearer);
    EXPECT_TRUE(registered.ok()) << registered.error().message();
    auto exchanged = Exchange(registered->install_token(), identity);
    EXPECT_TRUE(exchanged.ok()) << exchanged.error().message();
    EXPECT_TRUE(Heartbeat(exchanged->compute_id()).ok());
    return *exchanged;
  }
  void Deprovision(const std::string& compute_id) {
    v1::DeprovisionRequest request;
    request.set_compute_id(compute_id);
    const auto done = Plane().Deprovision(PlaneBearer(), request);
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  Result<v1::RegisterComputeResponse> Again(const std::string& bearer,
                                            const std::string& compute_id) {
    v1::RegisterComputeRequest request;
    request.set_compute_id(compute_id);
    return Computes().RegisterCompute(bearer, request);
  }
};

TEST_F(Registration, NamesAComputeAfterItsTypeAndTimeAndGivesAToken) {
  const auto registered = RegisterCompute(owner_);
  ASSERT_TRUE(registered.ok()) << registered.error().message();
  EXPECT_EQ(registered->compute().name(), "slurm-20261130-005320");
  EXPECT_EQ(registered->compute().state(), v1::COMPUTE_STATE_PENDING);
  EXPECT_FALSE(registered->compute().has_last_heartbeat_ms());
  EXPECT_FALSE(registered->compute().has_nodes());
  EXPECT_EQ(registered->expires_at_ms(), ToUnixMillis(clock_.Now()) + 3'600'000);
  EXPECT_EQ(registered->install_token().rfind("exp_install_", 0), 0U);
  EXPECT_EQ(registered->endpoints().control_plane_url(), "http://c");
  EXPECT_EQ(RegisterCompute(owner_, "  hpc one ")->compute().name(), "hpc one");
}

TEST_F(Registration, RefusesWhatCannotBeStored) {
  v1::RegisterComputeRequest request;
  EXPECT_EQ(CodeOf(Computes().RegisterCompute(owner_, request)), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(RegisterCompute(owner_, "a\nb")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(RegisterCompute(owner_,
                                   "a\xC2\x9B"
                                   "2J")),
            Code::kInvalidArgument)
      << "C1";
  EXPECT_EQ(CodeOf(RegisterCompute(owner_, std::string("a\0b", 3))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(RegisterCompute(owner_, std::string(201, 'a'))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(RegisterCompute(owner_, "   ")), Code::kInvalidArgument);
  request.set_type(v1::COMPUTE_TYPE_SLURM);
  request.set_team_id("no-such-team");
  EXPECT_EQ(CodeOf(Computes().RegisterCompute(owner_, request)), Code::kInvalidArgument);
  request.set_type(static_cast<v1::ComputeType>(99));
  EXPECT_EQ(CodeOf(Computes().RegisterCompute(owner_, request)), Code::kInvalidArgument);
}

TEST_F(Registration, TokenBecomesACredentialThatVerifies) {
  const auto registered = RegisterCompute(owner_, "hpc");
  const auto exchanged = Exchange(registered->install_token());
  ASSERT_TRUE(exchanged.ok()) << exchanged.error().message();
  EXPECT_EQ(exchanged->compute_id(), registered->compute().compute_id());
  EXPECT_EQ(exchanged->organisation_id(), first_.org.str());
  EXPECT_EQ(exchanged->organisation(), "Example Labs");
  EXPECT_EQ(exchanged->compute_name(), "hpc");
  const auto verdict = Verify(exchanged->credential());
  ASSERT_TRUE(verdict.ok()) << verdict.error().message();
  EXPECT_EQ(verdict->compute_id(), exchanged->compute_id());
  EXPECT_EQ(verdict->type(), v1::COMPUTE_TYPE_SLURM);
  EXPECT_EQ(verdict->valid_for_seconds(), 7 * 86'400);
}

TEST_F(Registration, TokenMayBeRetriedUntilTheFirstHeartbeatAndIsDeadThen) {
  const auto registered = RegisterCompute(owner_);
  const auto first = Exchange(registered->install_token());
  const auto second = Exchange(registered->install_token());
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ(first->compute_id(), second->compute_id());
  const auto old = Verify(first->credential());
  EXPECT_EQ(CodeOf(old), Code::kPermissionDenied) << "replaced";
  EXPECT_THAT(MessageOf(old), HasSubstr("revoked or replaced at"));
  EXPECT_TRUE(Verify(second->credential()).ok());
  ASSERT_TRUE(Heartbeat(second->compute_id()).ok());
  const auto replayed = Exchange(registered->install_token());
  EXPECT_EQ(CodeOf(replayed), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(replayed), HasSubstr("sent its first heartbeat"));
  EXPECT_TRUE(Verify(second->credential()).ok()) << "the replay changed nothing";
}

TEST_F(Registration, TokenExpiresAfterAnHourEvenWhenItWasExchanged) {
  const auto unused = RegisterCompute(owner_);
  const auto used = RegisterCompute(owner_);
  clock_.Advance(Millis(3'599'999));
  ASSERT_TRUE(Exchange(used->install_token()).ok());
  clock_.Advance(Millis(1));
  for (const auto& token : {unused->install_token(), used->install_token()}) {
    const auto expired = Exchange(token);
    EXPECT_EQ(CodeOf(expired), Code::kFailedPrecondition);
    EXPECT_THAT(MessageOf(expired), HasSubstr("expired at"));
  }
}

TEST_F(Registration, UnknownAndMalformedTokensAreNotFound) {
  for (const std::string& token :
       {std::string(), std::string("exp_install_"), "exp_install_" + std::string(43, 'A'),
        first_.api_key.Reveal(), std::string(1 << 20, 'x'), std::string("exp_install_\0", 13)}) {
    const auto exchanged = Exchange(token);
    EXPECT_EQ(CodeOf(exchanged), Code::kNotFound);
    EXPECT_THAT(MessageOf(exchanged), HasSubstr("install token"));
  }
  EXPECT_EQ(CodeOf(Verify("")), Code::kNotFound);
  EXPECT_EQ(CodeOf(Verify("exp_compute_" + std::string(43, 'A'))), Code::kNotFound);
}

TEST_F(Registration, PlaneOfAnotherOrganisationIsRefusedByName) {
  const auto other = plane_->bootstrap().Create({"Other", "eve@other.org", "", UserId()});
  ASSERT_TRUE(other.ok());
  const std::string foreign = other->plane_credential.Reveal();
  const auto registered = RegisterCompute(owner_);
  const auto exchanged = Exchange(registered->install_token(), "hpc", foreign);
  EXPECT_EQ(CodeOf(exchanged), Code::kPermissionDenied);
  EXPECT_THAT(MessageOf(exchanged), HasSubstr("another organisation"));
  const auto own = Exchange(registered->install_token());
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(CodeOf(Verify(own->credential(), foreign)), Code::kPermissionDenied);
  v1::RecordHeartbeatRequest heartbeat;
  heartbeat.set_compute_id(own->compute_id());
  EXPECT_EQ(CodeOf(Plane().RecordHeartbeat(foreign, heartbeat)), Code::kNotFound);
  v1::DeprovisionRequest deprovision;
  deprovision.set_compute_id(own->compute_id());
  EXPECT_EQ(CodeOf(Plane().Deprovision(foreign, deprovision)), Code::kNotFound);
  EXPECT_TRUE(Verify(own->credential()).ok());
  v1::GetComputeRequest get;
  get.set_compute_id(own->compute_id());
  EXPECT_EQ(CodeOf(Computes().GetCompute(Session(other->api_key), get)), Code::kNotFound);
  EXPECT_EQ(Computes().ListComputes(Session(other->api_key), {})->computes_size(), 0);
}

TEST_F(Registration, StateFollowsHeartbeatsAndTheClock) {
  const auto id = Enrolled("hpc").compute_id();
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE);
  clock_.Advance(Millis(119'999));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE);
  clock_.Advance(Millis(1));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_DEGRADED);
  EXPECT_EQ(Heartbeat(id)->state(), v1::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE);
  clock_.Advance(Millis(1'799'999));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_DEGRADED);
  clock_.Advance(Millis(1));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_OFFLINE);
  ASSERT_TRUE(Heartbeat(id).ok());
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE);
  clock_.JumpWall(Millis(-3'600'000));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE) << "a clock set back";
}

TEST(ComputeState, DegradesAfterThreeMissedIntervalsWhenTheseAreLonger) {
  HeartbeatPolicy policy;
  policy.interval = Millis(60'000);
  const ComputeLife life{std::nullopt, 0, std::nullopt};
  EXPECT_EQ(StateOf(life, policy, FromUnixMillis(179'999)), v1::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(StateOf(life, policy, FromUnixMillis(180'000)), v1::COMPUTE_STATE_DEGRADED);
  EXPECT_EQ(StateOf({}, policy, FromUnixMillis(0)), v1::COMPUTE_STATE_PENDING);
  EXPECT_EQ(StateOf({0, 0, 0}, policy, FromUnixMillis(0)), v1::COMPUTE_STATE_REVOKED);
}

TEST_F(Registration, HeartbeatTellsVersionAndSizeOfTheCompute) {
  const auto id = Enrolled("hpc").compute_id();
  v1::GetComputeRequest get;
  get.set_compute_id(id);
  auto compute = Computes().GetCompute(owner_, get)->compute();
  EXPECT_EQ(compute.daemon_version(), "0.1.0");
  EXPECT_EQ(compute.nodes(), 2);
  EXPECT_TRUE(compute.has_gpus()) << "a counted zero";
  EXPECT_EQ(compute.scheduler_identity(), "hpc");
  v1::RecordHeartbeatRequest bare;
  bare.set_compute_id(id);
  ASSERT_TRUE(Plane().RecordHeartbeat(PlaneBearer(), bare).ok());
  EXPECT_EQ(Computes().GetCompute(owner_, get)->compute().nodes(), 2) << "unknown keeps the known";
  bare.set_nodes(-1);
  EXPECT_EQ(CodeOf(Plane().RecordHeartbeat(PlaneBearer(), bare)), Code::kInvalidArgument);
  bare.set_compute_id("");
  bare.clear_nodes();
  EXPECT_EQ(CodeOf(Plane().RecordHeartbeat(PlaneBearer(), bare)), Code::kNotFound);
}

TEST_F(Registration, HeartbeatsBroughtLateCountAsOfTheirOwnTime) {
  const auto id = Enrolled("hpc").compute_id();
  const int64_t start_ms = ToUnixMillis(clock_.Now());
  clock_.Advance(Millis(7'200'000));
  v1::RecordHeartbeatRequest late;
  late.set_compute_id(id);
  late.set_at_ms(start_ms + 600'000);
  EXPECT_EQ(Plane().RecordHeartbeat(PlaneBearer(), late)->state(), v1::COMPUTE_STATE_OFFLINE);
  late.set_at_ms(ToUnixMillis(clock_.Now()) - 300'000);
  EXPECT_EQ(Plane().RecordHeartbeat(PlaneBearer(), late)->state(), v1::COMPUTE_STATE_DEGRADED);
  late.set_at_ms(start_ms + 600'000);
  EXPECT_EQ(Plane().RecordHeartbeat(PlaneBearer(), late)->state(), v1::COMPUTE_STATE_DEGRADED)
      << "an older one takes nothing back";
  late.set_at_ms(ToUnixMillis(clock_.Now()) + 3'600'000);
  EXPECT_EQ(Plane().RecordHeartbeat(PlaneBearer(), late)->state(), v1::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_ACTIVE);
  clock_.Advance(Millis(120'000));
  EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_DEGRADED) << "a time in the future is not believed";
  late.set_at_ms(-1);
  EXPECT_EQ(CodeOf(Plane().RecordHeartbeat(PlaneBearer(), late)), Code::kInvalidArgument);
}

TEST_F(Registration, HeartbeatFromBeforeTheCredentialDoesNotUseTheTokenUp) {
  const auto enrolled = Enrolled("hpc");
  const int64_t before_ms = ToUnixMillis(clock_.Now());
  clock_.Advance(Millis(300'000));
  const auto again = Again(owner_, enrolled.compute_id());
  ASSERT_TRUE(Exchange(again->install_token()).ok());
  v1::RecordHeartbeatRequest late;
  late.set_compute_id(enrolled.compute_id());
  late.set_at_ms(before_ms + 100'000);
  ASSERT_TRUE(Plane().RecordHeartbeat(PlaneBearer(), late).ok());
  EXPECT_TRUE(Exchange(again->install_token()).ok());
}

TEST_F(Registration, RevokedComputeIsRefusedAndKeepsItsRow) {
  const auto enrolled = Enrolled("hpc");
  v1::RevokeComputeRequest revoke;
  revoke.set_compute_id(enrolled.compute_id());
  ASSERT_TRUE(Computes().RevokeCompute(owner_, revoke).ok());
  ASSERT_TRUE(Computes().RevokeCompute(owner_, revoke).ok()) << "again is no error";
  EXPECT_EQ(CodeOf(Verify(enrolled.credential())), Code::kPermissionDenied);
  EXPECT_EQ(Heartbeat(enrolled.compute_id())->state(), v1::COMPUTE_STATE_REVOKED);
  EXPECT_EQ(StateNow(enrolled.compute_id()), v1::COMPUTE_STATE_REVOKED);
}

TEST_F(Registration, RevokingAPendingComputeKillsItsToken) {
  const auto registered = RegisterCompute(owner_);
  v1::RevokeComputeRequest revoke;
  revoke.set_compute_id(registered->compute().compute_id());
  ASSERT_TRUE(Computes().RevokeCompute(owner_, revoke).ok());
  const auto exchanged = Exchange(registered->install_token());
  EXPECT_EQ(CodeOf(exchanged), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(exchanged), HasSubstr("was revoked"));
}

TEST_F(Registration, AgainByIdKeepsTheComputeAndReplacesTheCredential) {
  const auto enrolled = Enrolled("hpc");
  const auto again = Again(owner_, enrolled.compute_id());
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->compute().compute_id(), enrolled.compute_id());
  EXPECT_EQ(again->compute().state(), v1::COMPUTE_STATE_ACTIVE) << "the old daemon still runs";
  EXPECT_TRUE(Verify(enrolled.credential()).ok()) << "until the new token is exchanged";
  ASSERT_TRUE(Heartbeat(enrolled.compute_id()).ok());
  const auto exchanged = Exchange(again->install_token());
  ASSERT_TRUE(exchanged.ok()) << "the old daemon's heartbeat does not use the new token up: "
                              << exchanged.error().message();
  EXPECT_EQ(CodeOf(Verify(enrolled.credential())), Code::kPermissionDenied);
  EXPECT_TRUE(Verify(exchanged->credential()).ok());
}

TEST_F(Registration, AgainMakesEarlierTokensDead) {
  const auto registered = RegisterCompute(owner_);
  ASSERT_TRUE(Again(owner_, registered->compute().compute_id()).ok());
  EXPECT_THAT(MessageOf(Exchange(registered->install_token())), HasSubstr("newer token"));
}

TEST_F(Registration, AgainForAnotherSchedulerIsRefused) {
  const auto enrolled = Enrolled("hpc");
  const auto again = Again(owner_, enrolled.compute_id());
  const auto exchanged = Exchange(again->install_token(), "another");
  EXPECT_EQ(CodeOf(exchanged), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(exchanged), HasSubstr("register this one as a new compute"));
  EXPECT_TRUE(Verify(enrolled.credential()).ok());
}

TEST_F(Registration, AfterUninstallTheSameSchedulerContinuesItsHistory) {
  const auto enrolled = Enrolled("hpc");
  Deprovision(enrolled.compute_id());
  Deprovision(enrolled.compute_id());
  EXPECT_EQ(CodeOf(Verify(enrolled.credential())), Code::kPermissionDenied);
  const auto registered = RegisterCompute(owner_, "other name");
  const auto exchanged = Exchange(registered->install_token(), "hpc");
  ASSERT_TRUE(exchanged.ok()) << exchanged.error().message();
  EXPECT_EQ(exchanged->compute_id(), enrolled.compute_id());
  EXPECT_EQ(StateNow(enrolled.compute_id()), v1::COMPUTE_STATE_PENDING);
  const auto retried = Exchange(registered->install_token(), "hpc");
  ASSERT_TRUE(retried.ok()) << retried.error().message();
  EXPECT_EQ(retried->compute_id(), enrolled.compute_id());
  ASSERT_TRUE(Heartbeat(enrolled.compute_id()).ok());
  EXPECT_EQ(StateNow(enrolled.compute_id()), v1::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(Computes().ListComputes(owner_, {})->computes_size(), 1)
      << "the registration without history went";
  EXPECT_EQ(CodeOf(Exchange(registered->install_token(), "hpc")), Code::kFailedPrecondition);
}

TEST_F(Registration, ALivingClusterOfTheSameNameIsNotCutOff) {
  const auto first = Enrolled("cluster");
  const auto second = Enrolled("cluster");
  EXPECT_NE(first.compute_id(), second.compute_id());
  EXPECT_TRUE(Verify(first.credential()).ok());
  EXPECT_TRUE(Verify(second.credential()).ok());
}

TEST_F(Registration, AnotherMembersComputeIsNotTakenOver) {
  const std::string ada = MemberSession("a@example.org");
  const std::string bob = MemberSession("b@example.org");
  const auto enrolled = Enrolled("hpc", ada);
  clock_.Advance(Millis(300'000));
  EXPECT_EQ(CodeOf(Again(bob, enrolled.compute_id())), Code::kPermissionDenied);
  EXPECT_NE(Enrolled("hpc", bob).compute_id(), enrolled.compute_id());
  EXPECT_TRUE(Verify(enrolled.credential()).ok());
  EXPECT_TRUE(Again(ada, enrolled.compute_id()).ok());
  EXPECT_TRUE(Again(owner_, enrolled.compute_id()).ok());
}

TEST_F(Registration, TwoRacingExchangesLeaveOneLivingCredential) {
  for (int round = 0; round < 10; ++round) {
    const auto registered = RegisterCompute(owner_);
    std::vector<std::string> credentials(4);
    std::vector<std::thread> threads;
    for (auto& credential : credentials)
      threads.emplace_back([&, this] {
        const auto exchanged = Exchange(registered->install_token(), "race");
        ASSERT_TRUE(exchanged.ok()) << exchanged.error().message();
        credential = exchanged->credential();
      });
    for (auto& t : threads) t.join();
    int living = 0;
    for (const auto& credential : credentials) living += Verify(credential).ok() ? 1 : 0;
    EXPECT_EQ(living, 1);
    EXPECT_EQ(StateNow(registered->compute().compute_id()), v1::COMPUTE_STATE_PENDING);
  }
}

TEST_F(Registration, EveryStepIsInTheAuditLogWithoutSecrets) {
  const auto enrolled = Enrolled("hpc");
  Deprovision(enrolled.compute_id());
  const auto actions = AuditActions();
  for (const char* action : {"organisation.created", "api_key.created", "plane_credential.created",
                             "session.minted", "compute.registered", "install_token.exchanged",
                             "compute.activated", "compute.deprovisioned"})
    EXPECT_THAT(actions, Contains(action));
  EXPECT_EQ(std::count(actions.begin(), actions.end(), "compute.activated"), 1);
  const auto events = Org().ListAuditEvents(owner_, {});
  for (const auto& event : events->events()) {
    EXPECT_EQ(event.DebugString().find("exp_"), std::string::npos) << event.DebugString();
    EXPECT_FALSE(event.actor().empty());
    EXPECT_FALSE(event.subject().empty());
  }
}

}  // namespace
}  // namespace expanse::control_plane
