// SPDX-License-Identifier: Apache-2.0
// What a process costs and what is left of its disks, read from the kernel at each scrape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/metrics/metrics.h"

namespace expanse::platform {

/// process_cpu_seconds_total, process_resident_memory_bytes and the other names that Prometheus'
/// own client libraries use.
void AddProcessMetrics(MetricsRegistry& registry);

/// expanse_disk_free_bytes and expanse_disk_size_bytes of the file system that holds the directory.
void AddDiskMetrics(MetricsRegistry& registry, const std::string& directory);

struct DiskSpace {
  int64_t free_bytes = 0;  // for an account that is not root
  int64_t size_bytes = 0;
  uint64_t free_inodes = 0;
  bool has_inodes = true;  // some file systems have no fixed number of them
  bool read_only = false;
};
/// Nothing when the directory is not there.
std::optional<DiskSpace> ReadDiskSpace(const std::string& directory);

}  // namespace expanse::platform
