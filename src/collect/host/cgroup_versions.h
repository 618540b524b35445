// SPDX-License-Identifier: Apache-2.0
// The two readers behind CgroupReader::Detect.
#pragma once

#include <memory>
#include <string>

#include "collect/host/cgroup_reader.h"

namespace expanse::collect::host {

std::unique_ptr<CgroupReader> NewCgroupV1Reader(const platform::Fs& fs, std::string node);
std::unique_ptr<CgroupReader> NewCgroupV2Reader(const platform::Fs& fs, std::string node);

}  // namespace expanse::collect::host
