// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/adaptive_loop.h"

#include <algorithm>

namespace expanse::collect::daemon {

Pause PauseAfterRound(bool ok, bool soon, Millis work, const PollLimits& limits) {
  const Millis rest = work * limits.rest_per_work;
  Pause pause;
  pause.wish = std::min(limits.slowest, std::max(ok && soon ? limits.fastest : limits.usual, rest));
  pause.least = ok ? std::min(limits.slowest, std::max(limits.fastest, rest)) : pause.wish;
  return pause;
}

void AdaptiveLoop::Start(std::function<Pause()> fn) {
  fn_ = std::move(fn);
  thread_ = std::thread([this] { Run(); });
}

void AdaptiveLoop::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AdaptiveLoop::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void AdaptiveLoop::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    woken_ = false;
    lock.unlock();
    const Pause pause = fn_();
    lock.lock();
    // A wake in the meantime is remembered.
    if (changed_.wait_for(lock, pause.least, [this] { return stop_; })) return;
    if (pause.wish > pause.least)
      changed_.wait_for(lock, pause.wish - pause.least, [this] { return stop_ || woken_; });
  }
}

}  // namespace expanse::collect::daemon
