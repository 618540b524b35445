// SPDX-License-Identifier: Apache-2.0
// JSON Web Signatures (RFC 7515, compact form) with ES256 and the keys for them (RFC 7517), on
// libcjose. ES256 is the only algorithm: a token that names another one, "none" among them, is
// refused before any cryptography runs. No cjose type leaves this folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace expanse::auth {

/// More is refused unread: a session token of a user in hundreds of teams is still below this.
inline constexpr size_t kMaxTokenBytes = 16 << 10;

/// A P-256 key pair.
class SigningKey {
 public:
  static Result<SigningKey> Generate();
  /// kInvalidArgument when the text is no private P-256 JWK.
  static Result<SigningKey> FromJwk(const Secret& jwk);

  /// RFC 7638 thumbprint of the public key.
  const std::string& kid() const { return kid_; }
  const Secret& jwk() const { return jwk_; }
  /// The JWK without "d", with kid, use and alg.
  const std::string& public_jwk() const { return public_jwk_; }

 private:
  SigningKey() = default;
  std::string kid_;
  Secret jwk_;
  std::string public_jwk_;
};

/// Public keys by key id, and whose they are.
class KeySet {
 public:
  /// Reads a JWK set. Keys of another type or use, or without a kid, are left out, as RFC 7517
  /// section 5 says; kInvalidArgument when the text is no key set, or private keys are in it.
  /// The member "issuer" (an extra member, which RFC 7517 allows) names the deployment.
  static Result<KeySet> FromJwks(std::string_view json);
  static std::string ToJwks(std::string_view issuer, const std::vector<std::string>& public_jwks);

  /// The JWK of a key id; nullptr when it is not in the set.
  const std::string* Find(std::string_view kid) const;
  size_t size() const { return keys_.size(); }
  const std::string& issuer() const { return issuer_; }

 private:
  std::map<std::string, std::string, std::less<>> keys_;
  std::string issuer_;
};

/// What a compact JWS says about itself, before anything is verified.
struct JwsHeader {
  std::string kid;   // "" when absent
  std::string type;  // "typ"; "" when absent
};

/// kUnauthenticated when the token is too long, is not three base64url parts, its header is no
/// JSON object, names another algorithm than ES256 or a critical extension.
Result<JwsHeader> ParseJwsHeader(std::string_view token);

/// Compact JWS of the payload.
Result<std::string> SignJws(const SigningKey& key, std::string_view type, std::string_view payload);

/// The payload of a token whose signature is by this key; kUnauthenticated otherwise.
Result<std::string> VerifyJws(std::string_view token, std::string_view public_jwk);

}  // namespace expanse::auth
