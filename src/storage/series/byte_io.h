// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers, varints and length-prefixed text in byte strings. Readers are bounded:
// bytes from disk can hold anything.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace expanse::storage {

constexpr uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
constexpr int64_t UnZigZag(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}

inline void PutU32(std::string& out, uint32_t v) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(v >> (8 * i));
}
inline void PutU64(std::string& out, uint64_t v) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i));
}
inline void PutDouble(std::string& out, double v) { PutU64(out, std::bit_cast<uint64_t>(v)); }
inline void PutVarint(std::string& out, uint64_t v) {
  while (v >= 0x80) {
    out += static_cast<char>(v | 0x80);
    v >>= 7;
  }
  out += static_cast<char>(v);
}
inline void PutText(std::string& out, std::string_view text) {
  PutVarint(out, text.size());
  out += text;
}

/// Reads front to back. After the first read past the end, or of a malformed varint, ok() is false
/// and every further answer is 0 or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size(); }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

  uint8_t U8() { return static_cast<uint8_t>(Little(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Little(4)); }
  uint64_t U64() { return Little(8); }
  double Double() { return std::bit_cast<double>(Little(8)); }
  uint64_t Varint() {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = Little(1);
      if (shift == 63 && byte > 1) return Fail();
      v |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return v;
    }
    return Fail();
  }
  std::string_view Text() { return Bytes(Varint()); }
  std::string_view Bytes(uint64_t size) {
    if (!ok_ || size > bytes_.size()) {
      Fail();
      return {};
    }
    const auto out = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(static_cast<size_t>(size));
    return out;
  }

 private:
  uint64_t Little(size_t size) {
    const auto bytes = Bytes(size);
    uint64_t v = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      v |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return v;
  }
  uint64_t Fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace expanse::storage
