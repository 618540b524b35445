// SPDX-License-Identifier: Apache-2.0
#include "collect/host/cgroup_reader.h"

#include <algorithm>

#include "collect/host/cgroup_versions.h"

namespace expanse::collect::host {

std::optional<int64_t> CgroupUsage::Need() const {
  if (!usage || !reclaimable) return std::nullopt;
  return std::max<int64_t>(0, *usage - *reclaimable);
}

bool IsNearLimit(std::optional<int64_t> peak, std::optional<int64_t> limit) {
  return peak && limit && *peak >= *limit - *limit / 50;
}

std::string CutAfterStep(std::string_view path) {
  const size_t step = path.find("/step_");
  if (step == std::string_view::npos) return "";
  return std::string(path.substr(0, path.find('/', step + 1)));
}

Result<std::unique_ptr<CgroupReader>> CgroupReader::Detect(const platform::Fs& fs,
                                                           std::string node) {
  // cgroup.controllers at the mount is version 2 alone. A hybrid host has it below unified/ only,
  // and SLURM uses version 1 there (its v2 plugin refuses hybrid mode).
  if (fs.Exists("/sys/fs/cgroup/cgroup.controllers")) return NewCgroupV2Reader(fs, std::move(node));
  if (fs.Exists("/sys/fs/cgroup/memory") || fs.Exists("/sys/fs/cgroup/cpuacct") ||
      fs.Exists("/sys/fs/cgroup/cpu,cpuacct"))
    return NewCgroupV1Reader(fs, std::move(node));
  return Error(Code::kNotFound,
               "no cgroup file system with a memory controller at /sys/fs/cgroup: job peaks are "
               "known from the hooks and the scheduler's accounting only");
}

}  // namespace expanse::collect::host
