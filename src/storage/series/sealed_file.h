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
  struct BlockEntry {
    uint64_t offset = 0;
    uint32_t stored = 0;
    uint32_t raw = 0;
    uint32_t crc = 0;
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
  Result<BlockEntry> WriteCompressed(std::string_view raw);
  Status Write(std::string_view bytes);
  Result<std::string> WriteIndex();

  File file_;
  uint64_t offset_ = 0;
  OpenBlock times_;
  OpenBlock values_;
  std::vector<BlockEntry> blocks_;
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
  int64_t first_ms() const { return first_ms_; }
  int64_t last_ms() const { return last_ms_; }
  int64_t samples() const { return samples_; }
  int64_t bytes() const { return bytes_; }

 private:
  struct Stored {
    uint64_t offset = 0;
    uint32_t stored = 0;
    uint32_t raw = 0;
    uint32_t crc = 0;
  };
  struct Page {
    SeriesKey first;
    Stored place;
  };

  explicit SealedFile(File file) : file_(std::move(file)) {}
  Result<std::string> ReadFooter() const;
  Status ParseFooter(std::string_view footer);
  Result<std::string> ReadStored(const Stored& place, const std::string& what) const;
  Status ParsePage(std::string_view page, const std::function<bool(IndexEntry&&)>& visit,
                   bool& go_on, const SeriesKey& from) const;

  File file_;
  uint64_t first_sequence_ = 0;
  uint64_t last_sequence_ = 0;
  int64_t first_ms_ = 0;
  int64_t last_ms_ = 0;
  int64_t samples_ = 0;
  int64_t bytes_ = 0;
  std::vector<Stored> blocks_;
  std::vector<Page> pages_;
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
