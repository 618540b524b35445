// SPDX-License-Identifier: Apache-2.0
// The index of a sealed file as bytes: footer and pages. Readers take any bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/series/series_store.h"

namespace expanse::storage {

/// Samples a chunk holds at most: what a query of a short window decodes too much.
constexpr size_t kChunkSamples = 4096;

/// Where a chunk lies and what it holds.
struct ChunkMeta {
  uint32_t count = 0;
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  // Columns are in blocks (compressed together), at an offset of the decompressed bytes.
  uint32_t time_block = 0;
  uint32_t time_offset = 0;
  uint32_t value_block = 0;
  uint32_t value_offset = 0;
};

struct IndexEntry {
  SeriesKey key;
  std::vector<ChunkMeta> chunks;  // ascending in time, disjoint
};

/// Compressed bytes in the file.
struct StoredPlace {
  uint64_t offset = 0;
  uint32_t stored = 0;
  uint32_t raw = 0;  // size before compression
  uint32_t crc = 0;  // CRC-32C of the compressed bytes
};

struct IndexPage {
  SeriesKey first;
  StoredPlace place;
};

struct SealedFooter {
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  int64_t samples = 0;
  std::vector<StoredPlace> blocks;
  std::vector<IndexPage> pages;  // by first key
};

std::string EncodeFooter(const SealedFooter& footer);
/// kFailedPrecondition for a version that a newer program wrote, kDataLoss for what is no footer.
Result<SealedFooter> ParseFooter(std::string_view bytes);

std::string EncodeIndexPage(std::span<const IndexEntry> entries);
/// Calls visit for the entries with a key not below `from` until it answers false; whether to go
/// on.
Result<bool> ParseIndexPage(std::string_view bytes, const SeriesKey& from,
                            const std::function<bool(IndexEntry&&)>& visit);

}  // namespace expanse::storage
