// SPDX-License-Identifier: Apache-2.0
// The secrets a control plane works with: the pepper of its credential hashes and the keys that
// sign sessions. They are kept in one file outside the database, so that a copy of the database
// alone can neither sign a session nor test a guessed credential.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "auth/api_keys/credential.h"
#include "auth/jose/jws.h"
#include "base/result.h"
#include "base/time.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"

namespace expanse::control_plane {

/// Thread-safe.
class ServerKeys {
 public:
  /// Reads the file. Absent: makes it when may_create, else kFailedPrecondition (a database whose
  /// pepper is lost must not get a new one in silence). Refuses a file that others can read.
  static Result<std::unique_ptr<ServerKeys>> Open(const std::string& path, bool may_create,
                                                  Millis signing_key_lifetime,
                                                  const platform::Clock& clock,
                                                  platform::Random& random);

  /// Names this deployment in its tokens.
  const std::string& issuer() const { return issuer_; }
  const auth::CredentialHasher& hasher() const { return hasher_; }
  /// The key to sign with; replaced by a new one when it is older than its lifetime. The old one
  /// stays in the key set until a later replacement, a day on at the earliest: longer than any
  /// session.
  Result<auth::SigningKey> CurrentSigningKey();
  /// Public keys, RFC 7517.
  std::string Jwks() const;
  /// The same keys, to verify with.
  std::shared_ptr<const auth::KeySet> Keys() const;

 private:
  struct DatedKey {
    auth::SigningKey key;
    int64_t created_at_ms;
  };
  ServerKeys(std::string path, std::string issuer, Secret pepper, Millis lifetime,
             const platform::Clock& clock);
  static Result<std::unique_ptr<ServerKeys>> Read(const std::string& path, Millis lifetime,
                                                  const platform::Clock& clock);
  Status WriteLocked() const;
  Status PublishLocked();

  const std::string path_;
  const std::string issuer_;
  const Secret pepper_;
  const auth::CredentialHasher hasher_;
  const Millis lifetime_;
  const platform::Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<DatedKey> keys_;  // oldest first; the last one signs
  std::string jwks_;
  std::shared_ptr<const auth::KeySet> key_set_;
};

}  // namespace expanse::control_plane
