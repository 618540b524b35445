// SPDX-License-Identifier: Apache-2.0
// Ownership of cjose objects. Included only by the .cc files of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <cjose/cjose.h>

#include "base/result.h"

namespace expanse::auth::jose_internal {

struct JwkRelease {
  void operator()(cjose_jwk_t* p) const { cjose_jwk_release(p); }
};
struct JwsRelease {
  void operator()(cjose_jws_t* p) const { cjose_jws_release(p); }
};
struct HeaderRelease {
  void operator()(cjose_header_t* p) const { cjose_header_release(p); }
};
using Jwk = std::unique_ptr<cjose_jwk_t, JwkRelease>;
using Jws = std::unique_ptr<cjose_jws_t, JwsRelease>;
using Header = std::unique_ptr<cjose_header_t, HeaderRelease>;

/// A P-256 key, public or private. cjose keeps state without locks in the key it returns, so a
/// key is imported for each use and never shared between threads.
Result<Jwk> ImportP256(std::string_view json);

inline Error CjoseError(Code code, std::string_view what, const cjose_err& err) {
  return Error(code, std::string(what) + ": " + (err.message != nullptr ? err.message : "unknown"));
}

}  // namespace expanse::auth::jose_internal
