// SPDX-License-Identifier: Apache-2.0
#include "platform/metrics/process_metrics.h"

#include <ctime>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/strings.h"
#include "platform/fs/fs.h"

namespace expanse::platform {
namespace {

constexpr size_t kProcFileBytes = 64 << 10;

std::optional<double> CpuSeconds() {
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return std::nullopt;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// A field of /proc/self/statm, in pages: 0 virtual, 1 resident.
std::optional<double> MemoryBytes(size_t field) {
  const auto text = Fs().Read("/proc/self/statm", kProcFileBytes);
  if (!text.ok()) return std::nullopt;
  const auto fields = Split(*text, ' ');
  const auto pages = field < fields.size() ? ParseInt64(fields[field]) : std::nullopt;
  if (!pages) return std::nullopt;
  return static_cast<double>(*pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// A field of /proc/self/stat after the name in parentheses; proc(5)'s numbers, from 3 on.
std::optional<int64_t> StatField(size_t number) {
  const auto text = Fs().Read("/proc/self/stat", kProcFileBytes);
  if (!text.ok()) return std::nullopt;
  const size_t end = text->rfind(')');
  if (end == std::string::npos || end + 2 > text->size()) return std::nullopt;
  const auto fields = Split(std::string_view(*text).substr(end + 2), ' ');
  if (number - 3 >= fields.size()) return std::nullopt;
  return ParseInt64(fields[number - 3]);
}

std::optional<double> Threads() {
  const auto threads = StatField(20);
  return threads ? std::optional<double>(static_cast<double>(*threads)) : std::nullopt;
}

std::optional<double> StartTime() {
  const auto ticks = StatField(22);  // since boot
  const auto stat = Fs().Read("/proc/stat", 4 << 20);
  if (!ticks || !stat.ok()) return std::nullopt;
  const size_t at = stat->find("\nbtime ");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*stat).substr(at + 7);
  const auto boot = ParseInt64(rest.substr(0, rest.find('\n')));
  if (!boot) return std::nullopt;
  return static_cast<double>(*boot) +
         static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<double> OpenDescriptors() {
  const auto names = Fs().List("/proc/self/fd");
  // One of them is the listing's own.
  return names.ok() ? std::optional<double>(static_cast<double>(names->size() - 1)) : std::nullopt;
}

std::optional<double> MostDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void AddProcessMetrics(MetricsRegistry& registry) {
  registry.AddCounter("process_cpu_seconds_total", "User and system CPU time of this process.", {},
                      CpuSeconds);
  registry.AddGauge("process_resident_memory_bytes", "Resident memory of this process.",
                    [] { return MemoryBytes(1); });
  registry.AddGauge("process_virtual_memory_bytes", "Virtual memory of this process.",
                    [] { return MemoryBytes(0); });
  registry.AddGauge("process_threads", "Threads of this process.", Threads);
  registry.AddGauge("process_open_fds", "Open file descriptors.", OpenDescriptors);
  registry.AddGauge("process_max_fds", "Most file descriptors that may be open.", MostDescriptors);
  registry.AddGauge("process_start_time_seconds", "Start of this process since the epoch.",
                    StartTime);
}

std::optional<DiskSpace> ReadDiskSpace(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return std::nullopt;
  DiskSpace out;
  out.free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  out.size_bytes = static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_frsize);
  out.has_inodes = info.f_files > 0;
  out.free_inodes = info.f_favail;
  out.read_only = (info.f_flag & ST_RDONLY) != 0;
  return out;
}

void AddDiskMetrics(MetricsRegistry& registry, const std::string& directory) {
  const auto add = [&](const char* name, const char* help, auto field) {
    registry.AddGauge(name, help, {{"directory", directory}},
                      [directory, field]() -> std::optional<double> {
                        const auto space = ReadDiskSpace(directory);
                        if (!space) return std::nullopt;
                        return static_cast<double>((*space).*field);
                      });
  };
  add("expanse_disk_free_bytes", "Free space of the file system that holds the directory.",
      &DiskSpace::free_bytes);
  add("expanse_disk_size_bytes", "Size of the file system that holds the directory.",
      &DiskSpace::size_bytes);
}

}  // namespace expanse::platform
