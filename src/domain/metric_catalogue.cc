// SPDX-License-Identifier: Apache-2.0
#include "domain/metric_catalogue.h"

#include <array>

namespace expanse::domain {
namespace {

using enum MetricKind;

constexpr std::array<MetricInfo, 17> kCatalogue{{
    {"cpu", "cores", kGauge, "cgroup", "step", "cores in use, over the time since the last sample"},
    {"memory", "bytes", kGauge, "cgroup", "step",
     "memory charged to the cgroup, with page cache (what the limit is enforced on)"},
    {"memory-anon", "bytes", kGauge, "cgroup", "step", "anonymous memory (heap, stacks)"},
    {"memory-shmem", "bytes", kGauge, "cgroup", "step", "shared memory and tmpfs"},
    {"memory-file", "bytes", kGauge, "cgroup", "step",
     "page cache, reclaimable unless mapped dirty"},
    {"memory-need", "bytes", kGauge, "cgroup", "step",
     "least memory the processes could live with now: charged less reclaimable cache"},
    {"memory-limit", "bytes", kGauge, "cgroup", "step", "limit in force on the cgroup"},
    {"processes", "count", kGauge, "cgroup", "step", "processes in the cgroup"},
    {"oom-kills", "count", kCounter, "cgroup", "step",
     "processes killed by the out-of-memory handler"},
    {"node-cpu", "cores", kGauge, "proc", "node", "cores busy on the node"},
    {"node-memory-available", "bytes", kGauge, "proc", "node", "MemAvailable of the node"},
    {"gpu-util", "ratio", kGauge, "nvidia-smi", "gpu", "share of time with a kernel running"},
    {"gpu-memory-used", "bytes", kGauge, "nvidia-smi", "gpu", "device memory in use"},
    {"gpu-memory-total", "bytes", kGauge, "nvidia-smi", "gpu", "device memory installed"},
    {"gpu-power", "watts", kGauge, "nvidia-smi", "gpu", "power draw"},
    {"gpu-temp", "celsius", kGauge, "nvidia-smi", "gpu", "core temperature"},
    {"gpu-clock", "hertz", kGauge, "nvidia-smi", "gpu", "SM clock"},
}};

}  // namespace

std::span<const MetricInfo> MetricCatalogue() { return kCatalogue; }

const MetricInfo* FindMetric(std::string_view name) {
  for (const auto& m : kCatalogue)
    if (m.name == name) return &m;
  return nullptr;
}

}  // namespace expanse::domain
