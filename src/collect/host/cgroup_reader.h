// SPDX-License-Identifier: Apache-2.0
// SLURM's cgroups on this host, version 1 and 2 behind one interface, read through a rooted Fs.
//
// v1: <mount>/<controller>/slurm[_<node>]/uid_<u>/job_<j>/step_<s>; limits on job and step. A
//     hybrid host has these too (SLURM's own v2 plugin refuses to run there).
// v2: <mount>/<slice>/[<node>_]slurmstepd.scope/{job_<j>|<SLUID>}/step_<s>/user; limits on the job
//     and on step_<s>/user, beside which lies slurm/ with the step daemon.
//
// What counts out-of-memory kills: on v1 only the victim's own cgroup, a task's; on v2 every
// cgroup above the victim (memory.events; memory.events.local of the job stays 0).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collect/host/cgroup_parse.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// One job's or step's cgroup on this node.
struct CgroupUnit {
  std::string job_id;        // empty when only the SLUID is known (v2 of SLURM 26.05)
  std::string sluid;         // "s1ZDM8Q6FTAE00"; empty when the directory is named after the job id
  std::string step_id;       // "batch", "extern", "interactive", "0"; empty: the whole job
  std::optional<uid_t> uid;  // v1 only
  std::string path;  // v1: below the controller ("/slurm_n1/uid_1/job_2"); v2: below the mount

  auto operator<=>(const CgroupUnit&) const = default;
};

/// What the kernel says of one cgroup now. Absent: the file is not there (older kernel, controller
/// off), it was not due (see Depth), or the cgroup went away while reading.
struct CgroupUsage {
  bool is_all = false;  // read with Depth::kAll: what is absent is not there
  // Each second.
  std::optional<int64_t> usage;  // bytes charged, page cache included
  std::optional<int64_t> peak;   // bytes; exact since the cgroup's creation
  // The next four of a job only when asked for more: they are its steps' sum.
  std::optional<int64_t> anon;
  std::optional<int64_t> shmem;
  std::optional<int64_t> file;         // page cache, with shmem
  std::optional<int64_t> reclaimable;  // inactive_file + active_file (+ slab_reclaimable on v2)
  std::optional<int64_t> cpu_ns;
  // When asked for more, and the first two each second when usage is near the limit.
  std::optional<int64_t> limit_hits;  // times the limit was reached: v1 failcnt, v2 events max
  std::optional<int64_t> oom_kills;   // of the cgroup and everything below
  std::optional<int64_t> limit;       // bytes; absent when unlimited
  std::optional<int64_t> kernel;      // bytes of kernel memory charged
  std::optional<int64_t> swap;        // bytes swapped out
  std::optional<int64_t> cpu_user_ns;
  std::optional<int64_t> cpu_system_ns;
  std::optional<int64_t> throttled_ns;  // time in which a CPU quota held it back
  std::optional<int64_t> threads;       // of all processes: pids.current
  IoBytes io;                           // blkio or io.stat, where the controller is there
  Pressure cpu_pressure;                // v2 only
  Pressure memory_pressure;
  Pressure io_pressure;

  /// Least memory the processes could live with now: usage less what the kernel would give back
  /// before killing. The file LRU lists hold neither shmem nor tmpfs (they are on the anonymous
  /// lists: Documentation/admin-guide/cgroup-v2.rst, memory.stat), so that nothing is added back.
  std::optional<int64_t> Need() const;
};

/// How much of a cgroup is read. What changes slowly or costs more is read at a slower cadence.
enum class Depth { kEachSecond, kAll };

class CgroupReader {
 public:
  virtual ~CgroupReader() = default;
  /// Looks for jobs and steps that came and went. An error: nothing of the tree can be read.
  virtual Status Refresh() = 0;
  /// Jobs and steps of the node as of the last Refresh, jobs before their steps.
  virtual const std::vector<CgroupUnit>& units() const = 0;
  virtual CgroupUsage Read(const CgroupUnit& unit, Depth depth) = 0;
  /// Processes of a step, without SLURM's own daemon where it has a cgroup of its own.
  virtual std::vector<int32_t> Processes(const CgroupUnit& unit) const = 0;
  virtual int version() const = 0;
  /// The unit path of a step's process by the text of its /proc/<pid>/cgroup; empty: none. May be
  /// called from another thread.
  virtual std::string UnitOf(std::string_view proc_cgroup) const = 0;

  /// Looks which version the host uses. node: SLURM's node name; with several slurmd on one host
  /// it picks that daemon's tree. kNotFound: no cgroup file system at /sys/fs/cgroup.
  static Result<std::unique_ptr<CgroupReader>> Detect(const platform::Fs& fs, std::string node);
};

}  // namespace expanse::collect::host
