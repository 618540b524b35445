// SPDX-License-Identifier: Apache-2.0
// The node as a whole, from /proc.
#pragma once

#include <cstdint>
#include <optional>

#include "platform/fs/fs.h"

namespace expanse::collect::host {

struct NodeUsage {
  std::optional<double> cpu_busy_seconds;   // over all CPUs since boot; idle and iowait left out
  std::optional<int64_t> memory_available;  // bytes; MemAvailable
  std::optional<int64_t> memory_total;      // bytes
  std::optional<int64_t> cpus;              // online
};

/// Units of /proc/stat are ticks of 1/ticks_per_second (sysconf(_SC_CLK_TCK)).
NodeUsage ReadNode(const platform::Fs& fs, int64_t ticks_per_second = 100);

}  // namespace expanse::collect::host
