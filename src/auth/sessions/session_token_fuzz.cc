// SPDX-License-Identifier: Apache-2.0
// Any bytes as a session token: never a crash, and never accepted, since no key signed them.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "auth/sessions/session_token.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using expanse::auth::KeySet;
  // The key id "k" of the corpus is known, so that inputs reach the signature check.
  static const KeySet keys =
      KeySet::FromJwks(R"({"keys":[{"kty":"EC","crv":"P-256","kid":"k",)"
                       R"("x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                       R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})")
          .value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto now = expanse::FromUnixMillis(1'700'000'000'000);
  if (expanse::auth::VerifySessionToken(text, keys, now).ok()) std::abort();
  // The claims parser sees verified bytes only; it is fuzzed without a signature in its way.
  (void)expanse::auth::ParseSessionClaims(text);
  (void)KeySet::FromJwks(text);
  return 0;
}
