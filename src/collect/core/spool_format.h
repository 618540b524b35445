// SPDX-License-Identifier: Apache-2.0
// Bytes of a spool segment. All integers little-endian.
//
//   segment header, 64 bytes: "EXPSPL01", source id (36 bytes of UUID text), first sequence (u64),
//                             8 bytes of zero, CRC-32C of the 60 bytes before it (u32)
//   frame, 24 bytes + payload: "EXPF", payload length (u32), sequence (u64), CRC-32C of the payload
//                             (u32), CRC-32C of the 20 bytes before it (u32), payload
//
// The payload is a serialized expanse.data.v1.Record. The header has its own checksum so that a
// flipped length is damage at once, not an endless wait for bytes that never come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::collect {

constexpr size_t kSegmentHeaderBytes = 64;
constexpr size_t kFrameHeaderBytes = 24;
/// A source bundle holds at most 10 MiB of files; one record more than this is a programming error.
constexpr size_t kMaxPayloadBytes = 32 << 20;

struct SegmentHeader {
  std::string source_id;
  uint64_t first_sequence = 0;
};
std::string EncodeSegmentHeader(const SegmentHeader& header);
/// Nothing when the bytes are no whole segment header.
std::optional<SegmentHeader> ParseSegmentHeader(std::string_view bytes);

struct Frame {
  uint64_t sequence = 0;
  std::string_view payload;  // into the parsed bytes
  size_t size = 0;           // of header and payload
};
void AppendFrame(uint64_t sequence, std::string_view payload, std::string* out);

enum class FrameStatus {
  kWhole,
  kIncomplete,  // a correct beginning; the rest is not there (yet)
  kDamaged,
};
/// Looks at the start of bytes. On kIncomplete, frame->size is the size it will have when that is
/// known already, else 0.
FrameStatus ParseFrame(std::string_view bytes, Frame* frame);

/// Where the next whole frame begins after damage at the start of bytes: with a sequence of at
/// least `from` and less than `below`. damaged_size: what the header of the damaged frame says,
/// when it is whole itself; else 0.
std::optional<size_t> FindNextFrame(std::string_view bytes, size_t damaged_size, uint64_t from,
                                    uint64_t below);

/// The last whole frame of a segment's frames (bytes after the segment header), searched past
/// damage too, so that a writer never gives out a sequence twice.
struct SegmentEnd {
  uint64_t last_sequence = 0;  // 0: no whole frame
  size_t end = 0;              // offset after the last whole frame
  bool damage_before_end = false;
};
SegmentEnd FindSegmentEnd(std::string_view frames, uint64_t first_sequence);

}  // namespace expanse::collect
