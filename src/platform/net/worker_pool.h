// SPDX-License-Identifier: Apache-2.0
// Bounded queue in front of a fixed number of threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace expanse::platform {

class WorkerPool {
 public:
  WorkerPool(int threads, int max_queued) : max_queued_(static_cast<size_t>(max_queued)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }
  ~WorkerPool() { Stop(/*run_queued=*/true); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  bool TryPost(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || queue_.size() >= max_queued_) return false;
      queue_.push_back(std::move(task));
    }
    ready_.notify_one();
    return true;
  }

  /// Joins every thread after its running task. What is queued runs too, or is forgotten.
  void Stop(bool run_queued) {
    std::deque<std::function<void()>> forgotten;  // destroyed without the lock
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      if (!run_queued) forgotten.swap(queue_);
    }
    ready_.notify_all();
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  size_t queued() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }
  int running() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        task = std::move(queue_.front());
        queue_.pop_front();
        ++running_;
      }
      task();
      task = nullptr;
      const std::lock_guard lock(mutex_);
      --running_;
    }
  }

  const size_t max_queued_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  int running_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace expanse::platform
