// SPDX-License-Identifier: Apache-2.0
// SLURM's cgroups on this host, version 1 and 2 behind one interface, read through a rooted Fs.
//
// v1: <mount>/<controller>/slurm[_<node>]/uid_<u>/job_<j>/step_<s>; limits on job and step.
// v2: <mount>/<slice>/[<node>_]slurmstepd.scope/{job_<j>|<SLUID>}/step_<s>/user; limits on the job
// and on step_<s>/user, beside which lies slurm/ with the step daemon.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
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
/// off) or the cgroup went away while reading.
struct CgroupUsage {
  std::optional<int64_t> usage;  // bytes charged, page cache included
  std::optional<int64_t> peak;   // bytes; exact since the cgroup's creation
  std::optional<int64_t> limit;  // bytes; absent when unlimited
  std::optional<int64_t> anon;
  std::optional<int64_t> shmem;
  std::optional<int64_t> file;         // page cache, with shmem
  std::optional<int64_t> reclaimable;  // inactive_file + active_file (+ slab_reclaimable on v2)
  std::optional<int64_t> limit_hits;   // times the limit was reached: v1 failcnt, v2 events max
  std::optional<int64_t> oom_kills;    // of the cgroup and everything below
  std::optional<int64_t> cpu_ns;
  std::optional<int64_t> processes;

  /// Least memory the processes could live with now: usage less what the kernel would give back
  /// before killing. The file LRU lists hold neither shmem nor tmpfs (they are on the anonymous
  /// lists: Documentation/admin-guide/cgroup-v2.rst, memory.stat), so that nothing is added back.
  std::optional<int64_t> Need() const;
};

class CgroupReader {
 public:
  virtual ~CgroupReader() = default;
  /// Jobs and steps of the node, jobs before their steps.
  virtual Result<std::vector<CgroupUnit>> List() const = 0;
  virtual CgroupUsage Read(const CgroupUnit& unit) const = 0;
  virtual int version() const = 0;

  /// Looks which version the host uses. node: SLURM's node name; with several slurmd on one host
  /// it picks that daemon's tree. kNotFound: no cgroup file system at /sys/fs/cgroup.
  static Result<std::unique_ptr<CgroupReader>> Detect(const platform::Fs& fs, std::string node);
};

}  // namespace expanse::collect::host
