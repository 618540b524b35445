// SPDX-License-Identifier: Apache-2.0
#include "control_plane/server_keys.h"

#include <array>

#include <boost/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "platform/fs/file_lock.h"
#include "platform/fs/fs.h"

namespace expanse::control_plane {
namespace {

namespace json = boost::json;

constexpr size_t kPepperBytes = 32;
constexpr int64_t kKeepOldKeyMs = 86'400'000;
constexpr mode_t kMode = 0600;

Error Damaged(const std::string& path, std::string_view why) {
  return Error(Code::kDataLoss, path + " is damaged (" + std::string(why) +
                                    "); restore it from the backup that belongs to control.db");
}

std::string TextOf(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  if (v == nullptr || !v->is_string()) return "";
  return {v->as_string().data(), v->as_string().size()};
}

}  // namespace

ServerKeys::ServerKeys(std::string path, std::string issuer, Secret pepper, Millis lifetime,
                       const platform::Clock& clock)
    : path_(std::move(path)),
      issuer_(std::move(issuer)),
      pepper_(pepper),
      hasher_(std::move(pepper)),
      lifetime_(lifetime),
      clock_(clock) {}

Result<std::unique_ptr<ServerKeys>> ServerKeys::Open(const std::string& path, bool may_create,
                                                     Millis signing_key_lifetime,
                                                     const platform::Clock& clock,
                                                     platform::Random& random) {
  // Held while the file is made, so that a server and a command that start together agree on it.
  EXPANSE_TRY(const auto lock, platform::FileLock::Wait(path + ".lock"));
  if (platform::Fs().Exists(path)) return Read(path, signing_key_lifetime, clock);
  if (!may_create)
    return Error(Code::kFailedPrecondition,
                 path +
                     " is missing but the database holds credentials hashed with it; restore it "
                     "from backup (without it every key and credential is void)");
  std::array<uint8_t, kPepperBytes> pepper{};
  random.Fill(pepper);
  std::unique_ptr<ServerKeys> keys(new ServerKeys(
      path, platform::NewUuid(clock, random),
      Secret(std::string(reinterpret_cast<const char*>(pepper.data()), pepper.size())),
      signing_key_lifetime, clock));
  EXPANSE_CHECK_OK(keys->CurrentSigningKey());  // makes the first and writes the file
  return keys;
}

Result<std::unique_ptr<ServerKeys>> ServerKeys::Read(const std::string& path, Millis lifetime,
                                                     const platform::Clock& clock) {
  EXPANSE_TRY(const auto info, platform::Fs().Stat(path));
  if ((info.mode & 0077) != 0)
    return Error(Code::kFailedPrecondition,
                 path + " can be read by others; chmod 600 it, and make new keys if they did");
  EXPANSE_TRY(const std::string text, platform::Fs().Read(path, 1 << 20));
  boost::system::error_code ec;
  const json::value v = json::parse(text, ec);
  if (ec || !v.is_object()) return Damaged(path, "no JSON object");
  const json::object& o = v.as_object();
  const auto pepper = Base64UrlDecode(TextOf(o, "pepper"));
  const std::string issuer = TextOf(o, "issuer");
  const json::value* list = o.if_contains("signing_keys");
  if (!pepper || pepper->size() != kPepperBytes) return Damaged(path, "pepper");
  if (issuer.empty()) return Damaged(path, "issuer");
  if (list == nullptr || !list->is_array() || list->as_array().empty())
    return Damaged(path, "signing_keys");
  std::unique_ptr<ServerKeys> keys(new ServerKeys(path, issuer, Secret(*pepper), lifetime, clock));
  for (const json::value& entry : list->as_array()) {
    const json::object* dated = entry.if_object();
    const json::value* jwk = dated == nullptr ? nullptr : dated->if_contains("jwk");
    const json::value* at = dated == nullptr ? nullptr : dated->if_contains("created_at_ms");
    if (jwk == nullptr || at == nullptr || !at->is_int64()) return Damaged(path, "a signing key");
    auto key = auth::SigningKey::FromJwk(Secret(json::serialize(*jwk)));
    if (!key.ok()) return Damaged(path, key.error().message());
    keys->keys_.push_back({std::move(key).value(), at->as_int64()});
  }
  const std::lock_guard lock(keys->mutex_);
  EXPANSE_CHECK_OK(keys->PublishLocked());
  return keys;
}

Status ServerKeys::WriteLocked() const {
  std::string text = R"({"issuer":")" + issuer_ + R"(","pepper":")" +
                     Base64UrlEncode(pepper_.Reveal()) + R"(","signing_keys":[)";
  for (size_t i = 0; i < keys_.size(); ++i)
    text += (i == 0 ? "" : ",") + std::string(R"({"created_at_ms":)") +
            std::to_string(keys_[i].created_at_ms) + R"(,"jwk":)" + keys_[i].key.jwk().Reveal() +
            "}";
  return platform::Fs().WriteAtomic(path_, text + "]}\n", kMode);
}

Result<auth::SigningKey> ServerKeys::CurrentSigningKey() {
  const std::lock_guard lock(mutex_);
  const int64_t now = ToUnixMillis(clock_.Now());
  if (keys_.empty() || now - keys_.back().created_at_ms >= lifetime_.count()) {
    EXPANSE_TRY(auth::SigningKey fresh, auth::SigningKey::Generate());
    const std::vector<DatedKey> before = keys_;
    // A key is kept for a day after its successor took over.
    while (keys_.size() > 1 && now - keys_[1].created_at_ms >= kKeepOldKeyMs)
      keys_.erase(keys_.begin());
    keys_.push_back({std::move(fresh), now});
    const Status written = WriteLocked();
    if (!written.ok()) {
      // A key that is not on disk would sign sessions that a restart no longer knows.
      keys_ = before;
      if (keys_.empty()) return written.error();
      log::Error("control.signing_key_not_replaced", {{"error", written.error().message()}});
    } else {
      EXPANSE_CHECK_OK(PublishLocked());
      log::Info("control.signing_key_made", {{"kid", keys_.back().key.kid()}});
    }
  }
  return keys_.back().key;
}

Status ServerKeys::PublishLocked() {
  std::vector<std::string> jwks;
  for (const auto& k : keys_) jwks.push_back(k.key.public_jwk());
  std::string text = auth::KeySet::ToJwks(issuer_, jwks);
  EXPANSE_TRY(auth::KeySet set, auth::KeySet::FromJwks(text));
  jwks_ = std::move(text);
  key_set_ = std::make_shared<const auth::KeySet>(std::move(set));
  return {};
}

std::string ServerKeys::Jwks() const {
  const std::lock_guard lock(mutex_);
  return jwks_;
}

std::shared_ptr<const auth::KeySet> ServerKeys::Keys() const {
  const std::lock_guard lock(mutex_);
  return key_set_;
}

}  // namespace expanse::control_plane
