// SPDX-License-Identifier: Apache-2.0
// Names and small files of a spool directory, shared by its writer and its reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::collect {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { Reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset(int fd = -1);

 private:
  int fd_;
};

struct SegmentFile {
  uint64_t first_sequence = 0;
  int64_t size = 0;
  uint64_t inode = 0;
  bool open = false;  // still written (or its writer died)
  std::string path;
};
/// "00000000000000000001.open" or ".seg".
std::string SegmentName(uint64_t first_sequence, bool open);
/// Segments in order. Other files are ignored. An absent directory has none.
Result<std::vector<SegmentFile>> ListSegments(const std::string& directory);

/// The file `state`, by the writer: survives the deletion of every segment.
struct WriterState {
  std::string source_id;
  uint64_t next_sequence = 1;
  uint64_t dropped_records = 0;
};
/// Nothing when the bytes are damaged: they end with their own CRC-32C, or are of version 0.1,
/// which had none.
std::optional<WriterState> ParseWriterState(std::string_view text);
std::string EncodeWriterState(const WriterState& state);
/// Nothing when it is absent or damaged; damage is logged.
std::optional<WriterState> ReadWriterState(const std::string& directory);
Status WriteWriterState(const std::string& directory, const WriterState& state);

/// The file `cursor`, by the reader.
struct ReaderCursor {
  std::string source_id;
  uint64_t acknowledged = 0;
};
std::optional<ReaderCursor> ParseCursor(std::string_view text);
std::string EncodeCursor(const ReaderCursor& cursor);
std::optional<ReaderCursor> ReadCursor(const std::string& directory);
Status WriteCursor(const std::string& directory, const ReaderCursor& cursor);

/// Makes new names and renames in the directory durable.
Status SyncSpoolDirectory(const std::string& directory);

/// "what PATH: errno text" with the code that fits errno.
Error ErrnoError(const std::string& what, const std::string& path, int error);

}  // namespace expanse::collect
