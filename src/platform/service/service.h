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

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in every thread from here on; Wait returns at the
/// first of the first two. Make it before any thread.
class StopSignal {
 public:
  StopSignal();
  /// Returns the signal number. on_reload is called at each SIGHUP, and on_period as often as the
  /// period says; both on this thread.
  int Wait(const std::function<void()>& on_reload = nullptr, Millis period = Millis(0),
           const std::function<void()>& on_period = nullptr);
  /// True when a stop signal came within the time.
  bool WaitFor(Millis timeout);
};

/// While it lives the process has this long to stop; then it is ended with exit status 1 and a log
/// line. For the end of main: everything that was acknowledged is durable by then, and a thread
/// that hangs must not keep a service from restarting.
class StopDeadline {
 public:
  explicit StopDeadline(Millis timeout);
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
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
