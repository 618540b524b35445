// SPDX-License-Identifier: Apache-2.0
#include "submission/bundle/scoped_identity.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace expanse::submission {
namespace {

// glibc's setgroups changes every thread of the process; the system call only the calling one.
int SetThreadGroups(const std::vector<gid_t>& groups) {
  return static_cast<int>(::syscall(SYS_setgroups, groups.size(), groups.data()));
}

}  // namespace

Result<ScopedIdentity> ScopedIdentity::Assume(const FileIdentity& identity) {
  ScopedIdentity scope;
  const int count = ::getgroups(0, nullptr);
  scope.old_groups_.resize(static_cast<size_t>(count < 0 ? 0 : count));
  if (count > 0 && ::getgroups(count, scope.old_groups_.data()) < 0) {
    return Error(Code::kPermissionDenied, fmt::format("getgroups: {}", std::strerror(errno)));
  }
  if (SetThreadGroups(identity.groups) != 0) {
    return Error(Code::kPermissionDenied,
                 fmt::format("reading with the rights of uid {}: setgroups: {}", identity.uid,
                             std::strerror(errno)));
  }
  scope.active_ = true;
  scope.old_gid_ = static_cast<gid_t>(::setfsgid(identity.gid));
  // From root to another uid the kernel drops CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH as well.
  scope.old_uid_ = static_cast<uid_t>(::setfsuid(identity.uid));
  // The calls report no error: asking again with an invalid id returns what is in effect.
  if (static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) != identity.uid ||
      static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) != identity.gid) {
    return Error(
        Code::kPermissionDenied,
        fmt::format("reading with the rights of uid {}: refused by the kernel", identity.uid));
  }
  return scope;
}

ScopedIdentity::ScopedIdentity(ScopedIdentity&& other) noexcept
    : active_(std::exchange(other.active_, false)),
      old_uid_(other.old_uid_),
      old_gid_(other.old_gid_),
      old_groups_(std::move(other.old_groups_)) {}

ScopedIdentity::~ScopedIdentity() {
  if (!active_) return;
  ::setfsuid(old_uid_);
  ::setfsgid(old_gid_);
  SetThreadGroups(old_groups_);
}

}  // namespace expanse::submission
