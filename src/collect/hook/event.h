// SPDX-License-Identifier: Apache-2.0
// What one hook run left behind. The program that writes it is hook_main.cc; the bytes are in
// hook/event_format.h. Whoever may write into the events directory may write anything, so that the
// parser trusts nothing and the reader checks the file's owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"

namespace expanse::collect::hook {

enum class HookKind {
  kProlog,
  kEpilog,
  kTaskProlog,
  kTaskEpilog,
  kPrologSlurmctld,
  kEpilogSlurmctld,
};
/// "prolog", "task_epilog", "prolog_slurmctld": also the names of the hook files.
std::string_view HookKindName(HookKind kind);
std::optional<HookKind> HookKindFromName(std::string_view name);

/// What the hook read of one cgroup. Absent: not there or not readable.
struct HookCgroup {
  std::string path;                 // as read, for the log
  std::optional<int64_t> peak;      // bytes; v1 max_usage_in_bytes, v2 memory.peak
  std::optional<int64_t> usage;     // bytes at the hook's time
  std::optional<int64_t> limit;     // bytes; absent when unlimited
  std::optional<int64_t> anon;      // bytes
  std::optional<int64_t> shmem;     // bytes
  std::optional<int64_t> file_lru;  // bytes; inactive_file + active_file: reclaimable page cache
  std::optional<int64_t> slab_reclaimable;  // bytes; v2 only
  std::optional<int64_t> limit_hits;        // v1 memory.failcnt, v2 memory.events max
  std::optional<int64_t> oom_kills;         // of the cgroup and everything below
  std::optional<int64_t> cpu_ns;            // CPU time used
};

struct HookEvent {
  HookKind kind = HookKind::kProlog;
  int64_t time_ns = 0;  // realtime clock at the hook's start
  uid_t uid = 0;        // of the hook process, as it says
  pid_t pid = 0;
  std::map<std::string, std::string> environment;  // selected SLURM variables, raw bytes
  std::string step_id;  // "batch", "extern", "interactive", "0"; task hooks only
  std::optional<HookCgroup> job;
  std::optional<HookCgroup> step;
  std::vector<std::string> notes;  // what went wrong in the hook, e.g. a missing chained program

  WallTime time() const { return FromUnixMillis(time_ns / 1'000'000); }
  /// A variable, or nothing when unset or empty.
  std::optional<std::string> Env(const std::string& name) const;
  std::optional<int64_t> EnvInt(const std::string& name) const;
  /// SLURM_JOB_ID (the raw id: array tasks have their own).
  std::optional<int64_t> job_id() const { return EnvInt("SLURM_JOB_ID"); }
};

/// kInvalidArgument for anything but a whole, well-formed event (a cut one has no end mark).
Result<HookEvent> ParseHookEvent(std::string_view bytes);

}  // namespace expanse::collect::hook
