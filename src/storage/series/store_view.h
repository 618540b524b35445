// SPDX-License-Identifier: Apache-2.0
// What a query reads: sealed files and heads as they were at one moment.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "storage/series/columns.h"
#include "storage/series/store_files.h"

namespace expanse::storage {

/// One piece of a series: a chunk of a sealed file, or samples copied from a head.
struct SeriesPiece {
  std::shared_ptr<const SealedFile> file;  // null: `columns`
  ChunkMeta chunk;
  Columns columns;
};

/// Pieces of the selected series by their key (adoption resolved), the later winning.
using SeriesPieces = std::map<SeriesKey, std::vector<SeriesPiece>>;

/// The executions whose samples a selector means, and how their keys are answered.
class SelectorScan {
 public:
  SelectorScan(const SeriesSelector& selector, TimeRange range, const Adoptions& adoptions);

  void AddFile(const std::shared_ptr<const SealedFile>& file);
  void AddHead(const Head& head);

  SeriesPieces pieces;
  std::vector<std::string> damage;

 private:
  bool Wants(const SeriesKey& key) const;
  template <typename Visit>
  void ForEachStart(Visit visit) const;
  SeriesKey Answered(const SeriesKey& key) const;

  const SeriesSelector& selector_;
  TimeRange range_;
  std::vector<ExecutionId> executions_;  // empty: all
  const Adoptions& adoptions_;
};

/// Reads the pieces of one series; what cannot be read is left out and named in `damage`.
Columns ReadPieces(std::vector<SeriesPiece> pieces, TimeRange range, ChunkReader& reader,
                   std::vector<std::string>& damage);
/// The same summarised; from the index alone where chunks lie wholly in the range and do not
/// overlap. Count 0: nothing in the range.
SeriesSummary SummarisePieces(const SeriesKey& key, std::vector<SeriesPiece> pieces,
                              TimeRange range, ChunkReader& reader,
                              std::vector<std::string>& damage);

}  // namespace expanse::storage
