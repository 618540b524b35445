// SPDX-License-Identifier: Apache-2.0
// Reading a directory without a C library.
#pragma once

#include <cstdint>

#include <fcntl.h>

#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {

/// Calls visit with each name until it returns false. False when the directory cannot be opened.
template <typename Visit>
bool VisitDirectory(const char* path, Visit visit) {
  const int fd = static_cast<int>(sys::Open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) return false;
  // struct linux_dirent64: inode (8), offset (8), record length (2), type (1), name.
  constexpr long kLength = 16;
  constexpr long kName = 19;
  alignas(8) char buffer[4096];
  bool more = true;
  long size = 0;
  while (more && (size = sys::ListDirectory(fd, buffer, sizeof buffer)) > 0) {
    for (long at = 0; more && at + kName < size;) {
      uint16_t length = 0;
      __builtin_memcpy(&length, buffer + at + kLength, sizeof length);
      if (length == 0) break;
      more = visit(static_cast<const char*>(buffer + at + kName));
      at += length;
    }
  }
  sys::Close(fd);
  return true;
}

}  // namespace expanse::collect::hook
