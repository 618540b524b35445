// SPDX-License-Identifier: Apache-2.0
#include "auth/api_keys/credential.h"

#include <set>

#include <gtest/gtest.h>

#include "auth/permissions/permissions.h"

namespace expanse::auth {
namespace {

constexpr CredentialKind kKinds[] = {CredentialKind::kApiKey, CredentialKind::kInstallToken,
                                     CredentialKind::kCompute, CredentialKind::kPlane};

TEST(Credential, HasItsPrefixAnd256RandomBits) {
  platform::SystemRandom random;
  std::set<std::string> seen;
  for (const auto kind : kKinds)
    for (int i = 0; i < 50; ++i) {
      const Secret credential = MintCredential(kind, random);
      EXPECT_TRUE(HasFormOf(kind, credential.Reveal()));
      EXPECT_EQ(credential.Reveal().size(), PrefixOf(kind).size() + 43);
      EXPECT_TRUE(seen.insert(credential.Reveal()).second);
    }
}

TEST(Credential, OfOneKindDoesNotHaveTheFormOfAnother) {
  platform::SystemRandom random;
  for (const auto a : kKinds)
    for (const auto b : kKinds) {
      if (a != b) {
        EXPECT_FALSE(HasFormOf(b, MintCredential(a, random).Reveal()));
      }
    }
}

TEST(Credential, FormIsExact) {
  const std::string good = "exp_user_" + std::string(43, 'a');
  EXPECT_TRUE(HasFormOf(CredentialKind::kApiKey, good));
  EXPECT_FALSE(HasFormOf(CredentialKind::kApiKey, ""));
  EXPECT_FALSE(HasFormOf(CredentialKind::kApiKey, good + "a"));
  EXPECT_FALSE(HasFormOf(CredentialKind::kApiKey, " " + good.substr(1)));
  EXPECT_FALSE(HasFormOf(CredentialKind::kApiKey, good.substr(0, good.size() - 1) + "\n"));
  EXPECT_FALSE(HasFormOf(CredentialKind::kApiKey, std::string(1 << 20, 'a')));
}

TEST(Credential, HintIsTheLastFourCharacters) {
  EXPECT_EQ(HintOf(Secret("exp_user_abcdWXYZ")), "WXYZ");
  EXPECT_EQ(HintOf(Secret("abc")), "");
}

TEST(CredentialHasher, IsKeyedAndStable) {
  const CredentialHasher a{Secret(std::string(32, 'p'))};
  const CredentialHasher b{Secret(std::string(32, 'q'))};
  EXPECT_EQ(a.Hash("exp_user_x"), a.Hash("exp_user_x"));
  EXPECT_NE(a.Hash("exp_user_x"), b.Hash("exp_user_x"));
  EXPECT_EQ(a.Hash("exp_user_x").size(), 64U);
  EXPECT_TRUE(a.Matches("exp_user_x", a.Hash("exp_user_x")));
  EXPECT_FALSE(a.Matches("exp_user_y", a.Hash("exp_user_x")));
  EXPECT_FALSE(a.Matches("exp_user_x", ""));
  EXPECT_FALSE(a.Matches("exp_user_x", b.Hash("exp_user_x")));
}

// RFC 4231 test case 2.
TEST(CredentialHasher, IsHmacSha256) {
  const CredentialHasher hasher{Secret("Jefe")};
  EXPECT_EQ(hasher.Hash("what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(RolePresets, GiveMembersLessThanAdminsAndAdminsLessThanOwners) {
  const auto& presets = RolePresets();
  ASSERT_EQ(presets.size(), 3U);
  const auto strings = [](const RolePreset& p) {
    return std::vector<std::string>(p.permissions.begin(), p.permissions.end());
  };
  EXPECT_EQ(presets[0].name, "Owner");
  EXPECT_TRUE(presets[0].is_protected);
  EXPECT_EQ(presets[0].permissions.size(), AllPermissions().size());
  EXPECT_TRUE(IsSubset(strings(presets[1]), strings(presets[0])));
  EXPECT_FALSE(IsSubset(strings(presets[0]), strings(presets[1])));
  EXPECT_TRUE(IsSubset(strings(presets[2]), strings(presets[1])));
  for (const auto& p : presets) {
    EXPECT_TRUE(IsSubset(std::vector<std::string>{"computes.register"}, strings(p)));
    EXPECT_TRUE(IsSubset(std::vector<std::string>{"executions.read"}, strings(p)));
  }
  EXPECT_FALSE(IsSubset(std::vector<std::string>{"executions.read_all"}, strings(presets[2])));
}

}  // namespace
}  // namespace expanse::auth
