// SPDX-License-Identifier: Apache-2.0
#include "collect/host/node_sampler.h"

#include <string_view>

#include <unistd.h>

#include "base/strings.h"
#include "collect/host/node_reader.h"

namespace expanse::collect::host {
namespace {

constexpr uint64_t kSlowReads = 10;
constexpr double kUsPerSecond = 1e6;

/// Adds samples of series that belong to no run.
class Adder {
 public:
  Adder(std::string_view source, WallTime now, SampleBatch* batch) : now_(now), batch_(batch) {
    id_.source = source;
    id_.unit = source;  // the same metric of two sources is two series
  }
  void operator()(std::string_view metric, std::optional<double> value) {
    id_.metric = metric;
    batch_->Add(id_, now_, value);
  }
  void operator()(std::string_view metric, std::optional<int64_t> value, double divisor = 1) {
    if (value) (*this)(metric, std::optional<double>(static_cast<double>(*value) / divisor));
  }

 private:
  SeriesId id_;
  WallTime now_;
  SampleBatch* batch_;
};

/// Resident bytes of this process (statm, second field, in pages).
std::optional<int64_t> OwnResident(const platform::Fs& fs) {
  const std::string statm = ReadText(fs, "/proc/self/statm");
  const auto fields = Split(Trim(statm), ' ');
  if (fields.size() < 2) return std::nullopt;
  return Times(CountOf(fields[1]), ::sysconf(_SC_PAGESIZE));
}

}  // namespace

NodeSampler::NodeSampler(const platform::Fs& fs) : fs_(fs) {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (ticks > 0) ticks_per_second_ = ticks;
}

void NodeSampler::Read(WallTime now, MonoTime mono, const JobsUse& jobs, SampleBatch* batch) {
  Adder add("proc", now, batch);
  const NodeUsage node = ReadNode(fs_, ticks_per_second_);
  if (node.cpu_busy_seconds && busy_seconds_ && last_ && mono > *last_) {
    const std::chrono::duration<double> elapsed = mono - *last_;
    const double busy = *node.cpu_busy_seconds - *busy_seconds_;
    if (busy >= 0) add("node-cpu", std::optional<double>(busy / elapsed.count()));
  }
  busy_seconds_ = node.cpu_busy_seconds;
  last_ = mono;
  add("node-memory-available", node.memory_available);
  Adder add_jobs("cgroup", now, batch);
  add_jobs("node-jobs", std::optional<int64_t>(jobs.jobs));
  add_jobs("node-jobs-cpu", std::optional<double>(jobs.cores));
  add_jobs("node-jobs-memory", std::optional<int64_t>(jobs.memory));
  if (reads_++ % kSlowReads != 0) return;

  add("node-cpus", node.cpus);
  add("node-memory-total", node.memory_total);
  add("node-swap-used", node.swap_used);
  add("node-cpu-iowait", node.cpu_iowait_seconds);
  const NodeTraffic traffic = ReadNodeTraffic(fs_);
  add("node-network-receive", traffic.network.read);
  add("node-network-transmit", traffic.network.written);
  add("node-disk-read", traffic.disk.read);
  add("node-disk-write", traffic.disk.written);
  add("node-pressure-cpu", traffic.cpu_pressure.some_us, kUsPerSecond);
  add("node-pressure-memory", traffic.memory_pressure.some_us, kUsPerSecond);
  add("node-pressure-memory-full", traffic.memory_pressure.full_us, kUsPerSecond);
  add("node-pressure-io", traffic.io_pressure.some_us, kUsPerSecond);
  add("node-pressure-io-full", traffic.io_pressure.full_us, kUsPerSecond);
}

void NodeSampler::AddOwnCost(WallTime now, const CollectorCost& cost, double all_cpu_seconds,
                             uint64_t late_ticks, SampleBatch* batch) {
  if (costs_++ % kSlowReads != 0) return;
  const auto add = [&](std::string_view source, std::optional<double> cpu_seconds) {
    Adder(source, now, batch)("collector-cpu", cpu_seconds);
  };
  add("cgroup", cost.cgroup);
  add("proc", cost.processes);
  add("taskstats", cost.taskstats);
  add("collector", all_cpu_seconds + cost.taskstats);
  Adder own("collector", now, batch);
  own("collector-memory", OwnResident(fs_));
  own("collector-late-ticks", std::optional<int64_t>(static_cast<int64_t>(late_ticks)));
}

}  // namespace expanse::collect::host
