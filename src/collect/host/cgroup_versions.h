// SPDX-License-Identifier: Apache-2.0
// The two readers behind CgroupReader::Detect, and what they share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collect/host/cgroup_reader.h"

namespace expanse::collect::host {

std::unique_ptr<CgroupReader> NewCgroupV1Reader(const platform::Fs& fs, std::string node);
std::unique_ptr<CgroupReader> NewCgroupV2Reader(const platform::Fs& fs, std::string node);

/// Within 2 % of the limit: kills may come any moment.
bool IsNearLimit(std::optional<int64_t> peak, std::optional<int64_t> limit);
/// "/slurm_n1/uid_1/job_2/step_0/task_0" -> ".../step_0"; empty without a step.
std::string CutAfterStep(std::string_view path);

}  // namespace expanse::collect::host
