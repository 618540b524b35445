// SPDX-License-Identifier: Apache-2.0
#include "storage/series/sealed_index.h"

#include <algorithm>
#include <utility>

#include "storage/series/byte_io.h"
#include "storage/series/chunk_codec.h"
#include "storage/series/series_key.h"

namespace expanse::storage {
namespace {

constexpr uint64_t kVersion = 1;

void PutPlace(std::string& out, const StoredPlace& place) {
  PutVarint(out, place.offset);
  PutVarint(out, place.stored);
  PutVarint(out, place.raw);
  PutU32(out, place.crc);
}

uint32_t Var32(ByteReader& reader) {
  const uint64_t v = reader.Varint();
  return v > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(v);
}

ChunkMeta GetChunk(ByteReader& reader) {
  ChunkMeta chunk;
  chunk.count = Var32(reader);
  chunk.first_ms = UnZigZag(reader.Varint());
  chunk.last_ms = static_cast<int64_t>(static_cast<uint64_t>(chunk.first_ms) + reader.Varint());
  chunk.min = GetDecimal(reader);
  chunk.max = GetDecimal(reader);
  chunk.last = GetDecimal(reader);
  chunk.sum = GetDecimal(reader);
  chunk.time_block = Var32(reader);
  chunk.time_offset = Var32(reader);
  chunk.value_block = Var32(reader);
  chunk.value_offset = Var32(reader);
  return chunk;
}

StoredPlace GetPlace(ByteReader& reader) {
  StoredPlace place;
  place.offset = reader.Varint();
  place.stored = Var32(reader);
  place.raw = Var32(reader);
  place.crc = reader.U32();
  return place;
}

void PutChunk(std::string& out, const ChunkMeta& chunk) {
  PutVarint(out, chunk.count);
  PutVarint(out, ZigZag(chunk.first_ms));
  PutVarint(out, static_cast<uint64_t>(chunk.last_ms - chunk.first_ms));
  PutDecimal(out, chunk.min);
  PutDecimal(out, chunk.max);
  PutDecimal(out, chunk.last);
  PutDecimal(out, chunk.sum);
  PutVarint(out, chunk.time_block);
  PutVarint(out, chunk.time_offset);
  PutVarint(out, chunk.value_block);
  PutVarint(out, chunk.value_offset);
}

}  // namespace

std::string EncodeFooter(const SealedFooter& footer) {
  std::string out;
  PutVarint(out, kVersion);
  PutVarint(out, ZigZag(footer.first_ms));
  PutVarint(out, ZigZag(footer.last_ms));
  PutVarint(out, static_cast<uint64_t>(footer.samples));
  PutVarint(out, footer.blocks.size());
  for (const StoredPlace& block : footer.blocks) PutPlace(out, block);
  PutVarint(out, footer.pages.size());
  for (const IndexPage& page : footer.pages) {
    PutKey(out, page.first);
    PutPlace(out, page.place);
  }
  return out;
}

Result<SealedFooter> ParseFooter(std::string_view bytes) {
  ByteReader reader(bytes);
  const uint64_t version = reader.Varint();
  if (reader.ok() && version != kVersion)
    return Error(Code::kFailedPrecondition,
                 "format version " + std::to_string(version) +
                     ", which this program does not know; a newer version wrote it");
  SealedFooter footer;
  footer.first_ms = UnZigZag(reader.Varint());
  footer.last_ms = UnZigZag(reader.Varint());
  footer.samples = static_cast<int64_t>(reader.Varint());
  const uint64_t blocks = reader.Varint();
  for (uint64_t i = 0; i < blocks && reader.ok(); ++i) footer.blocks.push_back(GetPlace(reader));
  const uint64_t pages = reader.Varint();
  for (uint64_t i = 0; i < pages && reader.ok(); ++i) {
    SeriesKey first = GetKey(reader);
    footer.pages.push_back({std::move(first), GetPlace(reader)});
  }
  if (!reader.AtEnd()) return Error(Code::kDataLoss, "the footer is malformed");
  return footer;
}

std::string EncodeIndexPage(std::span<const IndexEntry> entries) {
  std::string page;
  std::string last;
  PutVarint(page, entries.size());
  for (const IndexEntry& entry : entries) {
    std::string key;
    PutKey(key, entry.key);
    const auto shared = static_cast<size_t>(
        std::mismatch(key.begin(), key.end(), last.begin(), last.end()).first - key.begin());
    PutVarint(page, shared);
    PutText(page, std::string_view(key).substr(shared));
    PutVarint(page, entry.chunks.size());
    for (const ChunkMeta& chunk : entry.chunks) PutChunk(page, chunk);
    last = std::move(key);
  }
  return page;
}

Result<bool> ParseIndexPage(std::string_view bytes, const SeriesKey& from,
                            const std::function<bool(IndexEntry&&)>& visit) {
  const auto malformed = [] { return Error(Code::kDataLoss, "an index page is malformed"); };
  ByteReader reader(bytes);
  const uint64_t count = reader.Varint();
  std::string key;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t shared = reader.Varint();
    const auto rest = reader.Text();
    if (!reader.ok() || shared > key.size()) return malformed();
    key.resize(static_cast<size_t>(shared));
    key += rest;
    ByteReader key_reader(key);
    IndexEntry entry;
    entry.key = GetKey(key_reader);
    const uint64_t chunks = reader.Varint();
    for (uint64_t c = 0; c < chunks && reader.ok(); ++c) entry.chunks.push_back(GetChunk(reader));
    if (!reader.ok() || !key_reader.AtEnd() || entry.chunks.empty()) return malformed();
    if (!(entry.key < from) && !visit(std::move(entry))) return false;
  }
  return true;
}

}  // namespace expanse::storage
