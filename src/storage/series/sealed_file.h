// SPDX-License-Identifier: Apache-2.0
// An immutable file of compressed chunks with its own index. Layout in docs/design/series-store.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/file.h"
#include "storage/series/columns.h"
#include "storage/series/sealed_index.h"
#include "storage/series/series_store.h"

namespace expanse::storage {

/// Order of chunks in a file: one metric's series lie together, since they compress alike.
bool InFileOrder(const SeriesKey& a, const SeriesKey& b);

class SealedFileWriter {
 public:
  static Result<SealedFileWriter> Create(const std::string& path);

  /// Series come in file order, each once; the columns are sorted without repeats.
  Status Add(const SeriesKey& key, const Columns& columns);
  /// Writes the index and syncs. The file is complete only after this.
  Status Finish();
  bool empty() const { return entries_.empty(); }

 private:
  struct Place {
    uint32_t block = 0;
    uint32_t offset = 0;
  };
  // Block ids are given out when a block is opened, so both kinds can be open at once.
  struct OpenBlock {
    uint32_t id = 0;
    bool in_use = false;
    std::string raw;
  };

  explicit SealedFileWriter(File file) : file_(std::move(file)) {}
  Result<Place> PutColumn(OpenBlock& block, std::string_view column);
  Status CloseBlock(OpenBlock& block);
  Result<StoredPlace> WriteCompressed(std::string_view raw);
  Status Write(std::string_view bytes);
  Result<std::string> WriteIndex();

  File file_;
  uint64_t offset_ = 0;
  OpenBlock times_;
  OpenBlock values_;
  std::vector<StoredPlace> blocks_;
  std::vector<IndexEntry> entries_;
  // Series of one node share their timestamps: stored once.
  std::unordered_map<std::string, Place> known_times_;
};

/// Read side; safe for any number of threads.
class SealedFile {
 public:
  /// Reads and checks the footer (either of its two copies); kDataLoss when both are damaged.
  static Result<std::shared_ptr<SealedFile>> Open(const std::string& path, uint64_t first_sequence,
                                                  uint64_t last_sequence);

  /// Calls visit for each series whose key is not below `from`, in key order, until it answers
  /// false. A damaged index page is skipped and added to `damage`.
  void Scan(const SeriesKey& from, const std::function<bool(IndexEntry&&)>& visit,
            std::vector<std::string>& damage) const;
  /// The decompressed bytes of a block; kDataLoss naming the file.
  Result<std::string> ReadBlock(uint32_t block) const;

  const std::string& path() const { return file_.path(); }
  uint64_t first_sequence() const { return first_sequence_; }
  uint64_t last_sequence() const { return last_sequence_; }
  int64_t first_ms() const { return footer_.first_ms; }
  int64_t last_ms() const { return footer_.last_ms; }
  int64_t samples() const { return footer_.samples; }
  int64_t bytes() const { return bytes_; }

 private:
  explicit SealedFile(File file) : file_(std::move(file)) {}
  Result<std::string> ReadFooter() const;
  Result<std::string> ReadStored(const StoredPlace& place, const std::string& what) const;

  File file_;
  uint64_t first_sequence_ = 0;
  uint64_t last_sequence_ = 0;
  int64_t bytes_ = 0;
  SealedFooter footer_;
};

/// Decodes chunks, with the blocks last used at hand; for one thread.
class ChunkReader {
 public:
  Result<Columns> Read(const SealedFile& file, const ChunkMeta& chunk);

 private:
  Result<const std::string*> Block(const SealedFile& file, uint32_t block);

  static constexpr size_t kMaxBlocks = 256;
  // Failures too: each of hundreds of chunks would read a damaged block again.
  std::unordered_map<uint64_t, Result<std::string>> blocks_;
};

}  // namespace expanse::storage
