// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/sequence.h"

#include <algorithm>

#include "base/strings.h"

namespace expanse::data_plane {

bool SequenceState::IsNew(int64_t sequence) const {
  if (sequence >= next) return true;
  return std::any_of(gaps.begin(), gaps.end(), [sequence](const SequenceRange& gap) {
    return gap.first <= sequence && sequence <= gap.last;
  });
}

int64_t SequenceState::Take(int64_t first, int64_t count) {
  if (count <= 0) return 0;
  const int64_t last = first + count - 1;
  std::vector<SequenceRange> left;
  for (const SequenceRange& gap : gaps) {
    if (gap.last < first || gap.first > last) {
      left.push_back(gap);
      continue;
    }
    missing -= std::min(gap.last, last) - std::max(gap.first, first) + 1;
    if (gap.first < first) left.push_back({gap.first, first - 1});
    if (gap.last > last) left.push_back({last + 1, gap.last});
  }
  gaps = std::move(left);
  int64_t skipped = 0;
  if (first > next) {
    skipped = first - next;
    gaps.push_back({next, first - 1});
    missing += skipped;
    if (gaps.size() > kMaxGaps) gaps.erase(gaps.begin());
  }
  next = std::max(next, last + 1);
  return skipped;
}

std::string FormatGaps(const std::vector<SequenceRange>& gaps) {
  std::string out;
  for (const SequenceRange& gap : gaps) {
    if (!out.empty()) out += ",";
    out += std::to_string(gap.first) + "-" + std::to_string(gap.last);
  }
  return out;
}

Result<std::vector<SequenceRange>> ParseGaps(std::string_view text) {
  std::vector<SequenceRange> out;
  if (text.empty()) return out;
  for (const std::string_view part : Split(text, ',')) {
    const auto bounds = Split(part, '-');
    const auto first = bounds.size() == 2 ? ParseInt64(bounds[0]) : std::nullopt;
    const auto last = bounds.size() == 2 ? ParseInt64(bounds[1]) : std::nullopt;
    if (!first || !last)
      return Error(Code::kDataLoss, "ingest_sources.gaps holds '" + std::string(text) + "'");
    out.push_back({*first, *last});
  }
  return out;
}

}  // namespace expanse::data_plane
