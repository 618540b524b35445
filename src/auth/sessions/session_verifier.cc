// SPDX-License-Identifier: Apache-2.0
#include "auth/sessions/session_verifier.h"

#include "base/log.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/fs/fs.h"

namespace expanse::auth {
namespace {

constexpr Millis kFetchTimeout{5'000};
constexpr size_t kMaxCacheBytes = 256 << 10;
constexpr int kMaxWaiting = 2;
constexpr Millis kMaxWait{1'000};

}  // namespace

KeySetSource KeySetFromControlPlane(rpc::Channel& channel) {
  return [&channel]() -> Result<std::string> {
    const control::v1::AuthServiceClient client(channel);
    EXPANSE_TRY(auto response, client.GetKeySet("", {}, Deadline::In(kFetchTimeout)));
    return response.jwks_json();
  };
}

SessionVerifier::SessionVerifier(SessionVerifierOptions options, KeySetSource source,
                                 const platform::Clock& clock)
    : options_(std::move(options)),
      source_(std::move(source)),
      clock_(clock),
      keys_(std::make_shared<const KeySet>()) {
  if (!options_.cache_file.empty()) {
    const auto text = platform::Fs().Read(options_.cache_file, kMaxCacheBytes);
    if (text.ok()) {
      auto keys = KeySet::FromJwks(*text);
      if (keys.ok()) {
        keys_ = std::make_shared<const KeySet>(std::move(keys).value());
      } else {
        log::Warning("sessions.key_cache_damaged",
                     {{"file", options_.cache_file}, {"error", keys.error().message()}});
      }
    } else if (text.error().code() != Code::kNotFound) {
      log::Warning("sessions.key_cache_unreadable",
                   {{"file", options_.cache_file}, {"error", text.error().message()}});
    }
  }
  if (options_.refresh_period.count() > 0)
    refresher_ = std::make_unique<platform::PeriodicTask>("key-set", options_.refresh_period,
                                                          [this] { (void)Refresh(); });
}

SessionVerifier::~SessionVerifier() = default;

std::shared_ptr<const KeySet> SessionVerifier::Keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

Status SessionVerifier::Refresh() {
  {
    std::unique_lock lock(mutex_);
    fetched_.wait(lock, [this] { return !is_fetching_; });
    is_fetching_ = true;
    last_fetch_ = clock_.Mono();
  }
  return Fetch();
}

Status SessionVerifier::RefreshRateLimited() {
  {
    std::unique_lock lock(mutex_);
    if (is_fetching_) {
      // Without any key nobody can be served: the first calls after a start all wait for the fetch.
      if (waiting_ >= kMaxWaiting && keys_->size() > 0)
        return Error(Code::kUnavailable, "the keys are being fetched; try again");
      ++waiting_;
      const bool done = fetched_.wait_for(lock, kMaxWait, [this] { return !is_fetching_; });
      --waiting_;
      return done ? last_outcome_
                  : Error(Code::kUnavailable, "the control plane takes long to answer; try again");
    }
    if (last_fetch_ && clock_.Mono() - *last_fetch_ < options_.min_fetch_interval)
      return last_outcome_;
    is_fetching_ = true;
    last_fetch_ = clock_.Mono();
  }
  return Fetch();
}

Status SessionVerifier::Fetch() {
  std::string text;
  std::shared_ptr<const KeySet> keys;
  const Status outcome = [&]() -> Status {
    EXPANSE_TRY(text, source_());
    EXPANSE_TRY(KeySet fetched, KeySet::FromJwks(text));
    if (fetched.size() == 0)
      return Error(Code::kUnavailable, "the control plane's key set holds no usable key");
    keys = std::make_shared<const KeySet>(std::move(fetched));
    return {};
  }();
  if (!outcome.ok()) {
    log::Warning("sessions.key_set_not_fetched", {{"error", outcome.error().message()}});
  } else if (!options_.cache_file.empty()) {
    const Status written = platform::Fs().WriteAtomic(options_.cache_file, text, 0600);
    if (!written.ok())
      log::Warning("sessions.key_cache_not_written",
                   {{"file", options_.cache_file}, {"error", written.error().message()}});
  }
  {
    const std::lock_guard lock(mutex_);
    if (keys != nullptr) keys_ = std::move(keys);
    last_outcome_ = outcome;
    is_fetching_ = false;
  }
  fetched_.notify_all();
  return outcome;
}

Result<SessionClaims> SessionVerifier::Verify(std::string_view token) {
  EXPANSE_TRY(const JwsHeader header, ParseJwsHeader(token));
  if (header.type == kSessionTokenType && Keys()->Find(header.kid) == nullptr) {
    const Status fetched = RefreshRateLimited();
    if (!fetched.ok() && Keys()->Find(header.kid) == nullptr)
      return Error(Code::kUnavailable,
                   "the token's key is not known here and the control plane could not be asked: " +
                       fetched.error().message());
  }
  return VerifySessionToken(token, *Keys(), clock_.Now());
}

Result<rpc::Caller> SessionVerifier::Authenticate(std::string_view bearer,
                                                  std::string_view permission) {
  if (permission == "compute" || permission == "plane")
    return Error(Code::kUnauthenticated,
                 "this call needs a " + std::string(permission) + " credential, not a session");
  EXPANSE_TRY(const SessionClaims claims, Verify(bearer));
  return CallerOf(claims, bearer);
}

}  // namespace expanse::auth
