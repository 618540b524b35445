// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/hook_sys.h"

#include <cstring>

#include <asm/unistd.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>

// The compiler calls these by name for copies of structures and cleared arrays; the rest is
// declared by <cstring> and defined here because there is no C library to do it.
extern "C" {

void* memcpy(void* __restrict out, const void* __restrict in, size_t n) {
  auto* o = static_cast<char*>(out);
  const auto* i = static_cast<const char*>(in);
  while (n-- > 0) *o++ = *i++;
  return out;
}
void* memset(void* out, int value, size_t n) {
  auto* o = static_cast<char*>(out);
  while (n-- > 0) *o++ = static_cast<char>(value);
  return out;
}
size_t strlen(const char* text) {
  size_t n = 0;
  while (text[n] != '\0') ++n;
  return n;
}
int strncmp(const char* a, const char* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (a[i] != b[i]) return static_cast<unsigned char>(a[i]) - static_cast<unsigned char>(b[i]);
    if (a[i] == '\0') return 0;
  }
  return 0;
}
int strcmp(const char* a, const char* b) { return strncmp(a, b, SIZE_MAX); }
}

namespace expanse::collect::hook::sys {

char** environment = nullptr;

namespace {

#if defined(__x86_64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result = number;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}
constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER: x86 delivers no signal without it
#elif defined(__aarch64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                   : "memory", "cc");
  return x0;
}
constexpr unsigned long kRestorer = 0;
#else
#error "expanse-hook: no system calls for this processor"
#endif

template <typename T>
long Arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

constexpr long kSignalSetBytes = sizeof(uint64_t);
void NoReturn() { Exit(0); }

}  // namespace

long Open(const char* path, int flags, int mode) {
  return Call(__NR_openat, AT_FDCWD, Arg(path), flags, mode);
}
long Read(int fd, void* out, size_t size) {
  return Call(__NR_read, fd, Arg(out), static_cast<long>(size));
}
long Write(int fd, const void* bytes, size_t size) {
  return Call(__NR_write, fd, Arg(bytes), static_cast<long>(size));
}
long Close(int fd) { return Call(__NR_close, fd); }
long ChangeMode(int fd, unsigned mode) { return Call(__NR_fchmod, fd, static_cast<long>(mode)); }
long Rename(const char* from, const char* to) {
  // Not renameat2, which kernels of the oldest clusters (3.10) lack.
  return Call(__NR_renameat, AT_FDCWD, Arg(from), AT_FDCWD, Arg(to));
}
long Unlink(const char* path) { return Call(__NR_unlinkat, AT_FDCWD, Arg(path), 0); }
long Access(const char* path, int mode) { return Call(__NR_faccessat, AT_FDCWD, Arg(path), mode); }
long ReadLink(const char* path, char* out, size_t size) {
  return Call(__NR_readlinkat, AT_FDCWD, Arg(path), Arg(out), static_cast<long>(size));
}
long ListDirectory(int fd, void* out, size_t size) {
  return Call(__NR_getdents64, fd, Arg(out), static_cast<long>(size));
}

int64_t RealTimeNs() {
  struct {
    int64_t seconds;
    int64_t nanoseconds;
  } now{};
  Call(__NR_clock_gettime, CLOCK_REALTIME, Arg(&now));
  return now.seconds * 1'000'000'000 + now.nanoseconds;
}
unsigned UserId() { return static_cast<unsigned>(Call(__NR_getuid)); }
int ProcessId() { return static_cast<int>(Call(__NR_getpid)); }

void SetTimer(unsigned seconds) {
  const int64_t timer[4] = {0, 0, seconds, 0};  // struct itimerval: no interval, first expiry
  Call(__NR_setitimer, ITIMER_REAL, Arg(timer), 0);
}

long Fork() {
  constexpr long kSigChld = 17;
  return Call(__NR_clone, kSigChld);
}
long Execute(const char* program, char* const* argv, char* const* env) {
  return Call(__NR_execve, Arg(program), Arg(argv), Arg(env));
}
long Wait(int pid, int* status) { return Call(__NR_wait4, pid, Arg(status), 0, 0); }
void Exit(int status) {
  for (;;) Call(__NR_exit_group, status);
}

long GetSignal(int number, SignalAction* out) {
  return Call(__NR_rt_sigaction, number, 0, Arg(out), kSignalSetBytes);
}
long PutSignal(int number, const SignalAction& action) {
  return Call(__NR_rt_sigaction, number, Arg(&action), 0, kSignalSetBytes);
}
long HandleSignal(int number, void (*handler)(int)) {
  SignalAction action;
  action.handler = handler;
  action.flags = kRestorer;
  action.restorer = NoReturn;
  return PutSignal(number, action);
}
uint64_t SetSignalMask(uint64_t mask) {
  constexpr long kSetMask = 2;  // SIG_SETMASK
  uint64_t before = 0;
  Call(__NR_rt_sigprocmask, kSetMask, Arg(&mask), Arg(&before), kSignalSetBytes);
  return before;
}

const char* GetEnv(const char* name) {
  const size_t n = strlen(name);
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=') return *entry + n + 1;
  return nullptr;
}

}  // namespace expanse::collect::hook::sys
