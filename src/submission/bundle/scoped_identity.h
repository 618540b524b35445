// SPDX-License-Identifier: Apache-2.0
// File access with another user's rights for as long as the object lives, on this thread only.
#pragma once

#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "submission/bundle/bundle.h"

namespace expanse::submission {

class ScopedIdentity {
 public:
  /// Needs root. kPermissionDenied when the kernel does not grant it.
  static Result<ScopedIdentity> Assume(const FileIdentity& identity);
  ~ScopedIdentity();
  ScopedIdentity(ScopedIdentity&& other) noexcept;
  ScopedIdentity& operator=(ScopedIdentity&&) = delete;
  ScopedIdentity(const ScopedIdentity&) = delete;
  ScopedIdentity& operator=(const ScopedIdentity&) = delete;

 private:
  ScopedIdentity() = default;
  bool active_ = false;
  uid_t old_uid_ = 0;
  gid_t old_gid_ = 0;
  std::vector<gid_t> old_groups_;
};

}  // namespace expanse::submission
