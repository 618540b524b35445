// SPDX-License-Identifier: Apache-2.0
// The directory of an embedded series store: which files are there, what they are called, and how
// heads and files become other files.
//
//   LOCK               held by the process that has the store open
//   facts.log          adoptions and retention
//   wal/<n>.wal        write-ahead log of head n
//   sealed/<a>-<b>.xs  everything of heads a to b
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/series/adoption.h"
#include "storage/series/head.h"
#include "storage/series/sealed_file.h"

namespace expanse::storage {

using SealedFiles = std::vector<std::shared_ptr<const SealedFile>>;

struct SequenceRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

class StoreFiles {
 public:
  explicit StoreFiles(std::string directory) : directory_(std::move(directory)) {}

  Status MakeDirectories() const;
  std::string WalPath(uint64_t sequence) const;
  std::string SealedPath(SequenceRange range) const;
  std::string FactsPath() const { return directory_ + "/facts.log"; }
  std::string LockPath() const { return directory_ + "/LOCK"; }

  struct Found {
    SealedFiles sealed;  // by sequence, no overlaps
    std::vector<SequenceRange> unreadable;
    std::vector<std::string> damage;  // one for each unreadable file
    std::vector<uint64_t> wal;        // not sealed yet, ascending
    uint64_t last_sequence = 0;       // of any file
  };
  /// Opens the sealed files; removes temporaries, what a larger file holds too, and logs whose head
  /// is sealed.
  Result<Found> Load() const;

  /// Writes a head as a sealed file. Null when nothing of the head is to be kept.
  Result<std::shared_ptr<const SealedFile>> Seal(const Head& head, const Adoptions& adoptions,
                                                 int64_t keep_from_ms) const;
  /// Writes files with adjacent sequences as one. kDataLoss when a part of one cannot be read.
  Result<std::shared_ptr<const SealedFile>> Merge(const SealedFiles& files,
                                                  const Adoptions& adoptions,
                                                  int64_t keep_from_ms) const;

 private:
  Result<std::shared_ptr<const SealedFile>> Publish(class SealedFileWriter& writer,
                                                    const std::string& temporary,
                                                    SequenceRange range) const;

  std::string directory_;
};

}  // namespace expanse::storage
