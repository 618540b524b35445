// SPDX-License-Identifier: Apache-2.0
// Allocation-free input and output of the hook program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/hook/event_format.h"
#include "collect/hook/hook_text.h"

namespace expanse::collect::hook {

/// The event being built; what does not fit is left out, the end mark always fits.
class EventBuffer {
 public:
  EventBuffer();
  void Put(const char* prefix, const char* key, const char* value);
  void PutNumber(const char* prefix, const char* key, int64_t value);
  void Finish();
  const char* data() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  char bytes_[kMaxEventBytes];
  size_t size_ = 0;
};

/// Reads a small file into out with a NUL behind it; false when it cannot be opened or is empty.
bool ReadSmall(const char* path, char* out, size_t size);

/// Writes bytes as a new file in directory, first under a temporary name. Any failure leaves
/// nothing behind where that is possible; the caller exits 0 all the same.
bool WriteEventFile(const char* directory, const char* kind, int64_t time_ns,
                    const EventBuffer& event);

}  // namespace expanse::collect::hook
