// SPDX-License-Identifier: Apache-2.0
// A log file of framed payloads. Each frame is 24 bytes of header and the payload:
//   magic u32, payload length u32, sequence u64, CRC-32C of the payload u32, CRC-32C of the header
//   u32
// Sequences count up from 0 in each file, so that a lost frame is known. A reader that meets damage
// looks for the next whole frame: one flipped bit costs one frame.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/file.h"

namespace expanse::storage {

constexpr size_t kMaxFrameBytes = size_t{64} << 20;

/// Appends frames; not for concurrent use.
class FrameLogWriter {
 public:
  FrameLogWriter() = default;
  /// A new, empty file whose name is durable.
  static Result<FrameLogWriter> Create(const std::string& path);

  /// Adds one frame to what the next Commit writes.
  void Add(std::string_view payload);
  /// Writes and syncs what was added. After an error nothing of it counts as written: what reached
  /// the file is cut off again, and where that or the sync fails, broken() is true and the file
  /// must be left as it is.
  Status Commit();

  bool broken() const { return broken_; }
  int64_t size() const { return size_; }
  const std::string& path() const { return file_.path(); }

 private:
  explicit FrameLogWriter(File file) : file_(std::move(file)) {}

  File file_;
  std::string pending_;
  uint64_t pending_frames_ = 0;
  uint64_t next_sequence_ = 0;
  int64_t size_ = 0;
  bool broken_ = false;
};

struct FrameLogDamage {
  int64_t lost_frames = 0;    // known by a gap in the sequence
  int64_t skipped_bytes = 0;  // damaged bytes before a later whole frame
  int64_t tail_bytes = 0;     // after the last whole frame: a torn write or a damaged end
};

/// Calls `visit` with the payload of each whole frame in order.
Result<FrameLogDamage> ReadFrameLog(const std::string& path,
                                    const std::function<void(std::string_view)>& visit);
/// The same on bytes.
FrameLogDamage ParseFrames(std::string_view bytes,
                           const std::function<void(std::string_view)>& visit);

}  // namespace expanse::storage
