// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/fakes.h"
#include "cli/session.h"

namespace expanse::cli {
namespace {

TEST(Login, StoresTheKeyAndASessionThatOnlyTheOwnerReads) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"login", "--api-key", FakePlanes::kApiKey, "--control-plane",
                         FakePlanes::kControlUrl}),
            kExitOk);
  EXPECT_EQ(machine.terminal.out,
            "Signed in as ada@example.org, organisation Analytical Engines, at "
            "http://control.test:7701.\n");
  ASSERT_EQ(machine.planes.mints.size(), 1U);
  const auto info = machine.fs.Stat(machine.credentials_path());
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->mode & 0777U, 0600U);
  EXPECT_EQ(machine.fs.Stat("/home/ada/.expanse")->mode & 0777U, 0700U);
  const auto saved = OpenCredentialStore(machine.context)->Load();
  ASSERT_TRUE(saved.ok() && saved->has_value());
  EXPECT_EQ((*saved)->api_key.Reveal(), FakePlanes::kApiKey);
  EXPECT_EQ((*saved)->control_plane_url, FakePlanes::kControlUrl);
  EXPECT_EQ((*saved)->session.access_token(), "token-1");
}

TEST(Login, TakesKeyAndUrlFromTheEnvironmentWhenNoFlagSaysOtherwise) {
  FakeMachine machine;
  machine.context.environment["EXPANSE_API_KEY"] = FakePlanes::kApiKey;
  machine.context.environment["EXPANSE_API_URL"] = FakePlanes::kControlUrl;
  EXPECT_EQ(machine.Run({"login"}), kExitOk) << machine.terminal.err;
  machine.context.environment["EXPANSE_API_KEY"] = "exp_user_other";
  EXPECT_EQ(machine.Run({"login", "--api-key", FakePlanes::kApiKey}), kExitOk);
  EXPECT_EQ(machine.Run({"login"}), kExitNotSignedIn);
}

TEST(Login, KeepsTheUrlOfTheExistingSession) {
  FakeMachine machine;
  machine.SignIn();
  EXPECT_EQ(machine.Run({"login", "--api-key", FakePlanes::kApiKey}), kExitOk);
  EXPECT_EQ(machine.planes.urls, std::vector<std::string>{FakePlanes::kControlUrl});
}

TEST(Login, TriesThisMachineWhenNothingNamesAUrl) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"login", "--api-key", FakePlanes::kApiKey}), kExitUnreachable);
  EXPECT_EQ(machine.planes.urls, std::vector<std::string>{std::string(kDefaultControlPlane)});
  EXPECT_EQ(machine.terminal.err,
            "expanse: signing in at http://127.0.0.1:7701: connecting to http://127.0.0.1:7701: "
            "connection refused\n");
}

TEST(Login, CarriesTheOrganisation) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"login", "--api-key", FakePlanes::kApiKey, "--control-plane",
                         FakePlanes::kControlUrl, "--organisation-id", "org-2"}),
            kExitOk);
  EXPECT_EQ(machine.planes.mints[0].organisation_id(), "org-2");
}

TEST(Login, WithoutAKeySaysWhereToCreateOne) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"login"}), kExitUsage);
  EXPECT_NE(machine.terminal.err.find("created in the console under Settings"), std::string::npos);
  EXPECT_TRUE(machine.planes.mints.empty());
}

TEST(Login, AsksForTheKeyHiddenOnATerminal) {
  FakeMachine machine;
  machine.terminal.MakeInteractive();
  machine.terminal.answers = {std::string(FakePlanes::kApiKey) + " "};
  EXPECT_EQ(machine.Run({"login", "--control-plane", FakePlanes::kControlUrl}), kExitOk);
  EXPECT_EQ(machine.terminal.hidden_reads, 1);
  EXPECT_EQ(machine.terminal.transcript.find(FakePlanes::kApiKey), std::string::npos);
}

TEST(Login, RefusesWhatIsNoPersonalKeyWithoutSendingIt) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"login", "--api-key", "exp_compute_x", "--control-plane",
                         FakePlanes::kControlUrl}),
            kExitUsage);
  EXPECT_TRUE(machine.planes.urls.empty());
  EXPECT_EQ(machine.terminal.err.find("exp_compute_x"), std::string::npos);
}

TEST(Login, RepairsABrokenCredentialsFile) {
  FakeMachine machine;
  ASSERT_TRUE(machine.fs.MakeDirs("/home/ada/.expanse").ok());
  ASSERT_TRUE(machine.fs.WriteAtomic(machine.credentials_path(), "{broken", 0600).ok());
  EXPECT_EQ(machine.Run({"status"}), kExitFailed);
  EXPECT_NE(machine.terminal.err.find("run `expanse login`"), std::string::npos);
  machine.SignIn();
  EXPECT_EQ(machine.Run({"status"}), kExitOk);
}

TEST(SessionOf, ACommandWithoutSignInExitsWithThree) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"executions"}), kExitNotSignedIn);
  EXPECT_NE(machine.terminal.err.find("expanse login"), std::string::npos);
  EXPECT_EQ(machine.terminal.out, "");
}

TEST(SessionOf, AnUnreachableServerExitsWithFour) {
  FakeMachine machine;
  machine.SignIn();
  machine.planes.down = true;
  EXPECT_EQ(machine.Run({"executions"}), kExitUnreachable);
  EXPECT_EQ(machine.terminal.err,
            "expanse: connecting to http://data.test:7702: connection refused\n");
}

TEST(SessionOf, IsCachedAndMintedAnewWhenLessThanAMinuteIsLeft) {
  FakeMachine machine;
  machine.SignIn();
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 1U);
  machine.clock.Advance(Millis(841'000));
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 2U);
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 2U);
}

TEST(SessionOf, ARejectedTokenIsMintedAnewOnce) {
  FakeMachine machine;
  machine.SignIn();
  machine.planes.valid_tokens.clear();
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 2U);
}

TEST(SessionOf, ARevokedKeyExitsWithThree) {
  FakeMachine machine;
  machine.SignIn();
  auto store = OpenCredentialStore(machine.context).value();
  auto credentials = store.Load().value().value();
  credentials.api_key = Secret("exp_user_revoked");
  credentials.session_url.clear();
  ASSERT_TRUE(store.Save(credentials).ok());
  EXPECT_EQ(machine.Run({"executions"}), kExitNotSignedIn);
  EXPECT_EQ(machine.terminal.err.find("exp_user_revoked"), std::string::npos);
}

TEST(SessionOf, TheKeyTravelsOnlyInMintSession) {
  FakeMachine machine;
  machine.SignIn();
  EXPECT_EQ(machine.Run({"status"}), kExitOk);
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 1U);
}

TEST(SessionOf, TheEnvironmentOverridesTheControlPlane) {
  FakeMachine machine;
  machine.SignIn();
  machine.context.environment["EXPANSE_API_URL"] = "http://elsewhere.test";
  EXPECT_EQ(machine.Run({"status"}), kExitUnreachable);
  EXPECT_EQ(machine.planes.urls, std::vector<std::string>{"http://elsewhere.test"});
}

TEST(SessionOf, AFileThatOthersCanReadIsTightenedWithAWarning) {
  FakeMachine machine;
  machine.SignIn();
  ASSERT_TRUE(machine.fs.Chmod(machine.credentials_path(), 0644).ok());
  EXPECT_EQ(machine.Run({"status"}), kExitOk);
  EXPECT_NE(machine.terminal.err.find("mode 0644"), std::string::npos);
  EXPECT_EQ(machine.fs.Stat(machine.credentials_path())->mode & 0777U, 0600U);
}

TEST(StatusCommand, PrintsTheNineRows) {
  FakeMachine machine;
  machine.SignIn();
  EXPECT_EQ(machine.Run({"status"}), kExitOk);
  ExpectGolden("status.txt", machine.terminal.out);
}

TEST(Refresh, MintsAFreshTokenForTheSameOrAnotherOrganisation) {
  FakeMachine machine;
  machine.SignIn();
  EXPECT_EQ(machine.Run({"refresh"}), kExitOk);
  EXPECT_EQ(machine.planes.mints.size(), 2U);
  EXPECT_EQ(machine.Run({"refresh", "--organisation-id", "org-2"}), kExitOk);
  EXPECT_EQ(machine.planes.mints[2].organisation_id(), "org-2");
  const auto saved = OpenCredentialStore(machine.context)->Load().value().value();
  EXPECT_EQ(saved.organisation_id, "org-2");
  EXPECT_EQ(saved.session.access_token(), "token-3");
  machine.clock.Advance(Millis(900'000));
  EXPECT_EQ(machine.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine.planes.mints[3].organisation_id(), "org-2");
}

TEST(Version, IsPrintedByCommandAndFlag) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"version"}), kExitOk);
  EXPECT_EQ(machine.Run({"--version"}), kExitOk);
  EXPECT_EQ(machine.terminal.out, "expanse 0.1.0\nexpanse 0.1.0\n");
}

TEST(Output, AFullDiskIsAnError) {
  FakeMachine machine;
  machine.terminal.flush_status = Error(Code::kDataLoss, "writing to standard output: full");
  EXPECT_EQ(machine.Run({"version"}), kExitFailed);
  EXPECT_EQ(machine.terminal.err, "expanse: writing to standard output: full\n");
}

TEST(Up, BecomesTheSiblingProgramWithEveryWord) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"up", "--help"}), kExitOk);
  EXPECT_EQ(machine.Run({"up"}), kExitFailed);
  ASSERT_TRUE(machine.fs.MakeDirs("/usr/local/bin").ok());
  ASSERT_TRUE(machine.fs.WriteAtomic("/usr/local/bin/expanse-up", "", 0755).ok());
  EXPECT_EQ(machine.Run({"up", "--data", "d", "--help"}), kExitFailed);
  EXPECT_EQ(machine.exec_words,
            (std::vector<std::string>{"/usr/local/bin/expanse-up", "--data", "d", "--help"}));
}

}  // namespace
}  // namespace expanse::cli
