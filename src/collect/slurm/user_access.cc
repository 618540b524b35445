// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/user_access.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace expanse::collect::slurm {
namespace {

/// Closes the descriptor it holds.
struct OpenFile {
  int fd = -1;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

Error SystemError(const std::string& what, int error) {
  const Code code = error == ENOENT                     ? Code::kNotFound
                    : error == EACCES || error == EPERM ? Code::kPermissionDenied
                                                        : Code::kUnavailable;
  return Error(code, what + ": " + std::strerror(error));
}

}  // namespace

Result<UserAccess> UserAccess::Of(const std::string& user) {
  std::string buffer(16'384, '\0');
  passwd entry{};
  passwd* found = nullptr;
  const int rc = getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr)
    return rc == 0 ? Error(Code::kNotFound, "this host knows no user " + user)
                   : SystemError("getpwnam " + user, rc);
  UserAccess out;
  out.uid = entry.pw_uid;
  out.gid = entry.pw_gid;
  out.home = entry.pw_dir;
  int count = 256;
  out.gids.resize(static_cast<size_t>(count));
  if (getgrouplist(user.c_str(), entry.pw_gid, out.gids.data(), &count) < 0) {
    out.gids.resize(static_cast<size_t>(count));
    if (getgrouplist(user.c_str(), entry.pw_gid, out.gids.data(), &count) < 0) count = 0;
  }
  out.gids.resize(static_cast<size_t>(count));
  if (out.gids.empty()) out.gids.push_back(entry.pw_gid);
  return out;
}

bool UserAccess::Has(const platform::FileInfo& info, mode_t bit) const {
  if (uid == 0) return true;
  if (info.uid == uid) return (info.mode & (bit << 6)) != 0;
  if (std::find(gids.begin(), gids.end(), info.gid) != gids.end())
    return (info.mode & (bit << 3)) != 0;
  return (info.mode & bit) != 0;
}

bool UserAccess::MayRead(const platform::Fs& fs, const std::string& path) const {
  if (!path.starts_with('/')) return false;
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const auto info = fs.LStat(path.substr(0, slash));
    if (!info.ok() || !info->is_directory || !Has(*info, 01)) return false;
  }
  const auto info = fs.LStat(path);
  return info.ok() && !info->is_symlink && Has(*info, 04);
}

std::optional<submission::ScopedIdentity> UserAccess::Assume() const {
  if (geteuid() != 0) return std::nullopt;
  auto identity = submission::ScopedIdentity::Assume({uid, gid, gids});
  if (!identity.ok()) return std::nullopt;
  return std::move(*identity);
}

Result<platform::Fs::Tail> ReadTailAs(const UserAccess& user, const platform::Fs& fs,
                                      const std::string& path, size_t max_bytes) {
  const Error refused(Code::kPermissionDenied, "the job's user may not read " + path);
  // As root: with the user's rights, which decide, also where root has none (root_squash).
  const auto identity = user.Assume();
  const auto real = fs.RealPath(path);
  if (!real.ok()) return real.error().code() == Code::kPermissionDenied ? refused : real.error();
  // The canonical path has no symlink; one put there meanwhile is refused by O_NOFOLLOW, and what
  // was opened is compared with what had its permissions looked at.
  OpenFile file;
  file.fd = open(fs.Host(*real).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file.fd < 0) return errno == EACCES ? refused : SystemError("open " + path, errno);
  struct stat opened {};
  if (fstat(file.fd, &opened) != 0) return SystemError("stat " + path, errno);
  if (!S_ISREG(opened.st_mode))
    return Error(Code::kFailedPrecondition, path + " is no regular file");
  if (!identity) {
    struct stat checked {};
    if (lstat(fs.Host(*real).c_str(), &checked) != 0) return SystemError("stat " + path, errno);
    if (checked.st_ino != opened.st_ino || checked.st_dev != opened.st_dev ||
        !user.MayRead(fs, *real))
      return refused;
  }
  platform::Fs::Tail tail;
  tail.total = opened.st_size;
  tail.offset = std::max<int64_t>(0, tail.total - static_cast<int64_t>(max_bytes));
  tail.bytes.resize(static_cast<size_t>(tail.total - tail.offset));
  size_t got = 0;
  while (got < tail.bytes.size()) {
    const ssize_t n = pread(file.fd, tail.bytes.data() + got, tail.bytes.size() - got,
                            tail.offset + static_cast<int64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read " + path, errno);
    if (n == 0) break;  // truncated meanwhile
    got += static_cast<size_t>(n);
  }
  tail.bytes.resize(got);
  return tail;
}

}  // namespace expanse::collect::slurm
