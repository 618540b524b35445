// SPDX-License-Identifier: Apache-2.0
// An advisory lock on a file (flock(2)) that ends with the process however it ends.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace expanse::platform {

class FileLock {
 public:
  /// Makes the file (0600) when it is absent; it is left behind.
  static Result<std::unique_ptr<FileLock>> Wait(const std::string& path);
  /// kFailedPrecondition when another process holds it.
  static Result<std::unique_ptr<FileLock>> Try(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  static Result<std::unique_ptr<FileLock>> Lock(const std::string& path, int operation);
  int fd_;
};

}  // namespace expanse::platform
