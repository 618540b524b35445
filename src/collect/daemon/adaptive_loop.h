// SPDX-License-Identifier: Apache-2.0
// Work on its own thread that says itself when it wants to run next.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.h"

namespace expanse::collect::daemon {

class AdaptiveLoop {
 public:
  AdaptiveLoop() = default;
  ~AdaptiveLoop() { Stop(); }
  AdaptiveLoop(const AdaptiveLoop&) = delete;
  AdaptiveLoop& operator=(const AdaptiveLoop&) = delete;

  /// Runs fn at once and then after each delay that it returned. Once.
  void Start(std::function<Millis()> fn);
  /// Waits for the run in progress. Again: no effect.
  void Stop();
  /// The next run comes as soon as possible. From any thread, at any time.
  void Wake();

 private:
  void Run();
  std::function<Millis()> fn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace expanse::collect::daemon
