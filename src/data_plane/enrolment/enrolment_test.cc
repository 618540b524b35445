// SPDX-License-Identifier: Apache-2.0
#include "data_plane/fact_builder.h"
#include "data_plane/plane_fixture.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {
namespace {

class EnrolmentTest : public PlaneFixture {
 protected:
  Result<data::v1::HeartbeatResponse> Beat(char compute = 'a') {
    data::v1::HeartbeatRequest request;
    request.set_daemon_version("0.1.0");
    request.set_nodes(2);
    request.set_sender_clock_ms(kNow);
    auto* health = request.add_health();
    health->set_node("n1");
    health->set_part("hooks");
    health->set_status("ok");
    return Enrolment().Heartbeat(Credential("exp_compute_", compute), request);
  }
};

TEST_F(EnrolmentTest, AnInstallTokenIsExchangedAtTheControlPlane) {
  data::v1::ExchangeInstallTokenRequest request;
  request.set_install_token("good");
  const auto good = Enrolment().ExchangeInstallToken("", request);
  ASSERT_TRUE(good.ok()) << good.error().message();
  EXPECT_EQ(good->credential(), Credential("exp_compute_", 'a'));
  EXPECT_EQ(good->endpoints().data_plane_url(), "http://data");
  request.set_install_token("bad");
  EXPECT_EQ(Enrolment().ExchangeInstallToken("", request).error().code(), Code::kNotFound);
  control_.is_away = true;
  request.set_install_token("good");
  EXPECT_EQ(Enrolment().ExchangeInstallToken("", request).error().code(), Code::kUnavailable);
}

TEST_F(EnrolmentTest, HeartbeatsReachTheControlPlaneAlsoWhenItWasAway) {
  auto beat = Beat();
  ASSERT_TRUE(beat.ok()) << beat.error().message();
  EXPECT_TRUE(beat->recorded_by_control_plane());
  EXPECT_EQ(beat->compute_id(), kCompute);
  EXPECT_EQ(control_.heartbeats.size(), 1u);
  control_.is_away = true;
  clock_.Advance(Millis(30'000));
  beat = Beat();
  ASSERT_TRUE(beat.ok());
  EXPECT_FALSE(beat->recorded_by_control_plane());
  Restart();
  control_.is_away = false;
  clock_.Advance(Millis(30'000));
  ASSERT_TRUE(plane_->Housekeep().ok());
  ASSERT_EQ(control_.heartbeats.size(), 2u);
  EXPECT_EQ(control_.heartbeats[1].at_ms(), kNow + 30'000);
  EXPECT_EQ(control_.heartbeats[1].nodes(), 2);
  ASSERT_TRUE(plane_->Housekeep().ok());
  EXPECT_EQ(control_.heartbeats.size(), 2u);
}

TEST_F(EnrolmentTest, IntakeGoesOnWhileTheControlPlaneIsAwayAlsoAfterARestart) {
  ASSERT_TRUE(Beat().ok());
  control_.is_away = true;
  Restart();
  clock_.Advance(Millis(86'400'000));
  const auto record = Facts(data::v1::FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended());
  EXPECT_TRUE(Send(Batch({record})).ok());
  // Not for ever: the control plane said for how long.
  clock_.Advance(Millis(7 * int64_t{86'400'000}));
  EXPECT_EQ(Send(Batch({record})).error().code(), Code::kUnavailable);
  // And not for a credential that nobody has vouched for.
  EXPECT_EQ(Beat('t').error().code(), Code::kUnavailable);
}

TEST_F(EnrolmentTest, ARevokedCredentialIsRefusedOnceTheControlPlaneSaysSo) {
  ASSERT_TRUE(Beat().ok());
  {
    const std::lock_guard lock(control_.mutex);
    control_.computes.clear();
  }
  EXPECT_TRUE(Beat().ok());  // the verdict is fresh
  clock_.Advance(Millis(61'000));
  EXPECT_EQ(Beat().error().code(), Code::kUnauthenticated);
  control_.is_away = true;
  Restart();
  clock_.Advance(Millis(61'000));
  EXPECT_EQ(Beat().error().code(), Code::kUnauthenticated);
}

TEST_F(EnrolmentTest, APageOfAProxyIsNoVerdictOnACredential) {
  ASSERT_TRUE(Beat().ok());
  control_.is_away = true;
  for (const int status : {400, 403, 404, 409, 451}) {
    control_.away_status = status;
    clock_.Advance(Millis(61'000));
    EXPECT_TRUE(Beat().ok()) << status;
    EXPECT_EQ(Beat('q').error().code(), Code::kUnavailable) << status;
  }
  Restart();
  EXPECT_TRUE(Beat().ok()) << "nothing of it was written down";
}

TEST_F(EnrolmentTest, ARefusalIsFreshForAMinuteEachTimeItIsHeard) {
  EXPECT_EQ(Beat('q').error().code(), Code::kUnauthenticated);
  clock_.Advance(Millis(61'000));
  EXPECT_EQ(Beat('q').error().code(), Code::kUnauthenticated);
  const int asked = control_.verifications;
  EXPECT_EQ(Beat('q').error().code(), Code::kUnauthenticated);
  EXPECT_EQ(control_.verifications, asked);
}

TEST_F(EnrolmentTest, IntakeDoesNotHangOnWritingAVerdictDown) {
  const auto database = storage::Database::Open("sqlite:" + dir_.path() + "/data/data.db").value();
  ASSERT_TRUE(database
                  ->Execute("CREATE TRIGGER full BEFORE INSERT ON compute_credentials BEGIN "
                            "SELECT RAISE(ABORT, 'disk full'); END",
                            {})
                  .ok());
  const auto record = Facts(data::v1::FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended());
  const auto sent = Send(Batch({record}));
  EXPECT_TRUE(sent.ok()) << sent.error().message();
  {
    const std::lock_guard lock(control_.mutex);
    control_.computes.clear();
  }
  clock_.Advance(Millis(61'000));
  EXPECT_EQ(Send(Batch({record})).error().code(), Code::kUnauthenticated)
      << "a refusal holds as well";
  // It is written as soon as it can be.
  ASSERT_TRUE(database->Execute("DROP TRIGGER full", {}).ok());
  clock_.Advance(Millis(61'000));
  EXPECT_EQ(Send(Batch({record})).error().code(), Code::kUnauthenticated);
  control_.is_away = true;
  Restart();
  EXPECT_EQ(Send(Batch({record})).error().code(), Code::kUnauthenticated);
}

TEST_F(EnrolmentTest, AStoreThatCannotBeReadIsNoVerdictOnACredential) {
  const auto database = storage::Database::Open("sqlite:" + dir_.path() + "/data/data.db").value();
  ASSERT_TRUE(database->Execute("ALTER TABLE compute_credentials RENAME TO gone", {}).ok());
  EXPECT_EQ(Beat().error().code(), Code::kUnavailable);
}

TEST_F(EnrolmentTest, VerdictsAreAskedForOnceAMinute) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Beat().ok());
  EXPECT_EQ(control_.verifications, 1);
  clock_.Advance(Millis(61'000));
  ASSERT_TRUE(Beat().ok());
  EXPECT_EQ(control_.verifications, 2);
}

TEST_F(EnrolmentTest, ADeprovisionedComputeIsDeadAndItsHistoryStays) {
  Push({Facts(data::v1::FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  ASSERT_TRUE(Enrolment().Deprovision(Credential("exp_compute_", 'a'), {}).ok());
  EXPECT_EQ(Beat().error().code(), Code::kUnauthenticated);
  EXPECT_EQ(List().size(), 1u);
}

TEST_F(EnrolmentTest, OnlyComputeCredentialsMayPush) {
  const auto batch =
      Batch({Facts(data::v1::FACT_ORIGIN_SACCT, Job("7", kSubmit, 0), kNow, Ended())});
  EXPECT_EQ(Ingest().Push("", batch).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Ingest().Push(Owner(), batch).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Send(batch, 'q').error().code(), Code::kUnauthenticated);
}

}  // namespace
}  // namespace expanse::data_plane
