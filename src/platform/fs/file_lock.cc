// SPDX-License-Identifier: Apache-2.0
#include "platform/fs/file_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace expanse::platform {

Result<std::unique_ptr<FileLock>> FileLock::Lock(const std::string& path, int operation) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return Error(errno == EACCES ? Code::kPermissionDenied : Code::kFailedPrecondition,
                 "open lock " + path + ": " + std::strerror(errno));
  std::unique_ptr<FileLock> lock(new FileLock(fd));
  int rc = 0;
  do {
    rc = ::flock(fd, operation);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0)
    return Error(Code::kFailedPrecondition, errno == EWOULDBLOCK
                                                ? "another process holds " + path
                                                : "lock " + path + ": " + std::strerror(errno));
  return lock;
}

Result<std::unique_ptr<FileLock>> FileLock::Wait(const std::string& path) {
  return Lock(path, LOCK_EX);
}
Result<std::unique_ptr<FileLock>> FileLock::Try(const std::string& path) {
  return Lock(path, LOCK_EX | LOCK_NB);
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace expanse::platform
