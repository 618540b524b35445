// SPDX-License-Identifier: Apache-2.0
// Wall and monotonic time as distinct types, RFC 3339, and deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse {

/// Wall-clock time, milliseconds since the Unix epoch, UTC. The unit of every stored series.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;
/// Monotonic time: for intervals and time-outs, never stored.
using MonoTime = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

constexpr WallTime FromUnixMillis(int64_t ms) { return WallTime(Millis(ms)); }
constexpr int64_t ToUnixMillis(WallTime t) { return t.time_since_epoch().count(); }

/// "2026-11-30T21:16:07.000Z"; milliseconds always, UTC always.
std::string FormatRfc3339(WallTime t);
/// Accepts any offset and up to nanoseconds (cut to milliseconds).
Result<WallTime> ParseRfc3339(std::string_view text);

/// Go-style duration: "90s", "1m30s", "2h", "250ms", "1d"; a sign is refused.
Result<Millis> ParseDuration(std::string_view text);
/// The shortest such spelling, e.g. "1m30s".
std::string FormatDuration(Millis d);

/// A point in monotonic time by which a call has to be over.
class Deadline {
 public:
  explicit Deadline(MonoTime at) : at_(at) {}
  static Deadline In(Millis d) { return Deadline(std::chrono::steady_clock::now() + d); }

  MonoTime at() const { return at_; }
  bool Expired() const { return std::chrono::steady_clock::now() >= at_; }
  /// Time left; 0 when expired.
  Millis Remaining() const {
    auto left = std::chrono::duration_cast<Millis>(at_ - std::chrono::steady_clock::now());
    return left.count() > 0 ? left : Millis(0);
  }

 private:
  MonoTime at_;
};

}  // namespace expanse
