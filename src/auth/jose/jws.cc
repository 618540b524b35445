// SPDX-License-Identifier: Apache-2.0
#include "auth/jose/jws.h"

#include <algorithm>
#include <array>

#include <boost/json.hpp>

#include "auth/jose/cjose_handles.h"
#include "base/strings.h"

namespace expanse::auth {
namespace {

namespace json = boost::json;
using jose_internal::CjoseError;
using jose_internal::Header;
using jose_internal::Jwk;
using jose_internal::Jws;

constexpr size_t kMaxHeaderBytes = 2 << 10;
constexpr size_t kSignatureBytes = 64;

Error Malformed(std::string_view why) {
  return Error(Code::kUnauthenticated, "malformed token: " + std::string(why));
}

/// One text for one sequence of bytes. cjose's own decoder skips stray characters at the end, so
/// that one signature would have many spellings.
bool IsCanonicalBase64Url(std::string_view part) {
  const auto bytes = Base64UrlDecode(part);
  return bytes && !bytes->empty() && Base64UrlEncode(*bytes) == part;
}

Result<json::object> ParseHeaderObject(std::string_view encoded) {
  if (encoded.size() > kMaxHeaderBytes) return Malformed("header is too long");
  const auto bytes = Base64UrlDecode(encoded);
  if (!bytes) return Malformed("header is not base64url");
  json::parse_options options;
  options.max_depth = 4;
  boost::system::error_code ec;
  json::value v = json::parse({bytes->data(), bytes->size()}, ec, {}, options);
  if (ec || !v.is_object()) return Malformed("header is no JSON object");
  return std::move(v.as_object());
}

/// "" when absent; an error when the member is there and no string.
Result<std::string> HeaderString(const json::object& header, const char* name) {
  const json::value* v = header.if_contains(name);
  if (v == nullptr) return std::string();
  if (!v->is_string()) return Malformed(std::string("header member ") + name + " is no string");
  return std::string(v->as_string().data(), v->as_string().size());
}

}  // namespace

Result<JwsHeader> ParseJwsHeader(std::string_view token) {
  if (token.size() > kMaxTokenBytes) return Malformed("longer than 16 KiB");
  const auto parts = Split(token, '.');
  if (parts.size() != 3) return Malformed("not three parts");
  if (!std::all_of(parts.begin(), parts.end(), IsCanonicalBase64Url))
    return Malformed("a part is not base64url");
  EXPANSE_TRY(const json::object header, ParseHeaderObject(parts[0]));
  EXPANSE_TRY(const std::string alg, HeaderString(header, "alg"));
  if (alg != "ES256")
    return Error(Code::kUnauthenticated, "token signed by algorithm '" +
                                             EscapeForTerminal(alg.substr(0, 20)) +
                                             "'; only ES256 is accepted");
  if (header.contains("crit")) return Malformed("critical header extensions are not known here");
  // R and S of 32 bytes each (RFC 7518 section 3.4); cjose ignores bytes after them.
  if (Base64UrlDecode(parts[2])->size() != kSignatureBytes) return Malformed("signature length");
  JwsHeader out;
  EXPANSE_TRY(out.kid, HeaderString(header, "kid"));
  EXPANSE_TRY(out.type, HeaderString(header, "typ"));
  return out;
}

Result<std::string> SignJws(const SigningKey& key, std::string_view type,
                            std::string_view payload) {
  EXPANSE_TRY(const Jwk jwk, jose_internal::ImportP256(key.jwk().Reveal()));
  cjose_err err{};
  const Header header(cjose_header_new(&err));
  if (!header) return CjoseError(Code::kInternal, "signing a token", err);
  if (!cjose_header_set(header.get(), CJOSE_HDR_ALG, CJOSE_HDR_ALG_ES256, &err) ||
      !cjose_header_set(header.get(), CJOSE_HDR_KID, key.kid().c_str(), &err) ||
      !cjose_header_set(header.get(), "typ", std::string(type).c_str(), &err))
    return CjoseError(Code::kInternal, "signing a token", err);
  const Jws jws(cjose_jws_sign(jwk.get(), header.get(),
                               reinterpret_cast<const uint8_t*>(payload.data()), payload.size(),
                               &err));
  const char* text = nullptr;
  if (!jws || !cjose_jws_export(jws.get(), &text, &err))
    return CjoseError(Code::kInternal, "signing a token", err);
  return std::string(text);
}

Result<std::string> VerifyJws(std::string_view token, std::string_view public_jwk) {
  EXPANSE_CHECK_OK(ParseJwsHeader(token));
  EXPANSE_TRY(const Jwk jwk, jose_internal::ImportP256(public_jwk));
  cjose_err err{};
  const Jws jws(cjose_jws_import(token.data(), token.size(), &err));
  if (!jws) return Malformed(err.message != nullptr ? err.message : "not a JWS");
  // Two JSON readers saw the header; the one that picks the algorithm must agree with ours.
  const char* alg = cjose_header_get(cjose_jws_get_protected(jws.get()), CJOSE_HDR_ALG, &err);
  if (alg == nullptr || std::string_view(alg) != CJOSE_HDR_ALG_ES256)
    return Malformed("ambiguous algorithm");
  if (!cjose_jws_verify(jws.get(), jwk.get(), &err))
    return Error(Code::kUnauthenticated, "the token's signature does not match its key");
  uint8_t* bytes = nullptr;
  size_t size = 0;
  if (!cjose_jws_get_plaintext(jws.get(), &bytes, &size, &err))
    return CjoseError(Code::kInternal, "reading a verified token", err);
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace expanse::auth
