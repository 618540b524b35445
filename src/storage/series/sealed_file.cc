// SPDX-License-Identifier: Apache-2.0
#include "storage/series/sealed_file.h"

#include <algorithm>
#include <utility>

#include "platform/crypto/crypto.h"
#include "storage/series/byte_io.h"
#include "storage/series/chunk_codec.h"
#include "storage/series/sealed_format.h"
#include "storage/series/series_key.h"
#include "storage/zstd_codec.h"

namespace expanse::storage {
namespace {

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

Error Damaged(const std::string& path, const std::string& what) {
  return Error(Code::kDataLoss, path + ": " + what);
}

}  // namespace

Result<std::shared_ptr<SealedFile>> SealedFile::Open(const std::string& path,
                                                     uint64_t first_sequence,
                                                     uint64_t last_sequence) {
  EXPANSE_TRY(auto opened, File::OpenToRead(path));
  std::shared_ptr<SealedFile> file(new SealedFile(std::move(opened)));
  file->first_sequence_ = first_sequence;
  file->last_sequence_ = last_sequence;
  EXPANSE_TRY(file->bytes_, file->file_.Size());
  EXPANSE_TRY(const auto footer, file->ReadFooter());
  EXPANSE_CHECK_OK(file->ParseFooter(footer));
  return file;
}

Result<std::string> SealedFile::ReadFooter() const {
  for (int64_t copy = 1; copy <= 2; ++copy) {
    if (bytes_ < copy * kTrailerBytes) break;
    EXPANSE_TRY(const auto trailer, file_.ReadAt(bytes_ - copy * kTrailerBytes, kTrailerBytes));
    ByteReader reader(trailer);
    const uint64_t offsets[] = {reader.U64(), reader.U64()};
    Stored place;
    place.stored = reader.U32();
    place.raw = reader.U32();
    place.crc = reader.U32();
    if (reader.U64() != kSealedMagic) continue;
    if (platform::Crc32c(std::string_view(trailer).substr(0, trailer.size() - 4)) != reader.U32())
      continue;
    for (const uint64_t offset : offsets) {
      place.offset = offset;
      if (auto footer = ReadStored(place, "footer"); footer.ok()) return footer;
    }
  }
  return Damaged(path(), "the footer is damaged or missing");
}

Status SealedFile::ParseFooter(std::string_view footer) {
  ByteReader reader(footer);
  const uint64_t version = reader.Varint();
  if (version != kSealedVersion)
    return Error(Code::kFailedPrecondition,
                 path() + " has format version " + std::to_string(version) +
                     ", which this program does not know; a newer version wrote it");
  first_ms_ = UnZigZag(reader.Varint());
  last_ms_ = UnZigZag(reader.Varint());
  samples_ = static_cast<int64_t>(reader.Varint());
  const auto stored = [&reader] {
    Stored place;
    place.offset = reader.Varint();
    place.stored = Var32(reader);
    place.raw = Var32(reader);
    place.crc = reader.U32();
    return place;
  };
  const uint64_t blocks = reader.Varint();
  for (uint64_t i = 0; i < blocks && reader.ok(); ++i) blocks_.push_back(stored());
  const uint64_t pages = reader.Varint();
  for (uint64_t i = 0; i < pages && reader.ok(); ++i) {
    SeriesKey first = GetKey(reader);
    pages_.push_back({std::move(first), stored()});
  }
  if (!reader.AtEnd()) return Damaged(path(), "the footer is malformed");
  return {};
}

Result<std::string> SealedFile::ReadStored(const Stored& place, const std::string& what) const {
  const auto size = static_cast<uint64_t>(bytes_);
  if (place.offset > size || place.stored > size - place.offset || place.raw > kMaxRawBytes)
    return Damaged(path(), what + " lies outside of the file");
  EXPANSE_TRY(const auto stored, file_.ReadAt(static_cast<int64_t>(place.offset), place.stored));
  if (platform::Crc32c(stored) != place.crc) return Damaged(path(), what + " has a wrong checksum");
  auto raw = ZstdDecompress(stored, place.raw);
  if (!raw.ok()) return Damaged(path(), what + ": " + raw.error().message());
  return raw;
}

Result<std::string> SealedFile::ReadBlock(uint32_t block) const {
  if (block >= blocks_.size()) return Damaged(path(), "no block " + std::to_string(block));
  return ReadStored(blocks_[block], "block " + std::to_string(block));
}

void SealedFile::Scan(const SeriesKey& from, const std::function<bool(IndexEntry&&)>& visit,
                      std::vector<std::string>& damage) const {
  auto page = std::upper_bound(pages_.begin(), pages_.end(), from,
                               [](const SeriesKey& key, const Page& p) { return key < p.first; });
  if (page != pages_.begin()) --page;
  bool go_on = true;
  for (; go_on && page != pages_.end(); ++page) {
    auto raw = ReadStored(page->place, "index page " + std::to_string(page - pages_.begin()));
    auto status = raw.ok() ? ParsePage(*raw, visit, go_on, from) : Status(raw.error());
    if (!status.ok()) {
      damage.push_back(status.error().message());
      // Whether the wanted keys end inside the damaged page is seen at the next page's first key.
      continue;
    }
  }
}

Status SealedFile::ParsePage(std::string_view page, const std::function<bool(IndexEntry&&)>& visit,
                             bool& go_on, const SeriesKey& from) const {
  ByteReader reader(page);
  const uint64_t count = reader.Varint();
  std::string bytes;
  for (uint64_t i = 0; i < count && go_on; ++i) {
    const uint64_t shared = reader.Varint();
    const auto rest = reader.Text();
    if (!reader.ok() || shared > bytes.size()) return Damaged(path(), "an index page is malformed");
    bytes.resize(static_cast<size_t>(shared));
    bytes += rest;
    ByteReader key_reader(bytes);
    IndexEntry entry;
    entry.key = GetKey(key_reader);
    const uint64_t chunks = reader.Varint();
    for (uint64_t c = 0; c < chunks && reader.ok(); ++c) entry.chunks.push_back(GetChunk(reader));
    if (!reader.ok() || !key_reader.AtEnd() || entry.chunks.empty())
      return Damaged(path(), "an index page is malformed");
    if (!(entry.key < from)) go_on = visit(std::move(entry));
  }
  return {};
}

Result<const std::string*> ChunkReader::Block(const SealedFile& file, uint32_t block) {
  // Files of one store differ in their first sequence at any one time.
  const uint64_t id = file.first_sequence() << 32 | block;
  auto found = blocks_.find(id);
  if (found == blocks_.end()) {
    if (blocks_.size() >= kMaxBlocks) blocks_.clear();
    found = blocks_.emplace(id, file.ReadBlock(block)).first;
  }
  if (!found->second.ok()) return found->second.error();
  return &found->second.value();
}

Result<Columns> ChunkReader::Read(const SealedFile& file, const ChunkMeta& chunk) {
  const auto column = [](const std::string& block, uint32_t offset) {
    return std::string_view(block).substr(std::min<size_t>(offset, block.size()));
  };
  Columns out;
  EXPANSE_TRY(const std::string* times, Block(file, chunk.time_block));
  auto time_bytes = column(*times, chunk.time_offset);
  EXPANSE_TRY(out.times, DecodeIntegers(time_bytes, chunk.count));
  EXPANSE_TRY(const std::string* values, Block(file, chunk.value_block));
  auto value_bytes = column(*values, chunk.value_offset);
  EXPANSE_TRY(out.values, DecodeDoubles(value_bytes, chunk.count));
  return out;
}

}  // namespace expanse::storage
