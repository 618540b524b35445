// SPDX-License-Identifier: Apache-2.0
#include "data_plane/retention/series_retention.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kCatchUp = 24;
constexpr int64_t kLeastStepMs = 60'000;

}  // namespace

Status SeriesRetention::Step() {
  if (keep_.count() <= 0) return {};
  const MonoTime mono = clock_.Mono();
  const int64_t passed =
      last_.has_value() ? std::chrono::floor<Millis>(mono - *last_).count() : int64_t{0};
  last_ = mono;
  const int64_t wanted = ToUnixMillis(clock_.Now()) - keep_.count();
  const int64_t before = store_.Stats().keep_from_ms;
  if (wanted <= before || wanted <= 0) return {};  // also a clock that was set back
  int64_t limit = wanted;
  if (before > 0) limit = std::min(wanted, before + std::max(kLeastStepMs, passed * kCatchUp));
  const bool is_behind = limit < wanted;
  if (is_behind && !is_behind_)
    log::Warning("retention.clock_ahead",
                 {{"behind", FormatDuration(Millis(wanted - limit))},
                  {"so", "old samples go step by step; set the clock right if it is wrong"}});
  is_behind_ = is_behind;
  return store_.DropBefore(limit);
}

}  // namespace expanse::data_plane
