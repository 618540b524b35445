// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "collect/hook/event.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto event = expanse::collect::hook::ParseHookEvent(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (event.ok() && event->time_ns <= 0) std::abort();
  return 0;
}
