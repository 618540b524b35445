// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

const char* ToolName(Tool tool) {
  switch (tool) {
    case Tool::kSqueue:
      return "squeue";
    case Tool::kScontrol:
      return "scontrol";
    case Tool::kSacct:
      return "sacct";
  }
  return "";
}

void SettlePaths(JobRecord* job) {
  if (!job->paths_expanded) return;
  if (job->array_job_id && !job->array_task_id) {
    job->stdout_path.reset();
    job->stderr_path.reset();
    job->unknown["stdout_path"] = "a record of several array tasks that have not begun";
    return;
  }
  if (job->stdout_path && !job->stderr_path && job->batch.value_or(true))
    job->stderr_path = job->stdout_path;
}

}  // namespace expanse::collect::slurm
