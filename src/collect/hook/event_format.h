// SPDX-License-Identifier: Apache-2.0
// Bytes of an event file, shared by the hook program and its reader. No std containers: the hook
// program is linked statically and starts in a job's path.
//
//   "EXPHOOK1\0" then entries "key=value\0"; the last entry is "end=1". Values are raw bytes
//   without NUL. Keys: kind, time_ns, uid, pid, step, note (repeated), env.<VARIABLE>, and
//   job.<field> and step.<field> with the decimal fields of hook::HookCgroup (and .path).
#pragma once

#include <cstddef>

namespace expanse::collect::hook {

inline constexpr char kEventMagic[] = "EXPHOOK1";  // with its NUL: 9 bytes
inline constexpr size_t kMaxEventBytes = 16 * 1024;
inline constexpr size_t kMaxValueBytes = 2 * 1024;

/// The variables an event may carry. Nothing else of a job's environment is read: it can hold
/// secrets. Names by sbatch(1), "OUTPUT ENVIRONMENT VARIABLES", and the Prolog and Epilog guide.
inline constexpr const char* kEventVariables[] = {
    "SLURM_JOB_ID",
    "SLURM_JOB_UID",
    "SLURM_JOB_USER",
    "SLURM_JOB_NAME",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_CLUSTER_NAME",
    "SLURMD_NODENAME",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_NTASKS",
    "SLURM_JOB_RESTART_COUNT",
    "SLURM_RESTART_COUNT",
    "SLURM_JOB_EXIT_CODE",
    "SLURM_JOB_EXIT_CODE2",
    "SLURM_JOB_DERIVED_EC",
    "SLURM_JOB_STDOUT",
    "SLURM_JOB_STDERR",
    "SLURM_JOB_WORK_DIR",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_HET_JOB_ID",
    "SLURM_HET_JOB_OFFSET",
    "SLURM_JOB_SLUID",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_END_TIME",
    "SLURM_STEPID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NNODES",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_ON_NODE",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
    "SLURM_TASK_PID",
    "SLURM_SCRIPT_CONTEXT",
};

}  // namespace expanse::collect::hook
