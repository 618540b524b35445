// SPDX-License-Identifier: Apache-2.0
#include "auth/sessions/session_verifier.h"
#include "control_plane/plane_fixture.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class ControlSession : public PlaneFixture {};

TEST_F(ControlSession, SaysWhoTheOwnerIsAndWhereThePlanesAre) {
  const auto minted = Mint(first_.api_key);
  ASSERT_TRUE(minted.ok()) << minted.error().message();
  EXPECT_EQ(minted->expires_at_ms(), ToUnixMillis(clock_.Now()) + 900'000);
  EXPECT_EQ(minted->endpoints().data_plane_url(), "http://d");
  const auto who = Auth().WhoAmI(minted->access_token(), {});
  ASSERT_TRUE(who.ok()) << who.error().message();
  EXPECT_EQ(who->identity().email(), "ada@example.org");
  EXPECT_EQ(who->identity().organisation(), "Example Labs");
  EXPECT_EQ(who->identity().organisation_id(), first_.org.str());
  EXPECT_EQ(who->identity().role(), "Owner");
  EXPECT_EQ(who->identity().permissions_size(), 8);
  EXPECT_EQ(who->expires_at_ms(), minted->expires_at_ms());
}

TEST_F(ControlSession, IsVerifiedByAnotherPlaneWithTheKeySetOverHttp) {
  auth::SessionVerifierOptions options;
  options.cache_file = dir_.path() + "/jwks.json";
  options.refresh_period = Millis(0);
  auth::SessionVerifier verifier(options, auth::KeySetFromControlPlane(*channel_), clock_);
  const auto caller = verifier.Authenticate(owner_, "executions.read");
  ASSERT_TRUE(caller.ok()) << caller.error().message();
  EXPECT_EQ(caller->org, first_.org);
}

TEST_F(ControlSession, OutlivesARestartOfTheControlPlane) {
  Restart();
  const auto who = Auth().WhoAmI(owner_, {});
  EXPECT_TRUE(who.ok()) << who.error().message();
}

TEST_F(ControlSession, ExpiredIsRefusedWithTheTime) {
  clock_.Advance(Millis(900'000 + 60'000));
  const auto who = Auth().WhoAmI(owner_, {});
  EXPECT_EQ(CodeOf(who), Code::kUnauthenticated);
  EXPECT_THAT(MessageOf(who), HasSubstr("expired at 2026-"));
}

TEST_F(ControlSession, OfAnotherDeploymentIsRefused) {
  Options options;
  options.data_dir = dir_.path() + "/other";
  auto other = ControlPlane::Open(options, clock_, random_);
  ASSERT_TRUE(other.ok()) << other.error().message();
  auto made = (*other)->bootstrap().Create({"Example Labs", "ada@example.org", "", UserId()});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(CodeOf(Mint(made->api_key)), Code::kUnauthenticated) << "its keys are not known here";
  rpc::Router router((*other)->authenticator());
  (*other)->Register(router);
  platform::HttpRequest request;
  request.method = "POST";
  request.target = "/expanse.control.v1.AuthService/WhoAmI";
  request.headers = {{"content-type", "application/json"}, {"authorization", "Bearer " + owner_}};
  const auto response = router.Handle(request);
  EXPECT_EQ(response.status, 401);
  EXPECT_THAT(response.body, HasSubstr("does not have"));
}

TEST_F(ControlSession, StaysValidWhenTheSigningKeyIsReplaced) {
  clock_.Advance(Millis(86'400'000LL * 90 - 1000));
  const std::string before = Session(first_.api_key);
  clock_.Advance(Millis(2000));
  const std::string after = Session(first_.api_key);
  EXPECT_NE(before.substr(0, before.find('.')), after.substr(0, after.find('.'))) << "key ids";
  EXPECT_TRUE(Auth().WhoAmI(before, {}).ok());
  EXPECT_TRUE(Auth().WhoAmI(after, {}).ok());
  Restart();
  EXPECT_TRUE(Auth().WhoAmI(before, {}).ok());
  EXPECT_TRUE(Auth().WhoAmI(after, {}).ok());
}

TEST_F(ControlSession, NeedsAKnownLivingKey) {
  for (const std::string& bad :
       {std::string(), std::string("exp_user_"), std::string("hello"),
        "exp_user_" + std::string(43, 'A'), PlaneBearer(), std::string(1 << 20, 'x')}) {
    const auto minted = Mint(Secret(bad));
    EXPECT_EQ(CodeOf(minted), Code::kUnauthenticated);
    if (bad.size() > 9) {
      EXPECT_THAT(MessageOf(minted), testing::Not(HasSubstr(bad)));
    }
  }
  const auto created = Org().CreateApiKey(owner_, {});
  ASSERT_TRUE(created.ok()) << created.error().message();
  EXPECT_TRUE(Mint(Secret(created->secret())).ok());
  v1::RevokeApiKeyRequest revoke;
  revoke.set_key_id(created->key().key_id());
  ASSERT_TRUE(Org().RevokeApiKey(owner_, revoke).ok());
  ASSERT_TRUE(Org().RevokeApiKey(owner_, revoke).ok()) << "again is no error";
  const auto minted = Mint(Secret(created->secret()));
  EXPECT_EQ(CodeOf(minted), Code::kUnauthenticated);
  EXPECT_THAT(MessageOf(minted), HasSubstr("was revoked at"));
}

TEST_F(ControlSession, ApiKeyIsNoSessionAndASessionIsNoPlane) {
  EXPECT_EQ(CodeOf(Auth().WhoAmI(first_.api_key.Reveal(), {})), Code::kUnauthenticated);
  EXPECT_EQ(CodeOf(Auth().WhoAmI("", {})), Code::kUnauthenticated);
  EXPECT_EQ(CodeOf(Exchange("exp_install_x", "", owner_)), Code::kUnauthenticated);
  EXPECT_EQ(CodeOf(Org().ListTeams(PlaneBearer(), {})), Code::kUnauthenticated);
}

TEST_F(ControlSession, SwitchesOrganisationOnlyWithAKeyOfTheOperator) {
  const auto second =
      plane_->bootstrap().Create({"Second Labs", "ada@second.org", "Ada", first_.owner});
  ASSERT_TRUE(second.ok()) << second.error().message();
  const auto switched = Mint(first_.api_key, second->org.str());
  ASSERT_TRUE(switched.ok()) << switched.error().message();
  EXPECT_EQ(switched->identity().organisation(), "Second Labs");
  EXPECT_EQ(switched->identity().user_id(), first_.owner.str());

  const auto own = Org().CreateApiKey(owner_, {});
  const auto refused = Mint(Secret(own->secret()), second->org.str());
  EXPECT_EQ(CodeOf(refused), Code::kPermissionDenied);
  EXPECT_THAT(MessageOf(refused), HasSubstr("acts in organisation"));
  const auto third = plane_->bootstrap().Create({"Third", "eve@third.org", "", UserId()});
  EXPECT_EQ(CodeOf(Mint(first_.api_key, third->org.str())), Code::kPermissionDenied);
  EXPECT_EQ(CodeOf(Mint(first_.api_key, "no-such")), Code::kPermissionDenied);
}

TEST_F(ControlSession, KeysAreStoredAsHashesOnly) {
  const auto created = Org().CreateApiKey(owner_, {});
  ASSERT_TRUE(created.ok());
  const auto registered = RegisterCompute(owner_);
  const auto exchanged = Exchange(registered->install_token());
  ASSERT_TRUE(exchanged.ok());
  const std::string copy = dir_.path() + "/copy.db";
  ASSERT_TRUE(plane_->database().BackupTo(copy).ok());
  const std::string bytes = platform::Fs().Read(copy).value();
  for (const std::string& secret : {created->secret(), first_.api_key.Reveal(), PlaneBearer(),
                                    registered->install_token(), exchanged->credential()})
    EXPECT_EQ(bytes.find(secret), std::string::npos);
  EXPECT_EQ(bytes.find("\"d\":"), std::string::npos) << "private signing key";
}

TEST_F(ControlSession, KeysFileIsPrivateAndItsLossIsNoticed) {
  const std::string path = dir_.path() + "/control/control-keys.json";
  const platform::Fs fs;
  EXPECT_EQ(fs.Stat(path)->mode & 0777, 0600U);
  EXPECT_EQ(fs.Stat(dir_.path() + "/control/control.db")->mode & 0777, 0600U);
  const std::string text = fs.Read(path).value();
  channel_.reset();
  server_.reset();
  router_.reset();
  plane_.reset();
  Options options;
  options.data_dir = dir_.path() + "/control";

  ASSERT_TRUE(fs.Remove(path).ok());
  auto lost = ControlPlane::Open(options, clock_, random_);
  EXPECT_EQ(CodeOf(lost), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(lost), HasSubstr("restore it from backup"));

  ASSERT_TRUE(fs.WriteAtomic(path, text, 0644).ok());
  EXPECT_EQ(CodeOf(ControlPlane::Open(options, clock_, random_)), Code::kFailedPrecondition);

  for (const std::string& damaged : {std::string("{}"), std::string(), text.substr(0, 60)}) {
    ASSERT_TRUE(fs.WriteAtomic(path, damaged, 0600).ok());
    EXPECT_EQ(CodeOf(ControlPlane::Open(options, clock_, random_)), Code::kDataLoss);
  }
}

}  // namespace
}  // namespace expanse::control_plane
