// SPDX-License-Identifier: Apache-2.0
#include "collect/host/node_reader.h"

#include <string>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"

namespace expanse::collect::host {
namespace {

/// "MemAvailable:   123 kB" as bytes.
std::optional<int64_t> KibOf(std::string_view value) {
  value = Trim(value);
  if (value.ends_with("kB")) value = Trim(value.substr(0, value.size() - 2));
  return Times(CountOf(value), 1024);
}

void ReadMeminfo(const platform::Fs& fs, NodeUsage* node) {
  std::optional<int64_t> swap_total;
  std::optional<int64_t> swap_free;
  const std::string meminfo = ReadText(fs, "/proc/meminfo");
  std::string_view text = meminfo;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    std::optional<int64_t>* out = key == "MemAvailable" ? &node->memory_available
                                  : key == "MemTotal"   ? &node->memory_total
                                  : key == "SwapTotal"  ? &swap_total
                                  : key == "SwapFree"   ? &swap_free
                                                        : nullptr;
    if (out != nullptr) *out = KibOf(line.substr(colon + 1));
  }
  if (swap_total && swap_free) node->swap_used = *swap_total - *swap_free;
}

struct CpuTicks {
  int64_t busy = 0;
  int64_t iowait = 0;
};

/// The fields of proc(5), /proc/stat, "cpu": user nice system idle iowait irq softirq steal guest
/// guest_nice. guest is part of user already.
std::optional<CpuTicks> TicksOf(std::string_view line) {
  constexpr size_t kIdle = 3;
  constexpr size_t kIowait = 4;
  constexpr size_t kSteal = 7;
  CpuTicks sum;
  size_t index = 0;
  for (const auto word : Split(line, ' ')) {
    if (word.empty() || word == "cpu") continue;
    const auto ticks = CountOf(word);
    if (!ticks) return std::nullopt;
    if (index == kIowait) sum.iowait = *ticks;
    if (index != kIdle && index != kIowait && index <= kSteal) sum.busy += *ticks;
    ++index;
  }
  return index > kIowait ? std::optional<CpuTicks>(sum) : std::nullopt;
}

/// Interfaces with a device behind them: a bridge, a bond or a container's end would count the
/// same bytes again.
IoBytes ReadNetwork(const platform::Fs& fs) {
  IoBytes sum;
  const auto names = fs.List("/sys/class/net");
  if (!names.ok()) return sum;
  for (const std::string& name : *names) {
    const std::string directory = "/sys/class/net/" + name;
    if (!fs.Exists(directory + "/device")) continue;
    const auto add = [&](const char* file, std::optional<int64_t>* out) {
      *out = Sum(out->value_or(0), ReadCount(fs, directory + "/statistics/" + file));
    };
    add("rx_bytes", &sum.read);
    add("tx_bytes", &sum.written);
  }
  return sum;
}

/// /sys/block lists whole disks; those that lie on others (dm, md, loop) have no device.
IoBytes ReadDisks(const platform::Fs& fs) {
  constexpr int64_t kSector = 512;  // in this file, whatever the disk's own is
  constexpr size_t kRead = 2;
  constexpr size_t kWritten = 6;
  IoBytes sum;
  const auto names = fs.List("/sys/block");
  if (!names.ok()) return sum;
  for (const std::string& name : *names) {
    const std::string directory = "/sys/block/" + name;
    if (!fs.Exists(directory + "/device")) continue;
    const std::string stat = ReadText(fs, directory + "/stat");
    size_t index = 0;
    for (const auto word : Split(Trim(stat), ' ')) {
      if (word.empty()) continue;
      if (index == kRead) sum.read = Sum(sum.read.value_or(0), Times(CountOf(word), kSector));
      if (index == kWritten)
        sum.written = Sum(sum.written.value_or(0), Times(CountOf(word), kSector));
      ++index;
    }
  }
  return sum;
}

}  // namespace

NodeUsage ReadNode(const platform::Fs& fs, int64_t ticks_per_second) {
  NodeUsage node;
  ReadMeminfo(fs, &node);
  constexpr size_t kMaxStat = 1 << 20;  // a line a CPU and one long line of interrupts
  const auto stat = fs.Read("/proc/stat", kMaxStat);
  if (!stat.ok()) return node;
  int64_t cpus = 0;
  std::string_view text = *stat;
  while (text.starts_with("cpu")) {
    const std::string_view line = TakeLine(&text);
    if (!line.starts_with("cpu ")) {
      ++cpus;
    } else if (const auto ticks = TicksOf(line)) {
      const auto rate = static_cast<double>(ticks_per_second);
      node.cpu_busy_seconds = static_cast<double>(ticks->busy) / rate;
      node.cpu_iowait_seconds = static_cast<double>(ticks->iowait) / rate;
    }
  }
  if (cpus > 0) node.cpus = cpus;
  return node;
}

NodeTraffic ReadNodeTraffic(const platform::Fs& fs) {
  NodeTraffic traffic;
  traffic.network = ReadNetwork(fs);
  traffic.disk = ReadDisks(fs);
  traffic.cpu_pressure = ParsePressure(ReadText(fs, "/proc/pressure/cpu"));
  traffic.memory_pressure = ParsePressure(ReadText(fs, "/proc/pressure/memory"));
  traffic.io_pressure = ParsePressure(ReadText(fs, "/proc/pressure/io"));
  return traffic;
}

}  // namespace expanse::collect::host
