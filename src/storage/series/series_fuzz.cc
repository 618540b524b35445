// SPDX-License-Identifier: Apache-2.0
// Everything of the series store that reads bytes from disk: the first byte of the input chooses
// the reader, the second a number of samples.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "storage/series/chunk_codec.h"
#include "storage/series/frame_log.h"
#include "storage/series/head.h"
#include "storage/series/sealed_index.h"
#include "storage/zstd_codec.h"

namespace expanse::storage {
namespace {

// What decodes has to survive another round trip bit for bit.
void FuzzDoubles(std::string_view bytes, size_t count) {
  const auto values = DecodeDoubles(bytes, count);
  if (!values.ok()) return;
  std::string coded;
  EncodeDoubles(*values, coded);
  std::string_view rest = coded;
  const auto again = DecodeDoubles(rest, count);
  EXPANSE_CHECK(again.ok() && rest.empty());
  for (size_t i = 0; i < count; ++i)
    EXPANSE_CHECK(std::bit_cast<uint64_t>((*values)[i]) == std::bit_cast<uint64_t>((*again)[i]));
}

void FuzzIntegers(std::string_view bytes, size_t count) {
  const auto values = DecodeIntegers(bytes, count);
  if (!values.ok()) return;
  std::string coded;
  EncodeIntegers(*values, coded);
  std::string_view rest = coded;
  const auto again = DecodeIntegers(rest, count);
  EXPANSE_CHECK(again.ok() && rest.empty() && *again == *values);
}

}  // namespace
}  // namespace expanse::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace storage = expanse::storage;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t count = data[1];
  switch (data[0] % 7) {
    case 0:
      storage::FuzzDoubles(bytes, count);
      break;
    case 1:
      storage::FuzzIntegers(bytes, count);
      break;
    case 2: {
      storage::Head head(1);
      storage::ParseFrames(bytes, [&](std::string_view payload) { head.Replay(payload); });
      break;
    }
    case 3: {
      storage::Head head(1);
      head.Replay(bytes.substr(0, count < bytes.size() ? count : bytes.size()));
      if (count < bytes.size()) head.Replay(bytes.substr(count));
      break;
    }
    case 4:
      (void)storage::ParseFooter(bytes);
      break;
    case 5:
      (void)storage::ParseIndexPage(bytes, {}, [](storage::IndexEntry&&) { return true; });
      break;
    default:
      (void)storage::ZstdDecompress(bytes, 1 << 16);
      break;
  }
  return 0;
}
