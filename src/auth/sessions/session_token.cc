// SPDX-License-Identifier: Apache-2.0
#include "auth/sessions/session_token.h"

#include <optional>

#include <boost/json.hpp>

#include "base/strings.h"

namespace expanse::auth {
namespace {

namespace json = boost::json;

constexpr size_t kMaxListEntries = 1024;
constexpr int64_t kLastSecond = 253'402'300'799;  // 9999-12-31T23:59:59Z

Error Bad(std::string_view claim, std::string_view why) {
  return Error(Code::kUnauthenticated,
               "malformed token: claim " + std::string(claim) + " " + std::string(why));
}

Result<std::string> TextClaim(const json::object& claims, const char* name) {
  const json::value* v = claims.if_contains(name);
  if (v == nullptr) return Bad(name, "is missing");
  if (!v->is_string()) return Bad(name, "is no string");
  std::string out(v->as_string().data(), v->as_string().size());
  if (!IsUtf8(out)) return Bad(name, "is not UTF-8");
  return out;
}

Result<std::string> IdClaim(const json::object& claims, const char* name) {
  EXPANSE_TRY(std::string text, TextClaim(claims, name));
  if (!IsUuid(text)) return Bad(name, "is no id");
  return text;
}

Result<std::vector<std::string>> ListClaim(const json::object& claims, const char* name) {
  const json::value* v = claims.if_contains(name);
  if (v == nullptr) return Bad(name, "is missing");
  if (!v->is_array()) return Bad(name, "is no array");
  if (v->as_array().size() > kMaxListEntries) return Bad(name, "has too many entries");
  std::vector<std::string> out;
  for (const json::value& entry : v->as_array()) {
    if (!entry.is_string()) return Bad(name, "holds something that is no string");
    out.emplace_back(entry.as_string().data(), entry.as_string().size());
    if (!IsUtf8(out.back())) return Bad(name, "is not UTF-8");
  }
  return out;
}

/// NumericDate of RFC 7519 section 2, whole seconds.
Result<WallTime> TimeClaim(const json::object& claims, const char* name) {
  const json::value* v = claims.if_contains(name);
  if (v == nullptr) return Bad(name, "is missing");
  if (!v->is_int64()) return Bad(name, "is no whole number of seconds");
  if (v->as_int64() < 0 || v->as_int64() > kLastSecond) return Bad(name, "is out of range");
  return FromUnixMillis(v->as_int64() * 1000);
}

int64_t UnixSeconds(WallTime t) { return ToUnixMillis(t) / 1000; }

json::array ToArray(const std::vector<std::string>& texts) {
  json::array out;
  for (const auto& t : texts) out.emplace_back(t);
  return out;
}

}  // namespace

Result<std::string> SignSessionToken(const SessionClaims& claims, const SigningKey& key) {
  json::object o;
  o["iss"] = claims.issuer;
  o["sub"] = claims.user.str();
  o["org"] = claims.organisation.str();
  o["org_name"] = claims.organisation_name;
  o["email"] = claims.email;
  o["name"] = claims.name;
  o["role"] = claims.role;
  o["perms"] = ToArray(claims.permissions);
  o["teams"] = ToArray(claims.teams);
  o["iat"] = UnixSeconds(claims.issued_at);
  o["exp"] = UnixSeconds(claims.expires_at);
  EXPANSE_TRY(std::string token, SignJws(key, kSessionTokenType, json::serialize(o)));
  if (token.size() > kMaxTokenBytes)
    return Error(Code::kResourceExhausted,
                 "the session token would be longer than 16 KiB: the user is in too many teams");
  return token;
}

Result<SessionClaims> ParseSessionClaims(std::string_view payload) {
  json::parse_options options;
  options.max_depth = 4;
  boost::system::error_code ec;
  const json::value v = json::parse({payload.data(), payload.size()}, ec, {}, options);
  if (ec || !v.is_object())
    return Error(Code::kUnauthenticated, "malformed token: the claims are no JSON object");
  const json::object& o = v.as_object();
  SessionClaims out;
  EXPANSE_TRY(out.issuer, TextClaim(o, "iss"));
  EXPANSE_TRY(std::string user, IdClaim(o, "sub"));
  EXPANSE_TRY(std::string organisation, IdClaim(o, "org"));
  out.user = UserId(std::move(user));
  out.organisation = OrgId(std::move(organisation));
  EXPANSE_TRY(out.organisation_name, TextClaim(o, "org_name"));
  EXPANSE_TRY(out.email, TextClaim(o, "email"));
  EXPANSE_TRY(out.name, TextClaim(o, "name"));
  EXPANSE_TRY(out.role, TextClaim(o, "role"));
  EXPANSE_TRY(out.permissions, ListClaim(o, "perms"));
  EXPANSE_TRY(out.teams, ListClaim(o, "teams"));
  EXPANSE_TRY(out.issued_at, TimeClaim(o, "iat"));
  EXPANSE_TRY(out.expires_at, TimeClaim(o, "exp"));
  return out;
}

Result<SessionClaims> VerifySessionToken(std::string_view token, const KeySet& keys, WallTime now) {
  EXPANSE_TRY(const JwsHeader header, ParseJwsHeader(token));
  if (header.type != kSessionTokenType)
    return Error(Code::kUnauthenticated, "the token is no session token");
  const std::string* key = keys.Find(header.kid);
  if (key == nullptr)
    return Error(Code::kUnauthenticated,
                 "the token is signed by a key that this deployment does not have; sign in again");
  EXPANSE_TRY(const std::string payload, VerifyJws(token, *key));
  EXPANSE_TRY(SessionClaims claims, ParseSessionClaims(payload));
  if (!keys.issuer().empty() && claims.issuer != keys.issuer())
    return Error(Code::kUnauthenticated, "the token was issued by another deployment");
  if (claims.issued_at > now + kClockLeeway)
    return Error(Code::kUnauthenticated, "the token is not valid before " +
                                             FormatRfc3339(claims.issued_at) +
                                             "; are the clocks of the planes set?");
  if (claims.expires_at + kClockLeeway <= now)
    return Error(Code::kUnauthenticated, "the session token expired at " +
                                             FormatRfc3339(claims.expires_at) +
                                             "; refresh the session");
  return claims;
}

rpc::Caller CallerOf(const SessionClaims& claims, std::string_view bearer) {
  rpc::Caller caller;
  caller.kind = rpc::CallerKind::kUser;
  caller.org = claims.organisation;
  caller.user = claims.user;
  caller.email = claims.email;
  caller.permissions = claims.permissions;
  caller.team_ids = claims.teams;
  caller.bearer = std::string(bearer);
  return caller;
}

}  // namespace expanse::auth
