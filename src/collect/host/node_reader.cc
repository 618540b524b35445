// SPDX-License-Identifier: Apache-2.0
#include "collect/host/node_reader.h"

#include <string>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"

namespace expanse::collect::host {
namespace {

/// "MemAvailable:   123 kB" as bytes.
std::optional<int64_t> MemInfo(std::string_view text, std::string_view key) {
  for (const auto line : Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    auto value = Trim(line.substr(key.size()));
    if (value.ends_with("kB")) value = Trim(value.substr(0, value.size() - 2));
    const auto kib = ParseInt64(value);
    if (kib) return *kib * 1024;
  }
  return std::nullopt;
}

/// The fields of proc(5), /proc/stat, "cpu": user nice system idle iowait irq softirq steal guest
/// guest_nice. guest is part of user already.
std::optional<int64_t> BusyTicks(std::string_view line) {
  constexpr size_t kIdle = 3;
  constexpr size_t kIowait = 4;
  constexpr size_t kSteal = 7;
  int64_t busy = 0;
  size_t index = 0;
  for (const auto word : Split(line, ' ')) {
    if (word.empty() || word == "cpu") continue;
    const auto ticks = ParseInt64(word);
    if (!ticks) return std::nullopt;
    if (index != kIdle && index != kIowait && index <= kSteal) busy += *ticks;
    ++index;
  }
  return index > kIowait ? std::optional<int64_t>(busy) : std::nullopt;
}

}  // namespace

NodeUsage ReadNode(const platform::Fs& fs, int64_t ticks_per_second) {
  NodeUsage node;
  const std::string meminfo = ReadText(fs, "/proc/meminfo");
  node.memory_available = MemInfo(meminfo, "MemAvailable:");
  node.memory_total = MemInfo(meminfo, "MemTotal:");
  constexpr size_t kMaxStat = 1 << 20;  // a line a CPU and one long line of interrupts
  const auto stat = fs.Read("/proc/stat", kMaxStat);
  if (!stat.ok()) return node;
  int64_t cpus = 0;
  for (const auto line : Split(*stat, '\n')) {
    if (line.starts_with("cpu ")) {
      if (const auto busy = BusyTicks(line))
        node.cpu_busy_seconds = static_cast<double>(*busy) / static_cast<double>(ticks_per_second);
    } else if (line.starts_with("cpu")) {
      ++cpus;
    }
  }
  if (cpus > 0) node.cpus = cpus;
  return node;
}

}  // namespace expanse::collect::host
