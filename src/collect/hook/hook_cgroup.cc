// SPDX-License-Identifier: Apache-2.0
// Paths as observed on SLURM 22.05, 24.11 and 26.05:
//   v1  <ctl>/slurm_<node>/uid_U/job_J/step_S (TaskEpilog runs in it), task_N below
//   v2  system.slice/[<node>_]slurmstepd.scope/{job_J|SLUID}/step_S/{slurm,user/task_N};
//       TaskEpilog runs in step_S/slurm, the limit is on step_S/user
#include "collect/hook/hook_cgroup.h"

#include "collect/hook/hook_directory.h"
#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {
namespace {

constexpr size_t kPath = 1024;
constexpr int kMaxTasks = 1024;
constexpr int kExecute = 1;  // X_OK

struct Field {
  const char* key;   // in memory.stat
  const char* name;  // in the event
};

bool Join(char* out, const char* a, const char* b, const char* c = "", const char* d = "") {
  const char* parts[] = {a, b, c, d};
  return Concat(out, kPath, parts, 4);
}

bool ReadNumberFile(const char* directory, const char* file, int64_t* value) {
  char path[kPath];
  char text[64];
  return Join(path, directory, "/", file) && ReadSmall(path, text, sizeof text) &&
         ParseNumber(text, value);
}

void PutNumberFile(EventBuffer* event, const char* prefix, const char* name, const char* directory,
                   const char* file) {
  int64_t value = 0;
  if (ReadNumberFile(directory, file, &value)) event->PutNumber(prefix, name, value);
}

bool ReadText(const char* directory, const char* file, char* out, size_t size) {
  char path[kPath];
  return Join(path, directory, "/", file) && ReadSmall(path, out, size);
}

void PutStat(EventBuffer* event, const char* prefix, const char* stat, const Field* fields,
             size_t count, const char* inactive, const char* active) {
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    if (FindField(stat, fields[i].key, &value)) event->PutNumber(prefix, fields[i].name, value);
  int64_t other = 0;
  if (FindField(stat, inactive, &value) && FindField(stat, active, &other))
    event->PutNumber(prefix, "file_lru", value + other);
}

bool OomKillsV1(const char* directory, int64_t* kills) {
  char text[256];
  return ReadText(directory, "memory.oom_control", text, sizeof text) &&
         FindField(text, "oom_kill", kills);
}

/// On v1 a kill counts only in the victim's own cgroup, the task's.
void PutOomKillsV1(EventBuffer* event, const char* prefix, const char* directory) {
  int64_t total = 0;
  if (!OomKillsV1(directory, &total)) return;
  int seen = 0;
  VisitDirectory(directory, [&](const char* name) {
    if (!StartsWith(name, "task_")) return true;
    char task[kPath];
    int64_t kills = 0;
    if (Join(task, directory, "/", name) && OomKillsV1(task, &kills)) total += kills;
    return ++seen < kMaxTasks;
  });
  event->PutNumber(prefix, "oom_kills", total);
}

void PutV1(EventBuffer* event, const char* prefix, const char* memory, const char* cpuacct,
           bool is_step) {
  // cgroup v1 says "unlimited" with the largest page-aligned number.
  constexpr int64_t kUnlimited = int64_t{1} << 62;
  static constexpr Field kFields[] = {{"total_rss", "anon"}, {"total_shmem", "shmem"}};
  event->Put(prefix, "path", memory);
  PutNumberFile(event, prefix, "peak", memory, "memory.max_usage_in_bytes");
  PutNumberFile(event, prefix, "usage", memory, "memory.usage_in_bytes");
  PutNumberFile(event, prefix, "limit_hits", memory, "memory.failcnt");
  int64_t limit = 0;
  if (ReadNumberFile(memory, "memory.limit_in_bytes", &limit) && limit < kUnlimited)
    event->PutNumber(prefix, "limit", limit);
  char stat[8192];
  if (ReadText(memory, "memory.stat", stat, sizeof stat))
    PutStat(event, prefix, stat, kFields, 2, "total_inactive_file", "total_active_file");
  if (is_step) PutOomKillsV1(event, prefix, memory);
  PutNumberFile(event, prefix, "cpu_ns", cpuacct, "cpuacct.usage");
}

/// limited: where peak and limit are; whole: where CPU time and kills of all below are counted.
void PutV2(EventBuffer* event, const char* prefix, const char* limited, const char* whole) {
  static constexpr Field kFields[] = {
      {"anon", "anon"}, {"shmem", "shmem"}, {"slab_reclaimable", "slab_reclaimable"}};
  event->Put(prefix, "path", limited);
  PutNumberFile(event, prefix, "peak", limited, "memory.peak");
  PutNumberFile(event, prefix, "usage", limited, "memory.current");
  PutNumberFile(event, prefix, "limit", limited, "memory.max");  // "max" is no number
  char text[8192];
  int64_t value = 0;
  if (ReadText(limited, "memory.stat", text, sizeof text))
    PutStat(event, prefix, text, kFields, 3, "inactive_file", "active_file");
  if (ReadText(limited, "memory.events", text, sizeof text) && FindField(text, "max", &value))
    event->PutNumber(prefix, "limit_hits", value);
  if (ReadText(whole, "memory.events", text, sizeof text) && FindField(text, "oom_kill", &value))
    event->PutNumber(prefix, "oom_kills", value);
  if (ReadText(limited, "cpu.stat", text, sizeof text) && FindField(text, "usage_usec", &value))
    event->PutNumber(prefix, "cpu_ns", value * 1000);
}

/// The path of one hierarchy in /proc/self/cgroup ("4:memory:/slurm_n1/..." or "0::/..."), copied.
bool OwnPath(const char* proc_cgroup, const char* controller, char* out) {
  const size_t n = strlen(controller);
  for (const char* line = proc_cgroup; line != nullptr && *line != '\0';) {
    const char* list = Find(line, ':');
    const char* end = Find(line, '\n');
    const char* path = list == nullptr ? nullptr : Find(list + 1, ':');
    if (path == nullptr || (end != nullptr && path > end)) return false;
    bool match = n == 0 && path == list + 1;
    for (const char* name = list + 1; n > 0 && name < path;) {
      const char* comma = name;
      while (comma < path && *comma != ',') ++comma;
      if (static_cast<size_t>(comma - name) == n && strncmp(name, controller, n) == 0) match = true;
      name = comma + 1;
    }
    if (match) {
      const size_t size = end == nullptr ? strlen(path + 1) : static_cast<size_t>(end - path - 1);
      if (size + 1 > kPath) return false;
      memcpy(out, path + 1, size);
      out[size] = '\0';
      return true;
    }
    line = end == nullptr ? nullptr : end + 1;
  }
  return false;
}

/// Cuts path behind the component that starts with prefix; false when there is none.
bool CutAfter(char* path, const char* prefix) {
  char* at = FindText(path, prefix);
  if (at == nullptr) return false;
  char* slash = Find(at + 1, '/');
  if (slash != nullptr) *slash = '\0';
  return true;
}

bool IsDirectory(const char* path) { return sys::Access(path, kExecute) == 0; }

/// <root>/sys/fs/cgroup/<controller><path>, also when path starts above what this mount shows.
bool LocateV1(const char* root, const char* controller, const char* path, char* out) {
  char base[kPath];
  if (!Join(base, root, "/sys/fs/cgroup/", controller)) return false;
  if (Join(out, base, path) && IsDirectory(out)) return true;
  const char* inner = FindText(path, "/slurm");
  return inner != nullptr && inner != path && Join(out, base, inner) && IsDirectory(out);
}

void PutStepName(EventBuffer* event, const char* path, const char* from_environment) {
  const char* step = FindText(path, "/step_");
  char name[64] = "";
  if (step != nullptr) {
    const char* end = Find(step + 6, '/');
    const size_t n = end == nullptr ? strlen(step + 6) : static_cast<size_t>(end - step - 6);
    if (n < sizeof name) {
      memcpy(name, step + 6, n);
      name[n] = '\0';
    }
  }
  event->Put("", "step", name[0] != '\0' ? name : from_environment);
}

/// slurm_<node> (several daemons on a host) or slurm, then uid, job and step.
bool BuildV1(const CgroupQuery& q, char* out) {
  const char* tops[][2] = {{"/slurm_", q.node}, {"/slurm", ""}};
  for (const auto& top : tops) {
    const char* parts[] = {
        top[0], top[1], "/uid_", q.job_uid, "/job_", q.job_id, q.step[0] != '\0' ? "/step_" : "",
        q.step};
    char full[kPath];
    if (Concat(out, kPath, parts, 8) && LocateV1(q.root, "memory", out, full)) return true;
  }
  return false;
}

bool PutCgroupsV1(const CgroupQuery& q, const char* proc_cgroup, EventBuffer* event) {
  char path[kPath];
  if (!OwnPath(proc_cgroup, "memory", path) || FindText(path, "/job_") == nullptr) {
    if (!BuildV1(q, path)) return false;
  }
  if (q.task_hook) PutStepName(event, path, q.step);
  char memory[kPath];
  char cpuacct[kPath];
  if (q.task_hook && FindText(path, "/step_") != nullptr) {
    char step[kPath];
    memcpy(step, path, sizeof step);
    CutAfter(step, "/step_");
    if (LocateV1(q.root, "memory", step, memory)) {
      if (!LocateV1(q.root, "cpuacct", step, cpuacct)) cpuacct[0] = '\0';
      PutV1(event, "step.", memory, cpuacct, true);
    }
  }
  if (!CutAfter(path, "/job_") || !LocateV1(q.root, "memory", path, memory)) return false;
  if (!LocateV1(q.root, "cpuacct", path, cpuacct)) cpuacct[0] = '\0';
  PutV1(event, "job.", memory, cpuacct, false);
  return true;
}

void PutCgroupsV2(const CgroupQuery& q, char* path, EventBuffer* event) {
  const char* scope = FindText(path, "slurmstepd.scope/");
  if (scope == nullptr) return;
  if (q.task_hook) PutStepName(event, path, q.step);
  char directory[kPath];
  char user[kPath];
  if (q.task_hook && CutAfter(path, "/step_") && Join(directory, q.root, "/sys/fs/cgroup", path) &&
      Join(user, directory, "/user")) {
    PutV2(event, "step.", IsDirectory(user) ? user : directory, directory);
  }
  // The job is the component behind the scope, whatever its name (job_J or a SLUID).
  char* job = path + (scope - path) + strlen("slurmstepd.scope/");
  char* slash = Find(job, '/');
  if (slash != nullptr) *slash = '\0';
  if (Join(directory, q.root, "/sys/fs/cgroup", path) && IsDirectory(directory))
    PutV2(event, "job.", directory, directory);
}

}  // namespace

void PutCgroups(const CgroupQuery& query, EventBuffer* event) {
  char path[kPath];
  char proc_cgroup[8192];
  if (!Join(path, query.root, "/proc/self/cgroup")) return;
  if (!ReadSmall(path, proc_cgroup, sizeof proc_cgroup)) proc_cgroup[0] = '\0';
  if (OwnPath(proc_cgroup, "", path) && FindText(path, "slurmstepd.scope/") != nullptr) {
    PutCgroupsV2(query, path, event);
    return;
  }
  if (!PutCgroupsV1(query, proc_cgroup, event) && query.task_hook && query.step[0] != '\0')
    event->Put("", "step", query.step);
}

}  // namespace expanse::collect::hook
