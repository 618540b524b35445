// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/adaptive_loop.h"

namespace expanse::collect::daemon {

void AdaptiveLoop::Start(std::function<Millis()> fn) {
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
    const Millis delay = fn_();
    lock.lock();
    changed_.wait_for(lock, delay, [this] { return stop_ || woken_; });
  }
}

}  // namespace expanse::collect::daemon
