// SPDX-License-Identifier: Apache-2.0
// Random bearer credentials: API keys, install tokens, compute and plane credentials. 256 random
// bits each, so a fast keyed hash is enough to store them (slow hashes are for human passwords).
#pragma once

#include <string>
#include <string_view>

#include "base/secret.h"
#include "platform/random/random.h"

namespace expanse::auth {

enum class CredentialKind { kApiKey, kInstallToken, kCompute, kPlane };

/// "exp_user_", "exp_install_", "exp_compute_", "exp_plane_".
std::string_view PrefixOf(CredentialKind kind);

Secret MintCredential(CredentialKind kind, platform::Random& random);

/// True for the kind's prefix and 43 base64url characters. A text that is not is refused without
/// a look into the database.
bool HasFormOf(CredentialKind kind, std::string_view text);

/// The last four characters: enough to tell two keys apart in a list, 232 bits stay unknown.
std::string HintOf(const Secret& credential);

/// HMAC-SHA256 with a pepper that is kept outside the database: a copy of the database alone
/// neither authenticates nor confirms a guess.
class CredentialHasher {
 public:
  /// pepper: 32 random bytes.
  explicit CredentialHasher(Secret pepper) : pepper_(std::move(pepper)) {}
  /// 64 lower-case hexadecimal characters.
  std::string Hash(std::string_view credential) const;
  /// Compares in constant time.
  bool Matches(std::string_view credential, std::string_view stored_hash) const;

 private:
  Secret pepper_;
};

}  // namespace expanse::auth
