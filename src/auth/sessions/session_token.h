// SPDX-License-Identifier: Apache-2.0
// The short-lived signed token that every plane accepts from a person.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/jose/jws.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "rpc/call_context.h"

namespace expanse::auth {

/// "typ" of the JWS header: a token made for another use is none for this one (RFC 8725, 3.11).
inline constexpr std::string_view kSessionTokenType = "expanse-session+jwt";
/// How far the clocks of two planes may be apart.
inline constexpr Seconds kClockLeeway{60};

/// Claims: sub, org, org_name, email, name, role, perms, teams, iss, iat, exp.
struct SessionClaims {
  std::string issuer;  // the deployment, as in its key set
  UserId user;
  OrgId organisation;
  std::string organisation_name;
  std::string email;
  std::string name;
  std::string role;
  std::vector<std::string> permissions;
  std::vector<std::string> teams;  // team ids
  WallTime issued_at;              // whole seconds on the wire
  WallTime expires_at;
};

Result<std::string> SignSessionToken(const SessionClaims& claims, const SigningKey& key);

/// Every failure is kUnauthenticated and says which check failed: malformed, wrong type or
/// algorithm, key id not in the set, signature, issuer, not yet valid, expired.
Result<SessionClaims> VerifySessionToken(std::string_view token, const KeySet& keys, WallTime now);

/// The claims of a payload whose signature was verified; checks their form, not the times.
Result<SessionClaims> ParseSessionClaims(std::string_view payload);

rpc::Caller CallerOf(const SessionClaims& claims, std::string_view bearer);

}  // namespace expanse::auth
