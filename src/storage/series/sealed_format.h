// SPDX-License-Identifier: Apache-2.0
// What writer and reader of sealed files share.
#pragma once

#include <cstdint>
#include <string>

#include "storage/series/byte_io.h"

namespace expanse::storage {

constexpr uint64_t kSealedMagic = 0x3130524553505845;  // "EXPSER01"
constexpr uint64_t kSealedVersion = 1;
// Two offsets, stored and raw size and CRC of the footer, magic, CRC of all that; written twice.
constexpr int64_t kTrailerBytes = 8 + 8 + 4 + 4 + 4 + 8 + 4;
// What a damaged size can make a reader allocate.
constexpr uint32_t kMaxRawBytes = uint32_t{256} << 20;

inline void PutStored(std::string& out, uint64_t offset, uint32_t stored, uint32_t raw,
                      uint32_t crc) {
  PutVarint(out, offset);
  PutVarint(out, stored);
  PutVarint(out, raw);
  PutU32(out, crc);
}

}  // namespace expanse::storage
