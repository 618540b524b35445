// SPDX-License-Identifier: Apache-2.0
#include "storage/series/frame_log.h"

#include <optional>
#include <utility>

#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/series/byte_io.h"

namespace expanse::storage {
namespace {

constexpr uint32_t kMagic = 0x31465845;  // "EXF1"
constexpr size_t kHeaderBytes = 24;

struct Frame {
  uint64_t sequence = 0;
  std::string_view payload;
};

// The whole frame at the start of the bytes, if there is one.
std::optional<Frame> FrameAt(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  ByteReader reader(bytes.substr(0, kHeaderBytes));
  if (reader.U32() != kMagic) return std::nullopt;
  const uint32_t length = reader.U32();
  Frame frame;
  frame.sequence = reader.U64();
  const uint32_t payload_crc = reader.U32();
  const uint32_t header_crc = reader.U32();
  if (platform::Crc32c(bytes.substr(0, kHeaderBytes - 4)) != header_crc) return std::nullopt;
  if (length > bytes.size() - kHeaderBytes) return std::nullopt;
  frame.payload = bytes.substr(kHeaderBytes, length);
  if (platform::Crc32c(frame.payload) != payload_crc) return std::nullopt;
  return frame;
}

}  // namespace

Result<FrameLogWriter> FrameLogWriter::Create(const std::string& path) {
  EXPANSE_TRY(auto file, File::CreateNew(path));
  EXPANSE_CHECK_OK(SyncDirectory(platform::DirName(path)));
  return FrameLogWriter(std::move(file));
}

void FrameLogWriter::Add(std::string_view payload) {
  EXPANSE_CHECK(payload.size() <= kMaxFrameBytes);
  std::string header;
  PutU32(header, kMagic);
  PutU32(header, static_cast<uint32_t>(payload.size()));
  PutU64(header, next_sequence_ + pending_frames_);
  PutU32(header, platform::Crc32c(payload));
  PutU32(header, platform::Crc32c(header));
  pending_ += header;
  pending_ += payload;
  ++pending_frames_;
}

Status FrameLogWriter::Commit() {
  const auto frames = std::exchange(pending_frames_, 0);
  const std::string bytes = std::exchange(pending_, {});
  if (broken_)
    return Error(Code::kUnavailable, file_.path() + " failed before and is not written any more");
  if (auto written = file_.Append(bytes); !written.ok()) {
    if (!file_.Truncate(size_).ok()) broken_ = true;
    return written;
  }
  if (auto synced = file_.Sync(); !synced.ok()) {
    broken_ = true;
    return synced;
  }
  size_ += static_cast<int64_t>(bytes.size());
  next_sequence_ += frames;
  return {};
}

Result<FrameLogDamage> ReadFrameLog(const std::string& path,
                                    const std::function<void(std::string_view)>& visit) {
  EXPANSE_TRY(const auto file, File::OpenToRead(path));
  EXPANSE_TRY(const int64_t size, file.Size());
  EXPANSE_TRY(const auto bytes, file.ReadAt(0, size));
  return ParseFrames(bytes, visit);
}

FrameLogDamage ParseFrames(std::string_view bytes,
                           const std::function<void(std::string_view)>& visit) {
  FrameLogDamage damage;
  std::string magic;
  PutU32(magic, kMagic);
  uint64_t expected = 0;
  int64_t skipped = 0;  // since the last whole frame
  while (!bytes.empty()) {
    if (const auto frame = FrameAt(bytes); frame.has_value() && frame->sequence >= expected) {
      damage.lost_frames += static_cast<int64_t>(frame->sequence - expected);
      damage.skipped_bytes += std::exchange(skipped, 0);
      expected = frame->sequence + 1;
      visit(frame->payload);
      bytes.remove_prefix(kHeaderBytes + frame->payload.size());
      continue;
    }
    const size_t next = bytes.find(magic, 1);
    const size_t step = next == std::string_view::npos ? bytes.size() : next;
    skipped += static_cast<int64_t>(step);
    bytes.remove_prefix(step);
  }
  damage.tail_bytes = skipped;
  return damage;
}

}  // namespace expanse::storage
