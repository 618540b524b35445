// SPDX-License-Identifier: Apache-2.0
// The node as a whole, from /proc and /sys: capacity, what is free, and what all jobs and
// everything else on it use together.
#pragma once

#include <cstdint>
#include <optional>

#include "collect/host/cgroup_parse.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

struct NodeUsage {
  std::optional<double> cpu_busy_seconds;  // over all CPUs since boot; idle and iowait left out
  std::optional<double> cpu_iowait_seconds;
  std::optional<int64_t> memory_available;  // bytes; MemAvailable
  std::optional<int64_t> memory_total;      // bytes
  std::optional<int64_t> swap_used;         // bytes
  std::optional<int64_t> cpus;              // online
};

/// What is read at a slower cadence.
struct NodeTraffic {
  IoBytes network;  // received, sent: over the node's own devices, without lo and virtual ones
  IoBytes disk;     // over whole disks, without partitions and devices that lie on others
  Pressure cpu_pressure;
  Pressure memory_pressure;
  Pressure io_pressure;
};

/// Units of /proc/stat are ticks of 1/ticks_per_second (sysconf(_SC_CLK_TCK)).
NodeUsage ReadNode(const platform::Fs& fs, int64_t ticks_per_second = 100);
NodeTraffic ReadNodeTraffic(const platform::Fs& fs);

}  // namespace expanse::collect::host
