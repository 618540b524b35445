// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

namespace expanse {

std::string FormatUuidV7(int64_t unix_millis, const std::array<uint8_t, 10>& random) {
  std::array<uint8_t, 16> b{};
  for (size_t i = 0; i < 6; ++i)
    b[i] = static_cast<uint8_t>(static_cast<uint64_t>(unix_millis) >> (8 * (5 - i)));
  for (size_t i = 0; i < 10; ++i) b[6 + i] = random[i];
  b[6] = static_cast<uint8_t>((b[6] & 0x0f) | 0x70);
  b[8] = static_cast<uint8_t>((b[8] & 0x3f) | 0x80);
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    out.push_back(kHex[b[i] >> 4]);
    out.push_back(kHex[b[i] & 15]);
  }
  return out;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < 36; ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
      return false;
    }
  }
  return true;
}

}  // namespace expanse
