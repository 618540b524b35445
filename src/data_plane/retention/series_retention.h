// SPDX-License-Identifier: Apache-2.0
// Raw samples older than the retention go; a clock that is wrong must not take the others along.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "platform/clock/clock.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

class SeriesRetention {
 public:
  /// keep: 0 keeps for good. store and clock outlive this.
  SeriesRetention(storage::SeriesStore& store, const platform::Clock& clock, Millis keep)
      : store_(store), clock_(clock), keep_(keep) {}

  /// Drops what is older than now less the retention. Dropping cannot be undone, so that its limit
  /// moves by at most 24 times the time that passed by the monotonic clock since the last call (at
  /// least a minute): a clock that jumps a year ahead costs a day of samples an hour until it is
  /// set right, and says so; after a real pause of a year the space is back within 15 days.
  Status Step();

 private:
  storage::SeriesStore& store_;
  const platform::Clock& clock_;
  const Millis keep_;
  std::optional<MonoTime> last_;
  bool is_behind_ = false;
};

}  // namespace expanse::data_plane
