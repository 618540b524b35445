// SPDX-License-Identifier: Apache-2.0
// Verifies session tokens with the control plane's public keys, which are kept in memory and on
// disk, so that a plane that restarts while the control plane is away still knows its users.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "auth/jose/jws.h"
#include "auth/sessions/session_token.h"
#include "base/result.h"
#include "platform/clock/clock.h"
#include "platform/service/service.h"
#include "rpc/channel.h"
#include "rpc/router.h"

namespace expanse::auth {

/// Answers the key set as JSON (RFC 7517); kUnavailable while its owner cannot be reached.
using KeySetSource = std::function<Result<std::string>()>;
/// AuthService.GetKeySet over a channel, which outlives the source.
KeySetSource KeySetFromControlPlane(rpc::Channel& channel);

struct SessionVerifierOptions {
  /// Where the last good key set is kept; empty: in memory only.
  std::string cache_file;
  /// A token with an unknown key id makes one fetch, but no more often than this: tokens with
  /// invented key ids must not become requests at the control plane.
  Millis min_fetch_interval{10'000};
  /// Fetches in the background this often, so that a withdrawn key is forgotten; 0: never.
  Millis refresh_period{300'000};
};

/// Thread-safe.
class SessionVerifier {
 public:
  /// clock outlives the verifier. Reads the cache file when there is one; a damaged one is
  /// reported in the log and replaced at the next fetch.
  SessionVerifier(SessionVerifierOptions options, KeySetSource source,
                  const platform::Clock& clock);
  ~SessionVerifier();

  /// kUnauthenticated: see VerifySessionToken. kUnavailable: the token's key is not known and the
  /// control plane could not be asked.
  Result<SessionClaims> Verify(std::string_view token);
  /// Verify as a caller; refuses the permissions "compute" and "plane", which are no sessions. The
  /// router checks that the caller has a named permission.
  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission);

  /// Fetches now; on failure the keys known so far stay.
  Status Refresh();

 private:
  std::shared_ptr<const KeySet> Keys() const;
  /// Fetches unless a fetch was begun within min_fetch_interval; the outcome of the last one. Few
  /// callers wait for a fetch under way, and not for long: tokens with invented key ids must not
  /// occupy a plane's threads while the control plane does not answer.
  Status RefreshRateLimited();
  Status Fetch();

  const SessionVerifierOptions options_;
  const KeySetSource source_;
  const platform::Clock& clock_;
  mutable std::mutex mutex_;  // of all below; not held during a fetch
  std::condition_variable fetched_;
  std::shared_ptr<const KeySet> keys_;
  std::optional<MonoTime> last_fetch_;
  Status last_outcome_;
  bool is_fetching_ = false;
  int waiting_ = 0;
  std::unique_ptr<platform::PeriodicTask> refresher_;  // last: stops before the rest goes
};

/// For a plane that only people call.
class SessionAuthenticator final : public rpc::Authenticator {
 public:
  /// verifier outlives this.
  explicit SessionAuthenticator(SessionVerifier& verifier) : verifier_(verifier) {}
  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission) override {
    return verifier_.Authenticate(bearer, permission);
  }

 private:
  SessionVerifier& verifier_;
};

}  // namespace expanse::auth
