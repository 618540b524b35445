// SPDX-License-Identifier: Apache-2.0
// expanse-hook: SLURM's Prolog, Epilog, TaskProlog, TaskEpilog, PrologSlurmctld and EpilogSlurmctld
// in one static program; the name it is called by says which. It stands in a job's path, so it
// writes one small local file and exits 0 whatever is broken: SLURM drains a node whose Prolog
// fails and fails a job whose TaskProlog does. Nothing is printed, because slurmstepd reads a
// TaskProlog's output as commands.
//
// Settings: `hook.conf` beside it, lines `key = value`:
//   spool = DIR            events go to DIR/<node>/events
//   chain.<kind> = PATH    run this first and pass its exit status on; may be repeated
//   root = DIR             read /proc and /sys below DIR (tests)
#include <initializer_list>

#include <signal.h>

#include "collect/hook/hook_cgroup.h"
#include "collect/hook/hook_chain.h"
#include "collect/hook/hook_io.h"
#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {
namespace {

constexpr size_t kConfBytes = 8192;
constexpr unsigned kTimeLimitSeconds = 2;  // of our own work, chained hooks apart
constexpr size_t kMaxChained = 16;

volatile int exit_status = 0;

void GiveUp(int) { sys::Exit(exit_status); }
void (*const kIgnore)(int) = reinterpret_cast<void (*)(int)>(1);  // SIG_IGN

struct Kind {
  const char* name;     // of the hook file
  const char* context;  // SLURM_SCRIPT_CONTEXT
  bool task;
  bool reads_cgroups;
};
constexpr Kind kKinds[] = {
    {"prolog", "prolog_slurmd", false, false},
    {"epilog", "epilog_slurmd", false, true},
    {"task_prolog", "prolog_task", true, false},
    {"task_epilog", "epilog_task", true, true},
    {"prolog_slurmctld", "prolog_slurmctld", false, false},
    {"epilog_slurmctld", "epilog_slurmctld", false, false},
};

const char* Env(const char* name) {
  const char* value = sys::GetEnv(name);
  return value == nullptr ? "" : value;
}

const Kind* FindKind(const char* program) {
  const char* slash = FindLast(program, '/');
  const char* name = slash == nullptr ? program : slash + 1;
  for (const Kind& kind : kKinds)
    if (Equal(kind.name, name)) return &kind;
  for (const Kind& kind : kKinds)
    if (Equal(kind.context, Env("SLURM_SCRIPT_CONTEXT"))) return &kind;
  return nullptr;
}

struct Settings {
  char text[kConfBytes];
  const char* spool = "";
  const char* root = "";
  const char* chained[kMaxChained];
  size_t chained_count = 0;
};

char* Trim(char* text) {
  while (*text == ' ' || *text == '\t') ++text;
  size_t n = strlen(text);
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\r')) text[--n] = 0;
  return text;
}

void ParseLine(char* line, const Kind& kind, Settings* settings) {
  line = Trim(line);
  char* equals = Find(line, '=');
  if (*line == '#' || equals == nullptr) return;
  *equals = '\0';
  const char* key = Trim(line);
  const char* value = Trim(equals + 1);
  if (Equal(key, "spool")) settings->spool = value;
  if (Equal(key, "root")) settings->root = value;
  if (StartsWith(key, "chain.") && Equal(key + 6, kind.name) && *value == '/' &&
      settings->chained_count < kMaxChained)
    settings->chained[settings->chained_count++] = value;
}

void ParseSettings(const Kind& kind, Settings* settings) {
  char* line = settings->text;
  while (line != nullptr) {
    char* end = Find(line, '\n');
    if (end != nullptr) *end = '\0';
    ParseLine(line, kind, settings);
    line = end == nullptr ? nullptr : end + 1;
  }
}

/// hook.conf beside the path we were called by, else beside the program itself (symbolic links).
void LoadSettings(const char* program, const Kind& kind, Settings* settings) {
  settings->text[0] = '\0';
  char path[4096];
  char own[4096];
  const long n = sys::ReadLink("/proc/self/exe", own, sizeof own - 1);
  own[n > 0 ? n : 0] = '\0';
  const char* candidates[] = {program, own};
  for (const char* candidate : candidates) {
    const char* slash = FindLast(candidate, '/');
    if (slash == nullptr) continue;
    const size_t directory = static_cast<size_t>(slash - candidate) + 1;
    if (directory + sizeof "hook.conf" > sizeof path) continue;
    memcpy(path, candidate, directory);
    memcpy(path + directory, "hook.conf", sizeof "hook.conf");
    if (ReadSmall(path, settings->text, sizeof settings->text)) break;
  }
  ParseSettings(kind, settings);
}

/// The names -4, -5 and -6 that SLURM 26.05 gives in SLURM_STEPID (slurm.h: SLURM_*_STEP ids).
const char* StepFromEnvironment() {
  const char* step = Env("SLURM_STEPID");
  if (*step == '\0') step = Env("SLURM_STEP_ID");
  if (*step == '\0' || Equal(step, "-5")) return "batch";
  if (Equal(step, "-4")) return "extern";
  if (Equal(step, "-6")) return "interactive";
  return step;
}

/// A path component that cannot leave the spool.
const char* NodeName(const Kind& kind) {
  if (kind.reads_cgroups || kind.task || Equal(kind.name, "prolog")) {
    const char* node = Env("SLURMD_NODENAME");
    if (*node == '\0' || *node == '.' || Find(node, '/') != nullptr) return nullptr;
    return node;
  }
  return "ctld";
}

void Record(const Kind& kind, const Settings& settings, int64_t time_ns, EventBuffer* event) {
  const char* node = NodeName(kind);
  if (node == nullptr || *settings.spool != '/') return;
  char directory[2048];
  const char* full[] = {settings.spool, "/", node, "/full"};
  if (!Concat(directory, sizeof directory, full, 4)) return;
  if (sys::Access(directory, 0) == 0) return;  // the sampler says: enough for now
  const char* events[] = {settings.spool, "/", node, "/events"};
  if (!Concat(directory, sizeof directory, events, 4)) return;

  event->Put("", "kind", kind.name);
  event->PutNumber("", "time_ns", time_ns);
  event->PutNumber("", "uid", sys::UserId());
  event->PutNumber("", "pid", sys::ProcessId());
  for (const char* name : kEventVariables) {
    const char* value = sys::GetEnv(name);
    if (value != nullptr && *value != '\0') event->Put("env.", name, value);
  }
  const char* step = kind.task ? StepFromEnvironment() : "";
  if (kind.reads_cgroups) {
    PutCgroups({settings.root, node, Env("SLURM_JOB_ID"), Env("SLURM_JOB_UID"), step, kind.task},
               event);
  } else if (kind.task) {
    event->Put("", "step", step);
  }
  event->Finish();
  WriteEventFile(directory, kind.name, time_ns, *event);
}

void PrepareSignals() {
  SaveSignals();
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGXCPU}) sys::HandleSignal(ignored, kIgnore);
  sys::HandleSignal(SIGCHLD, nullptr);  // ignored, it would take the chained hook's status away
  for (const int fatal : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS})
    sys::HandleSignal(fatal, GiveUp);
}

}  // namespace

/// Called by the start code (hook_start.cc); returns the exit status.
int Main(int argc, char** argv);

int Main(int argc, char** argv) {
  const int64_t time_ns = sys::RealTimeNs();
  const char* program = argc > 0 ? argv[0] : "";
  const Kind* kind = FindKind(program);
  if (kind == nullptr) return 0;
  PrepareSignals();
  sys::SetTimer(kTimeLimitSeconds);
  static Settings settings;
  static EventBuffer event;
  LoadSettings(program, *kind, &settings);
  if (settings.chained_count > 0) {
    sys::SetTimer(0);  // a foreign hook takes its own time; SLURM limits it
    for (size_t i = 0; i < settings.chained_count && exit_status == 0; ++i)
      exit_status = RunChained(settings.chained[i], argv, &event);
    sys::SetTimer(kTimeLimitSeconds);
  }
  Record(*kind, settings, time_ns, &event);
  return exit_status;
}

}  // namespace expanse::collect::hook
