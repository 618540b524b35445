// SPDX-License-Identifier: Apache-2.0
// Files for stores that fsync: positions, short writes and errors by kind. Used inside storage/
// only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace expanse::storage {

/// An open file; closed at the end. Errors name the path: kNotFound, kResourceExhausted (disk,
/// quota or size limit full), kPermissionDenied, else kUnavailable.
class File {
 public:
  File() = default;
  ~File();
  File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept;

  static Result<File> OpenToRead(const std::string& path);
  /// kAlreadyExists when it is there.
  static Result<File> CreateNew(const std::string& path);

  Status Append(std::string_view bytes);
  /// Exactly `size` bytes; kDataLoss when the file ends before them.
  Result<std::string> ReadAt(int64_t offset, int64_t size) const;
  Result<int64_t> Size() const;
  Status Truncate(int64_t size);
  /// fdatasync: content and size are on the disk on return. After an error nothing is known about
  /// what was written since the last success; the file must not be written any more.
  Status Sync();

  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  File(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

/// The Error of a system call on a path, for errno `error`.
Error FileError(std::string_view doing, const std::string& path, int error);
/// Makes new names and renames in the directory durable.
Status SyncDirectory(const std::string& path);
/// Creates the directory and its parents, durably, mode 0700.
Status MakeDirectories(const std::string& path);
/// Renames (replacing) and syncs the directory of the target.
Status PublishFile(const std::string& temporary, const std::string& target);
/// A synced copy; the name becomes durable with SyncDirectory.
Status CopyFile(const std::string& from, const std::string& to);
/// Ok when it is not there.
Status RemoveFile(const std::string& path);

}  // namespace expanse::storage
