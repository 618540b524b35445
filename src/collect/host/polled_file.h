// SPDX-License-Identifier: Apache-2.0
// Files of cgroups that are read every second: kept open and read again from their start, because
// opening one costs more than reading it. A file of a cgroup that was removed says ENODEV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/fs/fs.h"

namespace expanse::collect::host {

class FilePool;

/// One such file; closed with its cgroup.
class PolledFile {
 public:
  PolledFile() = default;
  ~PolledFile() { Close(); }
  PolledFile(PolledFile&& other) noexcept { *this = std::move(other); }
  PolledFile& operator=(PolledFile&& other) noexcept;
  PolledFile(const PolledFile&) = delete;
  PolledFile& operator=(const PolledFile&) = delete;

 private:
  friend class FilePool;
  void Close();
  FilePool* pool_ = nullptr;
  int fd_ = -1;
  int misses_ = 0;  // times it was not there
};

/// Reads them. Keeps at most max_open open; the others are opened for each reading.
class FilePool {
 public:
  /// max_open 0: half of what this process may open (RLIMIT_NOFILE).
  explicit FilePool(const platform::Fs& fs, size_t max_open = 0);
  FilePool(const FilePool&) = delete;
  FilePool& operator=(const FilePool&) = delete;

  /// The text of directory/name, at most 64 KiB of it; valid until the next call. Nothing when the
  /// file is not there. After some such times it is not asked for again: SLURM makes a cgroup below
  /// one controller after the other, but its files all at once.
  std::optional<std::string_view> Read(PolledFile* file, const std::string& directory,
                                       const char* name);
  /// The same as one number; nothing for "max" and other texts.
  std::optional<int64_t> ReadCount(PolledFile* file, const std::string& directory,
                                   const char* name);
  /// True once after a file that was open turned out to belong to a removed cgroup.
  bool TakeGone();
  size_t open() const { return open_; }

 private:
  friend class PolledFile;
  const platform::Fs& fs_;
  size_t max_open_;
  size_t open_ = 0;
  bool gone_ = false;
  std::string buffer_;
  std::string path_;
};

}  // namespace expanse::collect::host
