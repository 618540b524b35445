// SPDX-License-Identifier: Apache-2.0
#include "auth/api_keys/credential.h"

#include <algorithm>

#include "base/strings.h"
#include "platform/crypto/crypto.h"

namespace expanse::auth {
namespace {

constexpr size_t kRandomCharacters = 43;  // 256 bits in base64url
constexpr size_t kHintCharacters = 4;

}  // namespace

std::string_view PrefixOf(CredentialKind kind) {
  switch (kind) {
    case CredentialKind::kApiKey:
      return "exp_user_";
    case CredentialKind::kInstallToken:
      return "exp_install_";
    case CredentialKind::kCompute:
      return "exp_compute_";
    case CredentialKind::kPlane:
      return "exp_plane_";
  }
  return "";
}

Secret MintCredential(CredentialKind kind, platform::Random& random) {
  return Secret(platform::NewToken(PrefixOf(kind), random));
}

bool HasFormOf(CredentialKind kind, std::string_view text) {
  const std::string_view prefix = PrefixOf(kind);
  if (text.size() != prefix.size() + kRandomCharacters || !text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

std::string HintOf(const Secret& credential) {
  const std::string& text = credential.Reveal();
  return text.size() < kHintCharacters ? "" : text.substr(text.size() - kHintCharacters);
}

std::string CredentialHasher::Hash(std::string_view credential) const {
  return HexEncode(platform::HmacSha256(pepper_.Reveal(), credential));
}

bool CredentialHasher::Matches(std::string_view credential, std::string_view stored_hash) const {
  return platform::ConstantTimeEquals(Hash(credential), stored_hash);
}

}  // namespace expanse::auth
