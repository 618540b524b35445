// SPDX-License-Identifier: Apache-2.0
// What a source has sent so far: the next sequence and the ranges that never came.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::data_plane {

struct SequenceRange {
  int64_t first = 0;
  int64_t last = 0;  // inclusive
  bool operator==(const SequenceRange&) const = default;
};

/// Sequences start at 1.
struct SequenceState {
  int64_t next = 1;
  std::vector<SequenceRange> gaps;  // ascending, below next
  int64_t missing = 0;              // records in gaps, and in gaps that were forgotten

  /// True when the record was not seen before.
  bool IsNew(int64_t sequence) const;
  /// Takes [first, first + count): fills gaps, makes one when records were skipped. Answers how
  /// many records are missing right before `first`.
  int64_t Take(int64_t first, int64_t count);
};

/// Gaps as text "5-7,9-9". More than this many ranges: the oldest are forgotten (they stay in
/// `missing`), and a late record of such a range counts as a duplicate.
inline constexpr size_t kMaxGaps = 256;
std::string FormatGaps(const std::vector<SequenceRange>& gaps);
Result<std::vector<SequenceRange>> ParseGaps(std::string_view text);

}  // namespace expanse::data_plane
