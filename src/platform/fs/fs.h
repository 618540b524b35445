// SPDX-License-Identifier: Apache-2.0
// The file system below a root. Readers of /proc, /sys and /etc take an Fs, so that they run
// unchanged on a recorded tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace expanse::platform {

struct FileInfo {
  uint64_t inode = 0;
  int64_t size = 0;
  mode_t mode = 0;  // type and permission bits
  uid_t uid = 0;
  gid_t gid = 0;
  int64_t mtime_ms = 0;
  bool is_directory = false;
  bool is_regular = false;
  bool is_symlink = false;
};

/// Paths are absolute below the root ("/proc/meminfo"). Errors name path and errno text.
class Fs {
 public:
  /// root "" is the real file system.
  explicit Fs(std::string root = "") : root_(std::move(root)) {}

  /// The whole file; kResourceExhausted when it is larger than max_bytes (checked while reading,
  /// so that files of /proc, which state size 0, are bounded too).
  Result<std::string> Read(const std::string& path, size_t max_bytes = 64 << 20) const;
  /// The last max_bytes of a file, with its total size.
  struct Tail {
    std::string bytes;
    int64_t offset = 0;
    int64_t total = 0;
  };
  Result<Tail> ReadTail(const std::string& path, size_t max_bytes) const;
  /// Names, sorted, without "." and "..".
  Result<std::vector<std::string>> List(const std::string& path) const;
  Result<FileInfo> Stat(const std::string& path) const;   // follows symlinks
  Result<FileInfo> LStat(const std::string& path) const;  // does not
  bool Exists(const std::string& path) const { return Stat(path).ok(); }
  /// Canonical absolute path below the root; kFailedPrecondition on a symlink loop.
  Result<std::string> RealPath(const std::string& path) const;

  /// Write to a temporary beside it, fsync, rename, fsync the directory. A crash leaves the old
  /// or the new file. Keeps the owner and mode of an existing file when keep_attributes.
  Status WriteAtomic(const std::string& path, std::string_view bytes, mode_t mode,
                     bool keep_attributes = false) const;
  Status MakeDirs(const std::string& path, mode_t mode = 0755) const;
  Status Remove(const std::string& path) const;  // one file; ok when it is not there
  Status RemoveTree(const std::string& path) const;
  Status Rename(const std::string& from, const std::string& to) const;
  Status Chmod(const std::string& path, mode_t mode) const;
  Status Chown(const std::string& path, uid_t uid, gid_t gid) const;

  /// The path the kernel sees.
  std::string Host(const std::string& path) const { return root_ + path; }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

/// "a/b" + "c" -> "a/b/c".
std::string JoinPath(std::string_view a, std::string_view b);
std::string BaseName(std::string_view path);
std::string DirName(std::string_view path);
/// Removes "." and "x/.." by text only.
std::string NormalizePath(std::string_view path);

/// A directory that is removed with its content at the end (tests, staging).
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace expanse::platform
