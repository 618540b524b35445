// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/hook_chain.h"

#include <errno.h>
#include <signal.h>

#include "collect/hook/hook_directory.h"
#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {
namespace {

constexpr int kSignals[] = {SIGPIPE, SIGXFSZ, SIGXCPU, SIGALRM, SIGCHLD, SIGSEGV,
                            SIGBUS,  SIGFPE,  SIGILL,  SIGABRT, SIGSYS};
constexpr size_t kSignalCount = sizeof kSignals / sizeof kSignals[0];
constexpr size_t kMaxMatches = 64;
constexpr size_t kMaxName = 256;  // NAME_MAX and its NUL
constexpr int kExecute = 1;       // X_OK

sys::SignalAction saved_actions[kSignalCount];
uint64_t saved_mask = 0;
char names[kMaxMatches][kMaxName];
const char* sorted[kMaxMatches];

int RunOne(const char* program, char** argv, EventBuffer* event) {
  if (sys::Access(program, kExecute) != 0) {
    event->Put("", "note", "chained hook is missing or not executable");
    event->Put("", "note", program);
    return 0;
  }
  const long child = sys::Fork();
  if (child < 0) {
    event->Put("", "note", "fork for the chained hook failed");
    return 0;
  }
  if (child == 0) {
    for (size_t i = 0; i < kSignalCount; ++i) sys::PutSignal(kSignals[i], saved_actions[i]);
    sys::SetSignalMask(saved_mask);
    // execve takes the array as non-const for historical reasons and does not change it.
    argv[0] = const_cast<char*>(program);
    const long error = sys::Execute(program, argv, sys::environment);
    sys::Exit(error == -ENOENT ? 0 : 126);
  }
  int status = 0;
  for (;;) {
    const long waited = sys::Wait(static_cast<int>(child), &status);
    if (waited == child) break;
    if (waited != -EINTR) return 0;
  }
  const int signal = status & 0x7f;  // wait(2): low seven bits, exit code in the next byte
  return signal != 0 ? 128 + signal : (status >> 8) & 0xff;
}

void Sort(size_t count) {
  for (size_t i = 1; i < count; ++i) {
    const char* name = sorted[i];
    size_t at = i;
    for (; at > 0 && strcmp(sorted[at - 1], name) > 0; --at) sorted[at] = sorted[at - 1];
    sorted[at] = name;
  }
}

}  // namespace

void SaveSignals() {
  for (size_t i = 0; i < kSignalCount; ++i) sys::GetSignal(kSignals[i], &saved_actions[i]);
  saved_mask = sys::SetSignalMask(0);
}

int RunChained(const char* pattern, char** argv, EventBuffer* event) {
  const bool wild = Find(pattern, '*') || Find(pattern, '?') || Find(pattern, '[');
  if (!wild) return RunOne(pattern, argv, event);
  const char* slash = FindLast(pattern, '/');
  if (slash == nullptr) return 0;
  char directory[1024];
  const auto directory_size = static_cast<size_t>(slash - pattern);
  if (directory_size >= sizeof directory) return 0;
  memcpy(directory, pattern, directory_size);
  directory[directory_size] = '\0';
  size_t count = 0;
  const bool opened = VisitDirectory(directory, [&](const char* name) {
    const size_t size = strlen(name) + 1;
    if (size > kMaxName || !MatchesPattern(name, slash + 1)) return true;
    memcpy(names[count], name, size);
    sorted[count] = names[count];
    return ++count < kMaxMatches;
  });
  if (!opened) {
    event->Put("", "note", "directory of the chained hooks is missing");
    return 0;
  }
  Sort(count);
  int status = 0;
  for (size_t i = 0; i < count && status == 0; ++i) {
    char program[2048];
    const char* parts[] = {directory, "/", sorted[i]};
    if (Concat(program, sizeof program, parts, 3)) status = RunOne(program, argv, event);
  }
  return status;
}

}  // namespace expanse::collect::hook
