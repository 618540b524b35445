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
  EXPANSE_TRY(const auto bytes, file->ReadFooter());
  auto footer = ParseFooter(bytes);
  if (!footer.ok()) return footer.error().WithContext(path);
  file->footer_ = *std::move(footer);
  return file;
}

Result<std::string> SealedFile::ReadFooter() const {
  for (int64_t copy = 1; copy <= 2; ++copy) {
    if (bytes_ < copy * kTrailerBytes) break;
    EXPANSE_TRY(const auto trailer, file_.ReadAt(bytes_ - copy * kTrailerBytes, kTrailerBytes));
    ByteReader reader(trailer);
    const uint64_t offsets[] = {reader.U64(), reader.U64()};
    StoredPlace place;
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

Result<std::string> SealedFile::ReadStored(const StoredPlace& place,
                                           const std::string& what) const {
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
  if (block >= footer_.blocks.size()) return Damaged(path(), "no block " + std::to_string(block));
  return ReadStored(footer_.blocks[block], "block " + std::to_string(block));
}

void SealedFile::Scan(const SeriesKey& from, const std::function<bool(IndexEntry&&)>& visit,
                      std::vector<std::string>& damage) const {
  const auto& pages = footer_.pages;
  auto page =
      std::upper_bound(pages.begin(), pages.end(), from,
                       [](const SeriesKey& key, const IndexPage& p) { return key < p.first; });
  if (page != pages.begin()) --page;
  for (; page != pages.end(); ++page) {
    const std::string name = "index page " + std::to_string(page - pages.begin());
    const auto raw = ReadStored(page->place, name);
    auto go_on = raw.ok() ? ParseIndexPage(*raw, from, visit) : Result<bool>(raw.error());
    if (!go_on.ok())
      // Whether the wanted keys end inside this page is seen at the next page's first key.
      damage.push_back(raw.ok() ? path() + ": " + go_on.error().message() : raw.error().message());
    else if (!*go_on)
      return;
  }
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
