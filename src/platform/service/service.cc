// SPDX-License-Identifier: Apache-2.0
#include "platform/service/service.h"

#include <cstdlib>
#include <cstring>
#include <ctime>

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace expanse::platform {
namespace {

sigset_t StopSet() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  sigset_t set = StopSet();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT: ignoring is async-signal-safe; writes return EPIPE
}

int StopSignal::Wait() {
  const sigset_t set = StopSet();
  int number = 0;
  ::sigwait(&set, &number);
  return number;
}

bool StopSignal::WaitFor(Millis timeout) {
  const sigset_t set = StopSet();
  timespec ts{};
  ts.tv_sec = timeout.count() / 1000;
  ts.tv_nsec = (timeout.count() % 1000) * 1'000'000;
  return ::sigtimedwait(&set, nullptr, &ts) > 0;
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
