// SPDX-License-Identifier: Apache-2.0
// Time as an injected dependency: wall time for records, monotonic time for intervals.
#pragma once

#include <mutex>

#include "base/time.h"

namespace expanse::platform {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual MonoTime Mono() const = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime Now() const override {
    return std::chrono::floor<Millis>(std::chrono::system_clock::now());
  }
  MonoTime Mono() const override { return std::chrono::steady_clock::now(); }
};

/// A clock that moves only when told; wall and monotonic time may be moved apart (clock jumps).
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start) : now_(start) {}
  WallTime Now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  MonoTime Mono() const override {
    const std::lock_guard lock(mutex_);
    return mono_;
  }
  void Advance(Millis d) {
    const std::lock_guard lock(mutex_);
    now_ += d;
    mono_ += d;
  }
  void JumpWall(Millis d) {
    const std::lock_guard lock(mutex_);
    now_ += d;
  }

 private:
  mutable std::mutex mutex_;
  WallTime now_;
  MonoTime mono_{};
};

}  // namespace expanse::platform
