// SPDX-License-Identifier: Apache-2.0
// Work on its own thread that says itself when it wants to run next.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.h"

namespace expanse::collect::daemon {

/// When a loop runs next.
struct Pause {
  Millis wish{0};   // unless it is woken
  Millis least{0};  // also when it is woken
};

struct PollLimits {
  Millis usual{10'000};
  Millis fastest{2'000};
  Millis slowest{60'000};
  int rest_per_work = 5;  // a round may take at most this part of the time
};
/// After a round of polling that took `work`; soon: something is owed. A slow or failing source is
/// not asked more often because somebody waits for it.
Pause PauseAfterRound(bool ok, bool soon, Millis work, const PollLimits& limits);

class AdaptiveLoop {
 public:
  AdaptiveLoop() = default;
  ~AdaptiveLoop() { Stop(); }
  AdaptiveLoop(const AdaptiveLoop&) = delete;
  AdaptiveLoop& operator=(const AdaptiveLoop&) = delete;

  /// Runs fn at once and then after each pause that it returned. Once.
  void Start(std::function<Pause()> fn);
  /// Waits for the run in progress. Again: no effect.
  void Stop();
  /// The next run comes as soon as the least pause allows. From any thread, at any time.
  void Wake();

 private:
  void Run();
  std::function<Pause()> fn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace expanse::collect::daemon
