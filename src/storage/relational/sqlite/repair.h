// SPDX-License-Identifier: Apache-2.0
// What can be saved of a damaged SQLite file, and what a damaged log of it has lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::storage::sqlite {

struct RowsCopied {
  int64_t rows = 0;
  int64_t lost = 0;            // rows that an index still names, and that could not be read
  int64_t damaged_places = 0;  // ranges of a table that could not be read
  std::string tables;          // those with damage: "executions, bundles"
};

/// Copies every readable row of each table of `target` (an empty database of the same schema) from
/// the damaged file with its log. kDataLoss: not even the schema can be read.
Result<RowsCopied> CopyReadableRows(const std::string& damaged, const std::string& target);

/// A log whose chain of checksums breaks is read by SQLite up to there, without a word. Frames of
/// the same generation behind the break are commits that are lost.
struct LogDamage {
  int64_t whole_frames = 0;
  int64_t lost_frames = 0;
};
LogDamage InspectLog(std::string_view wal);

}  // namespace expanse::storage::sqlite
