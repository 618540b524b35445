// SPDX-License-Identifier: Apache-2.0
// Where the kernel enters the hook program: no C library runs before or after.
#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {
int Main(int argc, char** argv);
}

/// stack: argc, argv[0..argc-1], null, the environment, null (System V ABI, process start).
extern "C" [[noreturn]] [[gnu::used]] void ExpanseHookStart(long* stack) {
  namespace hook = expanse::collect::hook;
  const long argc = stack[0];
  auto** argv = reinterpret_cast<char**>(stack + 1);
  hook::sys::environment = argv + argc + 1;
  hook::sys::Exit(hook::Main(static_cast<int>(argc), argv));
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call ExpanseHookStart\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl ExpanseHookStart\n");
#endif
