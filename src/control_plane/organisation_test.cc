// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "control_plane/plane_fixture.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;
using testing::HasSubstr;

class OrganisationRpc : public PlaneFixture {
 protected:
  std::string Team(const std::string& name) {
    v1::CreateTeamRequest request;
    request.set_name(name);
    auto made = Org().CreateTeam(owner_, request);
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made->team().team_id();
  }
  Result<v1::CreateUserResponse> User(const std::string& bearer, const std::string& email,
                                      const std::string& role, const std::string& team = "") {
    v1::CreateUserRequest request;
    request.set_email(email);
    request.set_role(role);
    if (!team.empty()) request.add_team_ids(team);
    return Org().CreateUser(bearer, request);
  }
};

TEST_F(OrganisationRpc, MembersGetTheDefaultRoleAndTheirTeams) {
  const std::string team = Team("vision");
  const auto made = User(owner_, "Bob@Example.org", "", team);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->user().role(), "Member");
  EXPECT_EQ(made->user().email(), "bob@example.org");
  ASSERT_EQ(made->user().team_ids_size(), 1);
  EXPECT_EQ(CodeOf(User(owner_, "bob@EXAMPLE.org", "Admin")), Code::kAlreadyExists);
  const auto list = Org().ListUsers(owner_, {});
  ASSERT_EQ(list->users_size(), 2);
  EXPECT_EQ(list->users(0).email(), "ada@example.org");
  EXPECT_EQ(list->users(1).team_ids(0), team);
}

TEST_F(OrganisationRpc, RefusesUsersThatCannotBe) {
  for (const char* email : {"", "bob", "@x", "bob@", "a@b@c", "a b@c", "a@\nb"})
    EXPECT_EQ(CodeOf(User(owner_, email, "Admin")), Code::kInvalidArgument) << email;
  EXPECT_EQ(CodeOf(User(owner_, "c@d.org", "Root")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(User(owner_, "c@d.org", "Admin", "no-team")), Code::kInvalidArgument);
  const auto no_team = User(owner_, "c@d.org", "Member");
  EXPECT_EQ(CodeOf(no_team), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(no_team), HasSubstr("name at least one team"));
}

TEST_F(OrganisationRpc, RolesAreHandedOutOnlyByThoseWhoHoldAllOfThem) {
  const std::string admin = MemberSession("admin@example.org", "Admin");
  const std::string member = MemberSession("member@example.org", "Member");
  EXPECT_EQ(CodeOf(User(admin, "x@example.org", "Owner")), Code::kPermissionDenied);
  EXPECT_TRUE(User(admin, "y@example.org", "Admin").ok());
  EXPECT_EQ(CodeOf(User(member, "z@example.org", "Member", team_)), Code::kPermissionDenied);
  EXPECT_TRUE(User(owner_, "o@example.org", "Owner").ok());
  EXPECT_EQ(CodeOf(Org().ListUsers(member, {})), Code::kPermissionDenied);
  EXPECT_EQ(CodeOf(Org().ListAuditEvents(member, {})), Code::kPermissionDenied);
  EXPECT_TRUE(Org().ListTeams(member, {}).ok());
}

TEST_F(OrganisationRpc, AManagerOfMembersCannotBecomeAnOwnerThroughAKey) {
  const std::string admin = MemberSession("admin@example.org", "Admin");
  v1::CreateApiKeyRequest request;
  request.set_user_id(first_.owner.str());
  EXPECT_EQ(CodeOf(Org().CreateApiKey(admin, request)), Code::kPermissionDenied);
  v1::ListApiKeysRequest list;
  list.set_user_id(first_.owner.str());
  const auto keys = Org().ListApiKeys(admin, list);
  ASSERT_TRUE(keys.ok()) << keys.error().message();
  v1::RevokeApiKeyRequest revoke;
  revoke.set_key_id(keys->keys(0).key_id());
  EXPECT_EQ(CodeOf(Org().RevokeApiKey(admin, revoke)), Code::kPermissionDenied);
}

TEST_F(OrganisationRpc, KeysAreOnesOwnUnlessOneManagesMembers) {
  const std::string a = MemberSession("a@example.org");
  const std::string b = MemberSession("b@example.org");
  v1::CreateApiKeyRequest request;
  request.set_label("laptop");
  const auto own = Org().CreateApiKey(a, request);
  ASSERT_TRUE(own.ok()) << own.error().message();
  EXPECT_EQ(own->key().label(), "laptop");
  EXPECT_EQ(own->key().hint(), own->secret().substr(own->secret().size() - 4));
  v1::ListApiKeysRequest list;
  list.set_user_id(own->key().user_id());
  EXPECT_EQ(CodeOf(Org().ListApiKeys(b, list)), Code::kPermissionDenied);
  EXPECT_EQ(Org().ListApiKeys(a, {})->keys_size(), 2);
  EXPECT_EQ(Org().ListApiKeys(owner_, list)->keys_size(), 2);
  v1::RevokeApiKeyRequest revoke;
  revoke.set_key_id(own->key().key_id());
  EXPECT_EQ(CodeOf(Org().RevokeApiKey(b, revoke)), Code::kPermissionDenied);
  EXPECT_TRUE(Org().RevokeApiKey(owner_, revoke).ok());
  const auto keys = Org().ListApiKeys(a, {});
  for (const auto& key : keys->keys())
    EXPECT_EQ(key.has_revoked_at_ms(), key.key_id() == own->key().key_id());
  revoke.set_key_id("nothing");
  EXPECT_EQ(CodeOf(Org().RevokeApiKey(owner_, revoke)), Code::kNotFound);
}

TEST_F(OrganisationRpc, NothingOfAnotherOrganisationIsSeenOrTouched) {
  const auto other = plane_->bootstrap().Create({"Other", "eve@other.org", "", UserId()});
  const std::string eve = Session(other->api_key);
  const std::string team = Team("vision");
  EXPECT_EQ(CodeOf(User(eve, "m@other.org", "Member", team)), Code::kInvalidArgument);
  EXPECT_EQ(Org().ListUsers(eve, {})->users_size(), 1);
  EXPECT_EQ(Org().ListTeams(eve, {})->teams_size(), 0);
  v1::RevokeApiKeyRequest revoke;
  revoke.set_key_id(Org().ListApiKeys(owner_, {})->keys(0).key_id());
  EXPECT_EQ(CodeOf(Org().RevokeApiKey(eve, revoke)), Code::kNotFound);
  v1::CreateApiKeyRequest key;
  key.set_user_id(first_.owner.str());
  EXPECT_EQ(CodeOf(Org().CreateApiKey(eve, key)), Code::kNotFound);
  const auto events = Org().ListAuditEvents(eve, {});
  for (const auto& event : events->events())
    EXPECT_EQ(event.DebugString().find("Example Labs"), std::string::npos);
}

TEST_F(OrganisationRpc, ComputesOfATeamAreSeenByItAndByThoseWhoSeeAll) {
  const std::string member = MemberSession("m@example.org");
  v1::RegisterComputeRequest request;
  request.set_type(v1::COMPUTE_TYPE_SLURM);
  request.set_team_id(Team("secret"));
  const auto hidden = Computes().RegisterCompute(owner_, request);
  ASSERT_TRUE(hidden.ok()) << hidden.error().message();
  request.set_team_id(team_);
  ASSERT_TRUE(Computes().RegisterCompute(member, request).ok());
  ASSERT_TRUE(RegisterCompute(owner_).ok());
  EXPECT_EQ(Computes().ListComputes(member, {})->computes_size(), 2);
  EXPECT_EQ(Computes().ListComputes(owner_, {})->computes_size(), 3);
  v1::GetComputeRequest get;
  get.set_compute_id(hidden->compute().compute_id());
  EXPECT_EQ(CodeOf(Computes().GetCompute(member, get)), Code::kNotFound);
  request.set_team_id(hidden->compute().team_id());
  EXPECT_EQ(CodeOf(Computes().RegisterCompute(member, request)), Code::kPermissionDenied);
  v1::RevokeComputeRequest revoke;
  revoke.set_compute_id(hidden->compute().compute_id());
  EXPECT_EQ(CodeOf(Computes().RevokeCompute(member, revoke)), Code::kPermissionDenied);
}

TEST_F(OrganisationRpc, AuditPagesLoseNothingThoughManyEventsShareAMillisecond) {
  for (int i = 0; i < 20; ++i) {
    Team("t" + std::to_string(i));
    if (i % 5 == 4) clock_.Advance(Millis(1));
  }
  std::set<std::string> seen;
  v1::ListAuditEventsRequest request;
  request.set_limit(3);
  while (true) {
    const auto page = Org().ListAuditEvents(owner_, request);
    ASSERT_TRUE(page.ok()) << page.error().message();
    if (page->events().empty()) break;
    for (const auto& event : page->events())
      if (event.action() == "team.created") {
        EXPECT_TRUE(seen.insert(event.subject()).second) << "seen twice";
      }
    request.set_before_ms(page->events(page->events_size() - 1).at_ms());
  }
  EXPECT_EQ(seen.size(), 20U);
  request.set_limit(-1);
  EXPECT_EQ(CodeOf(Org().ListAuditEvents(owner_, request)), Code::kInvalidArgument);
}

TEST_F(OrganisationRpc, BootstrapMakesAnOrganisationOnceAndNewCredentialsForIt) {
  const auto& bootstrap = plane_->bootstrap();
  EXPECT_EQ(CodeOf(bootstrap.Create({"Example Labs", "x@y.org", "", UserId()})),
            Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(bootstrap.Create({"", "x@y.org", "", UserId()})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(bootstrap.Create({"New", "nobody", "", UserId()})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(bootstrap.Create({"New", "x@y.org", "", UserId("stranger")})), Code::kNotFound);
  EXPECT_FALSE(bootstrap.Exists("New").value());
  const auto key = bootstrap.NewOwnerKey("Example Labs", "ada@example.org");
  ASSERT_TRUE(key.ok()) << key.error().message();
  EXPECT_TRUE(Mint(*key).ok());
  EXPECT_TRUE(bootstrap.IsLivingApiKey("Example Labs", *key).value());
  EXPECT_EQ(CodeOf(bootstrap.NewOwnerKey("Example Labs", "x@y.org")), Code::kNotFound);
  EXPECT_EQ(CodeOf(bootstrap.NewOwnerKey("Nothing", "ada@example.org")), Code::kNotFound);
  const auto plane = bootstrap.NewPlaneCredential("Example Labs");
  ASSERT_TRUE(plane.ok());
  EXPECT_TRUE(bootstrap.IsLivingPlaneCredential("Example Labs", *plane).value());
  EXPECT_FALSE(bootstrap.IsLivingPlaneCredential("Example Labs", *key).value());
}

}  // namespace
}  // namespace expanse::control_plane
