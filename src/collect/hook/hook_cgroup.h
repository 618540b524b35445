// SPDX-License-Identifier: Apache-2.0
// Reads the cgroups of the hook's job and step, version 1 or 2, into the event.
#pragma once

#include "collect/hook/hook_io.h"

namespace expanse::collect::hook {

struct CgroupQuery {
  const char* root;     // before /proc and /sys; "" outside tests
  const char* node;     // SLURMD_NODENAME
  const char* job_id;   // SLURM_JOB_ID
  const char* job_uid;  // SLURM_JOB_UID; may be ""
  const char* step;     // "batch", "0"; "" when the environment does not say (then the cgroup does)
  bool task_hook;       // a step belongs to it
};

/// Puts "step", "job.*" and "step.*" as far as they can be seen.
void PutCgroups(const CgroupQuery& query, EventBuffer* event);

}  // namespace expanse::collect::hook
