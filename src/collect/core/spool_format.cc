// SPDX-License-Identifier: Apache-2.0
#include "collect/core/spool_format.h"

#include "base/ids.h"
#include "platform/crypto/crypto.h"

namespace expanse::collect {
namespace {

constexpr std::string_view kSegmentMagic = "EXPSPL01";
constexpr std::string_view kFrameMagic = "EXPF";
constexpr size_t kUuidBytes = 36;

template <typename T>
void PutInt(T value, std::string* out) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out->push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

template <typename T>
T GetInt(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value =
        static_cast<T>(value | (static_cast<T>(static_cast<uint8_t>(bytes[at + i])) << (8 * i)));
  return value;
}

}  // namespace

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  std::string id = header.source_id;
  id.resize(kUuidBytes, '\0');
  out += id;
  PutInt<uint64_t>(header.first_sequence, &out);
  PutInt<uint64_t>(0, &out);
  PutInt<uint32_t>(platform::Crc32c(out), &out);
  return out;
}

std::optional<SegmentHeader> ParseSegmentHeader(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMagic)) return std::nullopt;
  constexpr size_t kChecked = kSegmentHeaderBytes - 4;
  if (platform::Crc32c(bytes.substr(0, kChecked)) != GetInt<uint32_t>(bytes, kChecked))
    return std::nullopt;
  SegmentHeader header;
  header.source_id = std::string(bytes.substr(kSegmentMagic.size(), kUuidBytes));
  header.first_sequence = GetInt<uint64_t>(bytes, kSegmentMagic.size() + kUuidBytes);
  if (!IsUuid(header.source_id) || header.first_sequence == 0) return std::nullopt;
  return header;
}

void AppendFrame(uint64_t sequence, std::string_view payload, std::string* out) {
  std::string header(kFrameMagic);
  PutInt<uint32_t>(static_cast<uint32_t>(payload.size()), &header);
  PutInt<uint64_t>(sequence, &header);
  PutInt<uint32_t>(platform::Crc32c(payload), &header);
  PutInt<uint32_t>(platform::Crc32c(header), &header);
  out->append(header);
  out->append(payload);
}

FrameStatus ParseFrame(std::string_view bytes, Frame* frame) {
  *frame = Frame{};
  const auto magic = bytes.substr(0, kFrameMagic.size());
  if (magic != kFrameMagic.substr(0, magic.size())) return FrameStatus::kDamaged;
  if (bytes.size() < kFrameHeaderBytes) return FrameStatus::kIncomplete;
  constexpr size_t kChecked = kFrameHeaderBytes - 4;
  if (platform::Crc32c(bytes.substr(0, kChecked)) != GetInt<uint32_t>(bytes, kChecked))
    return FrameStatus::kDamaged;
  const size_t length = GetInt<uint32_t>(bytes, 4);
  if (length > kMaxPayloadBytes) return FrameStatus::kDamaged;
  frame->size = kFrameHeaderBytes + length;
  frame->sequence = GetInt<uint64_t>(bytes, 8);
  if (bytes.size() < frame->size) return FrameStatus::kIncomplete;
  frame->payload = bytes.substr(kFrameHeaderBytes, length);
  if (platform::Crc32c(frame->payload) != GetInt<uint32_t>(bytes, 16)) return FrameStatus::kDamaged;
  return FrameStatus::kWhole;
}

std::optional<size_t> FindNextFrame(std::string_view bytes, size_t damaged_size, uint64_t from,
                                    uint64_t below) {
  const auto is_whole = [&](size_t at) {
    Frame frame;
    return ParseFrame(bytes.substr(at), &frame) == FrameStatus::kWhole && frame.sequence >= from &&
           frame.sequence < below;
  };
  // Right behind it, when its length is known: no byte of a payload is then taken for a frame.
  if (damaged_size > 0 && damaged_size < bytes.size() && is_whole(damaged_size))
    return damaged_size;
  size_t at = bytes.find(kFrameMagic, damaged_size > 0 ? damaged_size : 1);
  while (at != std::string_view::npos && !is_whole(at)) at = bytes.find(kFrameMagic, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  return at;
}

SegmentEnd FindSegmentEnd(std::string_view frames, uint64_t first_sequence) {
  // Bytes that only look like a frame (inside a payload) cannot claim more frames than fit.
  const uint64_t highest = first_sequence + frames.size() / kFrameHeaderBytes;
  SegmentEnd found;
  size_t at = 0;
  while (at < frames.size()) {
    Frame frame;
    if (ParseFrame(frames.substr(at), &frame) == FrameStatus::kWhole &&
        frame.sequence >= first_sequence && frame.sequence <= highest &&
        frame.sequence > found.last_sequence) {
      found.last_sequence = frame.sequence;
      found.damage_before_end = at != found.end || found.damage_before_end;
      at += frame.size;
      found.end = at;
      continue;
    }
    const size_t next = frames.find(kFrameMagic, at + 1);
    if (next == std::string_view::npos) break;
    at = next;
  }
  return found;
}

}  // namespace expanse::collect
