// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "auth/jose/cjose_handles.h"
#include "auth/jose/jws.h"
#include "base/strings.h"
#include "platform/crypto/crypto.h"

namespace expanse::auth {
namespace {

namespace json = boost::json;
using jose_internal::CjoseError;
using jose_internal::Jwk;

constexpr size_t kMaxJwksBytes = 256 << 10;
constexpr size_t kP256Bits = 256;

Result<json::object> ParseObject(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = 8;
  boost::system::error_code ec;
  json::value v = json::parse({text.data(), text.size()}, ec, {}, options);
  if (ec || !v.is_object())
    return Error(Code::kInvalidArgument, std::string(what) + " is no JSON object");
  return std::move(v.as_object());
}

std::string StringMember(const json::object& object, std::string_view name) {
  const json::value* v = object.if_contains({name.data(), name.size()});
  if (v == nullptr || !v->is_string()) return "";
  return {v->as_string().data(), v->as_string().size()};
}

/// RFC 7638 section 3: required members of an EC key in lexicographic order, no white space.
std::string Thumbprint(const json::object& jwk) {
  const std::string canonical = R"({"crv":"P-256","kty":"EC","x":")" + StringMember(jwk, "x") +
                                R"(","y":")" + StringMember(jwk, "y") + R"("})";
  return Base64UrlEncode(platform::Sha256(canonical));
}

std::string PublicJwk(const json::object& jwk, const std::string& kid) {
  json::object out;
  for (const char* name : {"kty", "crv", "x", "y"}) out[name] = StringMember(jwk, name);
  out["kid"] = kid;
  out["use"] = "sig";
  out["alg"] = "ES256";
  return json::serialize(out);
}

}  // namespace

namespace jose_internal {

Result<Jwk> ImportP256(std::string_view text) {
  cjose_err err{};
  Jwk key(cjose_jwk_import(text.data(), text.size(), &err));
  if (!key) return CjoseError(Code::kInvalidArgument, "reading a JSON Web Key", err);
  if (cjose_jwk_get_kty(key.get(), &err) != CJOSE_JWK_KTY_EC ||
      cjose_jwk_get_keysize(key.get(), &err) != kP256Bits)
    return Error(Code::kInvalidArgument, "the JSON Web Key is no P-256 key");
  return key;
}

}  // namespace jose_internal

Result<SigningKey> SigningKey::Generate() {
  cjose_err err{};
  Jwk key(cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, &err));
  if (!key) return CjoseError(Code::kInternal, "generating a signing key", err);
  char* text = cjose_jwk_to_json(key.get(), /*priv=*/true, &err);
  if (text == nullptr) return CjoseError(Code::kInternal, "writing a signing key", err);
  const Secret jwk{std::string(text)};
  cjose_get_dealloc()(text);
  return FromJwk(jwk);
}

Result<SigningKey> SigningKey::FromJwk(const Secret& jwk) {
  EXPANSE_TRY(const json::object object, ParseObject(jwk.Reveal(), "signing key"));
  if (StringMember(object, "d").empty())
    return Error(Code::kInvalidArgument, "the signing key has no private part");
  SigningKey out;
  out.kid_ = Thumbprint(object);
  out.jwk_ = jwk;
  out.public_jwk_ = PublicJwk(object, out.kid_);
  // cjose does not check that "d" belongs to the point: one signature tells.
  const auto signed_text = SignJws(out, "test", "{}");
  if (!signed_text.ok() || !VerifyJws(*signed_text, out.public_jwk_).ok())
    return Error(Code::kInvalidArgument, "the signing key is no consistent P-256 key pair");
  return out;
}

Result<KeySet> KeySet::FromJwks(std::string_view text) {
  if (text.size() > kMaxJwksBytes)
    return Error(Code::kInvalidArgument, "key set of more than 256 KiB");
  EXPANSE_TRY(const json::object object, ParseObject(text, "key set"));
  const json::value* keys = object.if_contains("keys");
  if (keys == nullptr || !keys->is_array())
    return Error(Code::kInvalidArgument, "key set without the array \"keys\"");
  KeySet out;
  out.issuer_ = StringMember(object, "issuer");
  for (const json::value& entry : keys->as_array()) {
    if (!entry.is_object()) continue;
    const json::object& jwk = entry.as_object();
    if (jwk.contains("d"))
      return Error(Code::kInvalidArgument, "key set holds a private key; it must be replaced");
    const std::string kid = StringMember(jwk, "kid");
    const std::string use = StringMember(jwk, "use");
    const std::string alg = StringMember(jwk, "alg");
    if (kid.empty() || (!use.empty() && use != "sig") || (!alg.empty() && alg != "ES256")) continue;
    const std::string one = json::serialize(jwk);
    if (jose_internal::ImportP256(one).ok()) out.keys_.emplace(kid, one);
  }
  return out;
}

std::string KeySet::ToJwks(std::string_view issuer, const std::vector<std::string>& public_jwks) {
  std::string out = R"({"issuer":)" +
                    json::serialize(json::string_view(issuer.data(), issuer.size())) +
                    R"(,"keys":[)";
  for (size_t i = 0; i < public_jwks.size(); ++i) out += (i == 0 ? "" : ",") + public_jwks[i];
  return out + "]}";
}

const std::string* KeySet::Find(std::string_view kid) const {
  const auto it = keys_.find(kid);
  return it == keys_.end() ? nullptr : &it->second;
}

}  // namespace expanse::auth
