// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/sessions/session_token.h"
#include "auth/sessions/session_verifier.h"
#include "platform/fs/fs.h"

namespace expanse::auth {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'796'000'000'000;

SigningKey NewKey() { return std::move(SigningKey::Generate()).value(); }

SessionClaims Claims() {
  SessionClaims c;
  c.issuer = "deployment-1";
  c.user = UserId("0190b3a0-0000-7000-8000-000000000001");
  c.organisation = OrgId("0190b3a0-0000-7000-8000-000000000002");
  c.organisation_name = "Example Labs";
  c.email = "ada@example.org";
  c.name = "Ada \"Countess\" Lovelace";
  c.role = "Member";
  c.permissions = {"computes.register", "executions.read"};
  c.teams = {"0190b3a0-0000-7000-8000-000000000003"};
  c.issued_at = FromUnixMillis(kNow);
  c.expires_at = FromUnixMillis(kNow + 900'000);
  return c;
}

KeySet SetOf(const SigningKey& key, std::string_view issuer = "deployment-1") {
  return std::move(KeySet::FromJwks(KeySet::ToJwks(issuer, {key.public_jwk()}))).value();
}

void ExpectRefused(const Result<SessionClaims>& r, std::string_view says) {
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(r.error().message(), HasSubstr(std::string(says)));
}

TEST(SessionToken, CarriesEveryClaim) {
  const SigningKey key = NewKey();
  const auto token = SignSessionToken(Claims(), key);
  ASSERT_TRUE(token.ok()) << token.error().message();
  const auto got = VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow));
  ASSERT_TRUE(got.ok()) << got.error().message();
  const SessionClaims want = Claims();
  EXPECT_EQ(got->issuer, want.issuer);
  EXPECT_EQ(got->user, want.user);
  EXPECT_EQ(got->organisation, want.organisation);
  EXPECT_EQ(got->organisation_name, want.organisation_name);
  EXPECT_EQ(got->email, want.email);
  EXPECT_EQ(got->name, want.name);
  EXPECT_EQ(got->role, want.role);
  EXPECT_EQ(got->permissions, want.permissions);
  EXPECT_EQ(got->teams, want.teams);
  EXPECT_EQ(got->issued_at, want.issued_at);
  EXPECT_EQ(got->expires_at, want.expires_at);
}

TEST(SessionToken, IsRefusedOnceExpiredBeyondTheLeeway) {
  const SigningKey key = NewKey();
  const auto token = SignSessionToken(Claims(), key);
  const int64_t end = kNow + 900'000;
  EXPECT_TRUE(VerifySessionToken(*token, SetOf(key), FromUnixMillis(end + 59'999)).ok());
  ExpectRefused(VerifySessionToken(*token, SetOf(key), FromUnixMillis(end + 60'000)), "expired at");
}

TEST(SessionToken, IsRefusedBeforeItsTimeBeyondTheLeeway) {
  const SigningKey key = NewKey();
  const auto token = SignSessionToken(Claims(), key);
  EXPECT_TRUE(VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow - 60'000)).ok());
  ExpectRefused(VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow - 60'001)),
                "not valid before");
}

TEST(SessionToken, OfAnotherDeploymentIsRefused) {
  const SigningKey key = NewKey();
  const auto token = SignSessionToken(Claims(), NewKey());
  ExpectRefused(VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow)), "does not have");
  const auto other = SignSessionToken(Claims(), key);
  ExpectRefused(VerifySessionToken(*other, SetOf(key, "deployment-2"), FromUnixMillis(kNow)),
                "another deployment");
}

TEST(SessionToken, WithAWrongKeyIdIsRefusedEvenIfTheKeyIsKnown) {
  const SigningKey a = NewKey();
  const SigningKey b = NewKey();
  // A set that lists b's key under a's id: the signature by a cannot match.
  std::string b_as_a = b.public_jwk();
  b_as_a.replace(b_as_a.find(b.kid()), b.kid().size(), a.kid());
  const auto set = KeySet::FromJwks(KeySet::ToJwks("deployment-1", {b_as_a}));
  const auto token = SignSessionToken(Claims(), a);
  ExpectRefused(VerifySessionToken(*token, *set, FromUnixMillis(kNow)), "signature");
}

TEST(SessionToken, OfAnotherTypeIsRefused) {
  const SigningKey key = NewKey();
  const auto token = SignJws(key, "JWT", "{}");
  ExpectRefused(VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow)), "no session token");
}

TEST(SessionToken, WithMissingOrMistypedClaimsIsRefused) {
  const SigningKey key = NewKey();
  const std::string good =
      R"({"iss":"deployment-1","sub":"0190b3a0-0000-7000-8000-000000000001",)"
      R"("org":"0190b3a0-0000-7000-8000-000000000002","org_name":"o","email":"e","name":"n",)"
      R"("role":"r","perms":["p"],"teams":[],"iat":1796000000,"exp":1796000900})";
  ASSERT_TRUE(ParseSessionClaims(good).ok());
  const std::pair<std::string, std::string> changes[] = {
      {R"("sub":"0190b3a0-0000-7000-8000-000000000001")", R"("sub":"root")"},
      {R"("org":"0190)", R"("grp":"0190)"},
      {R"("perms":["p"])", R"("perms":"p")"},
      {R"("perms":["p"])", R"("perms":[1])"},
      {R"("exp":1796000900)", R"("exp":"1796000900")"},
      {R"("exp":1796000900)", R"("exp":1796000900.5)"},
      {R"("exp":1796000900)", R"("exp":-1)"},
      {R"("exp":1796000900)", R"("exp":9223372036854775807)"},
      {R"("exp":1796000900)", R"("nbf":1)"},
      {R"("email":"e")", R"("email":null)"},
  };
  for (const auto& [from, to] : changes) {
    std::string payload = good;
    payload.replace(payload.find(from), from.size(), to);
    const auto token = SignJws(key, kSessionTokenType, payload);
    ExpectRefused(VerifySessionToken(*token, SetOf(key), FromUnixMillis(kNow)), "malformed");
  }
}

TEST(SessionToken, TooLargeToSendIsNotIssued) {
  SessionClaims claims = Claims();
  claims.teams.assign(1000, "0190b3a0-0000-7000-8000-000000000003");
  const auto token = SignSessionToken(claims, NewKey());
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().code(), Code::kResourceExhausted);
}

class SessionVerifierTest : public testing::Test {
 protected:
  SessionVerifierOptions Options() const {
    SessionVerifierOptions o;
    o.cache_file = dir_.path() + "/jwks.json";
    o.refresh_period = Millis(0);
    return o;
  }
  KeySetSource Source() {
    return [this]() -> Result<std::string> {
      ++fetches_;
      if (away_) return Error(Code::kUnavailable, "connection refused");
      return KeySet::ToJwks("deployment-1", {key_.public_jwk()});
    };
  }
  std::string Token() const { return SignSessionToken(Claims(), key_).value(); }

  platform::TempDir dir_;
  platform::FakeClock clock_{FromUnixMillis(kNow)};
  SigningKey key_ = NewKey();
  std::atomic<int> fetches_ = 0;
  std::atomic<bool> away_ = false;
};

TEST_F(SessionVerifierTest, FetchesTheKeySetAtTheFirstTokenAndNotAgain) {
  SessionVerifier verifier(Options(), Source(), clock_);
  for (int i = 0; i < 3; ++i) {
    const auto claims = verifier.Verify(Token());
    ASSERT_TRUE(claims.ok()) << claims.error().message();
  }
  EXPECT_EQ(fetches_, 1);
}

TEST_F(SessionVerifierTest, VerifiesAfterARestartWhileTheControlPlaneIsAway) {
  { ASSERT_TRUE(SessionVerifier(Options(), Source(), clock_).Refresh().ok()); }
  away_ = true;
  SessionVerifier restarted(Options(), Source(), clock_);
  const auto claims = restarted.Verify(Token());
  ASSERT_TRUE(claims.ok()) << claims.error().message();
  EXPECT_EQ(platform::Fs().Stat(Options().cache_file)->mode & 0777, 0600U);
}

TEST_F(SessionVerifierTest, SaysThatTheControlPlaneIsAwayRatherThanThatTheTokenIsBad) {
  away_ = true;
  SessionVerifier verifier(Options(), Source(), clock_);
  for (int i = 0; i < 2; ++i) {
    const auto claims = verifier.Verify(Token());
    ASSERT_FALSE(claims.ok());
    EXPECT_EQ(claims.error().code(), Code::kUnavailable);
    EXPECT_THAT(claims.error().message(), HasSubstr("connection refused"));
  }
  EXPECT_EQ(fetches_, 1) << "the second was within the rate limit";
}

TEST_F(SessionVerifierTest, LearnsANewKeyAtOnceAndAsksSeldomForInventedOnes) {
  SessionVerifier verifier(Options(), Source(), clock_);
  ASSERT_TRUE(verifier.Refresh().ok());
  clock_.Advance(Millis(10'000));
  key_ = NewKey();
  EXPECT_TRUE(verifier.Verify(Token()).ok());
  EXPECT_EQ(fetches_, 2);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(verifier.Verify(SignSessionToken(Claims(), NewKey()).value()).error().code(),
              Code::kUnauthenticated);
  EXPECT_EQ(fetches_, 2);
  clock_.Advance(Millis(10'000));
  EXPECT_FALSE(verifier.Verify(SignSessionToken(Claims(), NewKey()).value()).ok());
  EXPECT_EQ(fetches_, 3);
}

TEST_F(SessionVerifierTest, ForgetsAWithdrawnKeyAtTheNextRefresh) {
  SessionVerifier verifier(Options(), Source(), clock_);
  const std::string token = Token();
  ASSERT_TRUE(verifier.Verify(token).ok());
  key_ = NewKey();
  ASSERT_TRUE(verifier.Refresh().ok());
  EXPECT_EQ(verifier.Verify(token).error().code(), Code::kUnauthenticated);
}

TEST_F(SessionVerifierTest, KeepsItsKeysWhenARefreshFailsOrAnswersNonsense) {
  std::string answer = KeySet::ToJwks("deployment-1", {key_.public_jwk()});
  SessionVerifier verifier(
      Options(), [&]() -> Result<std::string> { return answer; }, clock_);
  ASSERT_TRUE(verifier.Refresh().ok());
  for (const char* nonsense : {"", "<html>502</html>", R"({"keys":[]})"}) {
    answer = nonsense;
    EXPECT_FALSE(verifier.Refresh().ok());
    EXPECT_TRUE(verifier.Verify(Token()).ok());
  }
}

TEST_F(SessionVerifierTest, StartsWithADamagedCacheFileAndReplacesIt) {
  ASSERT_TRUE(platform::Fs().WriteAtomic(Options().cache_file, "{\"keys\":", 0600).ok());
  SessionVerifier verifier(Options(), Source(), clock_);
  EXPECT_TRUE(verifier.Verify(Token()).ok());
  EXPECT_TRUE(KeySet::FromJwks(platform::Fs().Read(Options().cache_file).value()).ok());
}

TEST_F(SessionVerifierTest, GivesTheCallerWhatTheClaimsSay) {
  SessionVerifier verifier(Options(), Source(), clock_);
  const auto caller = verifier.Authenticate(Token(), "executions.read");
  ASSERT_TRUE(caller.ok()) << caller.error().message();
  EXPECT_EQ(caller->kind, rpc::CallerKind::kUser);
  EXPECT_EQ(caller->org, Claims().organisation);
  EXPECT_EQ(caller->user, Claims().user);
  EXPECT_TRUE(caller->HasPermission("executions.read"));
  EXPECT_EQ(caller->team_ids, Claims().teams);
  for (const char* kind : {"compute", "plane"})
    EXPECT_EQ(verifier.Authenticate(Token(), kind).error().code(), Code::kUnauthenticated);
}

TEST_F(SessionVerifierTest, FirstCallersAfterAStartAllWaitForTheKeys) {
  std::promise<void> fetch;
  std::promise<void> fetching;
  SessionVerifier verifier(
      Options(),
      [&]() -> Result<std::string> {
        fetching.set_value();
        fetch.get_future().wait();
        return KeySet::ToJwks("deployment-1", {key_.public_jwk()});
      },
      clock_);
  const std::string token = Token();
  std::atomic<int> accepted = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] { accepted += verifier.Verify(token).ok() ? 1 : 0; });
  fetching.get_future().wait();
  fetch.set_value();
  for (auto& t : callers) t.join();
  EXPECT_EQ(accepted, 8);
}

TEST_F(SessionVerifierTest, InventedKeysDoNotHoldUpCallersWhileTheControlPlaneHangs) {
  std::promise<void> hang;
  std::promise<void> hanging;
  std::atomic<int> fetches = 0;
  const std::string good = KeySet::ToJwks("deployment-1", {key_.public_jwk()});
  SessionVerifier verifier(
      Options(),
      [&]() -> Result<std::string> {
        if (++fetches == 2) {
          hanging.set_value();
          hang.get_future().wait();
        }
        return good;
      },
      clock_);
  ASSERT_TRUE(verifier.Refresh().ok());
  clock_.Advance(Millis(10'000));
  const std::string token = Token();
  const std::string invented = SignSessionToken(Claims(), NewKey()).value();
  std::thread first([&] { EXPECT_FALSE(verifier.Verify(invented).ok()); });
  hanging.get_future().wait();
  std::vector<std::thread> others;
  std::atomic<int> unavailable = 0;
  for (int i = 0; i < 10; ++i)
    others.emplace_back([&] {
      const auto r = verifier.Verify(invented);
      if (!r.ok() && r.error().code() == Code::kUnavailable) ++unavailable;
    });
  EXPECT_TRUE(verifier.Verify(token).ok()) << "a known key needs no fetch";
  for (auto& t : others) t.join();
  EXPECT_EQ(unavailable, 10);
  EXPECT_EQ(fetches, 2);
  hang.set_value();
  first.join();
  EXPECT_TRUE(verifier.Verify(token).ok());
}

TEST_F(SessionVerifierTest, ServesManyThreadsWhileKeysChange) {
  SessionVerifier verifier(Options(), Source(), clock_);
  const std::string token = Token();
  std::atomic<int> accepted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        if (verifier.Verify(token).ok()) ++accepted;
        if (i % 5 == 0) (void)verifier.Refresh();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(accepted, 80);
}

}  // namespace
}  // namespace expanse::auth
