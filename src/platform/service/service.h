// SPDX-License-Identifier: Apache-2.0
// Being a service: stop on SIGINT or SIGTERM, tell systemd, periodic work with a clean end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/time.h"

namespace expanse::platform {

/// Blocks SIGINT, SIGTERM and SIGPIPE in every thread from here on; Wait returns at the first of
/// the two. Make it before any thread.
class StopSignal {
 public:
  StopSignal();
  /// Returns the signal number.
  int Wait();
  /// True when a stop signal came within the time.
  bool WaitFor(Millis timeout);
};

/// sd_notify(3) without libsystemd: no effect when NOTIFY_SOCKET is unset.
void NotifySystemd(const std::string& state);  // "READY=1", "STATUS=…"

/// Runs fn at once and then every period, on its own thread. The destructor stops and joins.
class PeriodicTask {
 public:
  PeriodicTask(std::string name, Millis period, std::function<void()> fn);
  ~PeriodicTask();
  PeriodicTask(const PeriodicTask&) = delete;
  PeriodicTask& operator=(const PeriodicTask&) = delete;
  /// Runs fn once as soon as possible, in addition to the period.
  void Wake();

 private:
  void Loop(Millis period);
  std::string name_;
  std::function<void()> fn_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace expanse::platform
