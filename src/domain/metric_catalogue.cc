// SPDX-License-Identifier: Apache-2.0
#include "domain/metric_catalogue.h"

#include <array>

namespace expanse::domain {
namespace {

using enum MetricKind;

constexpr auto kCatalogue = std::to_array<MetricInfo>({
    {"cpu", "cores", kGauge, "cgroup", "step", 1,
     "cores in use, over the time since the last sample"},
    {"memory", "bytes", kGauge, "cgroup", "step", 1,
     "memory charged to the cgroup, with page cache (what the limit is enforced on)"},
    {"memory-anon", "bytes", kGauge, "cgroup", "step", 1, "anonymous memory (heap, stacks)"},
    {"memory-shmem", "bytes", kGauge, "cgroup", "step", 1, "shared memory and tmpfs"},
    {"memory-file", "bytes", kGauge, "cgroup", "step", 1,
     "page cache, reclaimable unless mapped dirty"},
    {"memory-need", "bytes", kGauge, "cgroup", "step", 1,
     "least memory the processes could live with now: charged less reclaimable cache"},
    {"memory-limit", "bytes", kGauge, "cgroup", "step", 10,
     "limit in force on the cgroup; absent when there is none"},
    {"memory-kernel", "bytes", kGauge, "cgroup", "step", 10,
     "kernel memory charged; where the kernel counts it"},
    {"memory-swap", "bytes", kGauge, "cgroup", "step", 10, "swapped out"},
    {"memory-slope", "bytes/s", kGauge, "cgroup", "step", 10,
     "growth of memory-need over the last five minutes (least squares); after one minute"},
    {"cpu-user", "seconds", kCounter, "cgroup", "step", 10, "CPU time in user mode"},
    {"cpu-system", "seconds", kCounter, "cgroup", "step", 10, "CPU time in the kernel"},
    {"cpu-throttled", "seconds", kCounter, "cgroup", "step", 10,
     "time in which a CPU quota held the step back; where the cpu controller has its cgroup"},
    {"processes", "count", kGauge, "proc", "step", 10, "processes of the step"},
    {"threads", "count", kGauge, "cgroup", "step", 10, "threads of all its processes"},
    {"oom-kills", "count", kCounter, "cgroup", "step", 10,
     "processes killed by the out-of-memory handler; each second near the limit"},
    {"limit-hits", "count", kCounter, "cgroup", "step", 10,
     "times the memory limit was reached; newer kernels count none on version 1"},
    {"io-read", "bytes", kCounter, "cgroup", "step", 10,
     "read from storage: of the cgroup where the io or blkio controller has it, else of its "
     "processes (a floor while it runs)"},
    {"io-write", "bytes", kCounter, "cgroup", "step", 10,
     "written to storage, as io-read; of processes it counts when a page is dirtied"},
    {"network-receive", "bytes", kCounter, "proc", "step", 10,
     "received; only of a step with a network namespace of its own"},
    {"network-transmit", "bytes", kCounter, "proc", "step", 10,
     "sent; only of a step with a network namespace of its own"},
    {"exits", "count", kCounter, "taskstats", "step", 10,
     "processes that ended, short ones too; needs CAP_NET_ADMIN"},
    {"pressure-cpu", "seconds", kCounter, "cgroup", "step", 10,
     "time in which some thread waited for a CPU; cgroup version 2 only"},
    {"pressure-memory", "seconds", kCounter, "cgroup", "step", 10,
     "time in which some thread waited for memory; cgroup version 2 only"},
    {"pressure-io", "seconds", kCounter, "cgroup", "step", 10,
     "time in which some thread waited for storage; cgroup version 2 only"},
    {"node-cpu", "cores", kGauge, "proc", "node", 1, "cores busy on the node"},
    {"node-cpu-iowait", "seconds", kCounter, "proc", "node", 10,
     "time in which a CPU was idle while storage was waited for"},
    {"node-cpus", "count", kGauge, "proc", "node", 10, "CPUs online"},
    {"node-memory-available", "bytes", kGauge, "proc", "node", 1, "MemAvailable of the node"},
    {"node-memory-total", "bytes", kGauge, "proc", "node", 10, "memory installed"},
    {"node-swap-used", "bytes", kGauge, "proc", "node", 10, "swap in use"},
    {"node-jobs", "count", kGauge, "cgroup", "node", 1, "jobs with a cgroup on the node"},
    {"node-jobs-cpu", "cores", kGauge, "cgroup", "node", 1,
     "cores in use by all jobs; node-cpu less this is everything else"},
    {"node-jobs-memory", "bytes", kGauge, "cgroup", "node", 1,
     "memory charged to all jobs, with page cache"},
    {"node-network-receive", "bytes", kCounter, "proc", "node", 10,
     "received over the node's own devices, without lo, bridges and bonds"},
    {"node-network-transmit", "bytes", kCounter, "proc", "node", 10,
     "sent over the node's own devices"},
    {"node-disk-read", "bytes", kCounter, "proc", "node", 10,
     "read from local disks, without partitions and what lies on other disks"},
    {"node-disk-write", "bytes", kCounter, "proc", "node", 10, "written to local disks"},
    {"node-pressure-cpu", "seconds", kCounter, "proc", "node", 10,
     "time in which some thread waited for a CPU"},
    {"node-pressure-memory", "seconds", kCounter, "proc", "node", 10,
     "time in which some thread waited for memory"},
    {"node-pressure-memory-full", "seconds", kCounter, "proc", "node", 10,
     "time in which every thread waited for memory"},
    {"node-pressure-io", "seconds", kCounter, "proc", "node", 10,
     "time in which some thread waited for storage"},
    {"node-pressure-io-full", "seconds", kCounter, "proc", "node", 10,
     "time in which every thread waited for storage"},
    {"collector-cpu", "seconds", kCounter, "collector", "node", 10,
     "CPU time of the collector by source: cgroup, proc, taskstats, and collector for all "
     "together"},
    {"collector-memory", "bytes", kGauge, "collector", "node", 10,
     "resident memory of the collector"},
    {"collector-late-ticks", "count", kCounter, "collector", "node", 10,
     "seconds missed because a round took too long"},
    {"gpu-util", "ratio", kGauge, "nvidia-smi", "gpu", 0, "share of time with a kernel running"},
    {"gpu-memory-used", "bytes", kGauge, "nvidia-smi", "gpu", 0, "device memory in use"},
    {"gpu-memory-total", "bytes", kGauge, "nvidia-smi", "gpu", 0, "device memory installed"},
    {"gpu-power", "watts", kGauge, "nvidia-smi", "gpu", 0, "power draw"},
    {"gpu-temp", "celsius", kGauge, "nvidia-smi", "gpu", 0, "core temperature"},
    {"gpu-clock", "hertz", kGauge, "nvidia-smi", "gpu", 0, "SM clock"},
});

}  // namespace

std::span<const MetricInfo> MetricCatalogue() { return kCatalogue; }

const MetricInfo* FindMetric(std::string_view name) {
  for (const auto& m : kCatalogue)
    if (m.name == name) return &m;
  return nullptr;
}

std::string MetricReferencePage() {
  std::string page =
      "# Metric reference\n\n"
      "Generated from `src/domain/metric_catalogue.cc`; a test compares. Native names of CUPTI and "
      "DCGM\npass through and are not listed. A counter grows for ever; queries answer its rate a "
      "second. Step\nmetrics are of one step on one node; queries add them up for the run. A value "
      "that is not known\nis absent, never 0.\n\n"
      "| Metric | Unit | Kind | Of | Source | Every | Meaning |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const MetricInfo& m : kCatalogue) {
    const auto cell = [&page](std::string_view text) {
      page.append(" ").append(text).append(" |");
    };
    page += "|";
    cell("`" + std::string(m.name) + "`");
    cell(m.unit);
    cell(m.kind == kGauge ? "gauge" : "counter");
    cell(m.scope);
    cell(m.source);
    cell(m.period_seconds == 0 ? "-" : std::to_string(m.period_seconds) + " s");
    cell(m.doc);
    page += "\n";
  }
  return page;
}

}  // namespace expanse::domain
