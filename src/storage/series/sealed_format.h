// SPDX-License-Identifier: Apache-2.0
// What writer and reader of sealed files share.
#pragma once

#include <cstdint>

namespace expanse::storage {

constexpr uint64_t kSealedMagic = 0x3130524553505845;  // "EXPSER01"
// Two offsets, stored and raw size and CRC of the footer, magic, CRC of all that; written twice.
constexpr int64_t kTrailerBytes = 8 + 8 + 4 + 4 + 4 + 8 + 4;
// What a damaged size can make a reader allocate.
constexpr uint32_t kMaxRawBytes = uint32_t{256} << 20;

}  // namespace expanse::storage
