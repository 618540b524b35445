// SPDX-License-Identifier: Apache-2.0
// What accounting tells of a run's steps and of what they used. MaxRSS is another thing in each
// version (MaxRssKind): a floor is called a floor, and need is not made up from a peak with cache.
#pragma once

#include "collect/slurm/job_record.h"
#include "expanse/common/v1/execution.pb.h"

namespace expanse::collect::slurm {

/// Steps, memory and CPU seconds of a row of sacct.
void FillUsage(const JobRecord& job, bool ended, common::v1::Execution* out);

}  // namespace expanse::collect::slurm
