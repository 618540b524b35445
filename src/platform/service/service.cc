// SPDX-License-Identifier: Apache-2.0
#include "platform/service/service.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <optional>

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

namespace expanse::platform {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) ::sigaddset(&set, number);
  return set;
}

/// The signal, or 0 after the time; no time: waits for good.
int NextSignal(const sigset_t& set, std::optional<Millis> timeout) {
  while (true) {
    timespec ts{};
    if (timeout) {
      ts.tv_sec = timeout->count() / 1000;
      ts.tv_nsec = (timeout->count() % 1000) * 1'000'000;
    }
    const int number = timeout ? ::sigtimedwait(&set, nullptr, &ts) : ::sigwaitinfo(&set, nullptr);
    if (number > 0) return number;
    if (errno == EAGAIN) return 0;
    // EINTR: another signal's handler ran (a debugger, a profiler).
  }
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = SetOf({SIGINT, SIGTERM, SIGHUP});
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT: ignoring is async-signal-safe; writes return EPIPE
}

int StopSignal::Wait(const std::function<void()>& on_reload, Millis period,
                     const std::function<void()>& on_period) {
  const sigset_t set = SetOf({SIGINT, SIGTERM, SIGHUP});
  const std::optional<Millis> timeout = on_period ? std::optional(period) : std::nullopt;
  while (true) {
    const int number = NextSignal(set, timeout);
    if (number == SIGINT || number == SIGTERM) return number;
    if (number == SIGHUP && on_reload) on_reload();
    if (number == 0) on_period();
  }
}

bool StopSignal::WaitFor(Millis timeout) {
  return NextSignal(SetOf({SIGINT, SIGTERM}), timeout) > 0;
}

StopDeadline::StopDeadline(Millis timeout)
    : thread_([this, timeout] {
        std::unique_lock lock(mutex_);
        if (wake_.wait_for(lock, timeout, [this] { return stopped_; })) return;
        log::Error("service.stop_overran", {{"after_ms", static_cast<int64_t>(timeout.count())}});
        ::_exit(1);
      }) {}

StopDeadline::~StopDeadline() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void NotifySystemd(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || std::strlen(path) >= sizeof(sockaddr_un::sun_path)) return;
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  [[maybe_unused]] const ssize_t n = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                                              reinterpret_cast<const sockaddr*>(&address), length);
  ::close(fd);
}

PeriodicTask::PeriodicTask(std::string name, Millis period, std::function<void()> fn)
    : name_(std::move(name)), fn_(std::move(fn)), thread_([this, period] { Loop(period); }) {}

PeriodicTask::~PeriodicTask() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PeriodicTask::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

void PeriodicTask::Loop(Millis period) {
  ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
  // A fixed grid: a slow run does not shift the following ones, missed turns are skipped.
  MonoTime next = std::chrono::steady_clock::now();
  while (true) {
    fn_();
    next += period;
    const MonoTime now = std::chrono::steady_clock::now();
    if (next < now) next = now + period - (now - next) % period;
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, next, [this] { return stop_ || woken_; });
    if (stop_) return;
    woken_ = false;
  }
}

}  // namespace expanse::platform
