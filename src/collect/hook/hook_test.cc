// SPDX-License-Identifier: Apache-2.0
// Runs the real hook program, in the environments recorded from real SLURM hooks and in every
// broken situation we know.
#include <filesystem>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "collect/hook/event.h"
#include "platform/fs/fs.h"

namespace expanse::collect::hook {
namespace {

namespace stdfs = std::filesystem;
using platform::TempDir;

class HookProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    stdfs::create_directories(Hooks());
    for (const auto* name :
         {"prolog", "epilog", "task_prolog", "task_epilog", "prolog_slurmctld", "epilog_slurmctld"})
      stdfs::copy_file(EXPANSE_BIN_DIR "/expanse-hook", Hooks() + "/" + name);
    Configure("");
    stdfs::create_directories(Events());
    ASSERT_EQ(chmod(Events().c_str(), 01733), 0);
  }
  std::string Hooks() const { return dir_.path() + "/hooks"; }
  std::string Spool() const { return dir_.path() + "/spool"; }
  std::string Root() const { return dir_.path() + "/root"; }
  std::string Events(const std::string& node = "n1") const {
    return Spool() + "/" + node + "/events";
  }
  void Configure(const std::string& more) const {
    std::ofstream(Hooks() + "/hook.conf")
        << "# test\nspool = " << Spool() << "\nroot=" << Root() << "\n"
        << more;
  }
  void WriteBelowRoot(const std::string& path, const std::string& bytes) const {
    stdfs::create_directories(stdfs::path(Root() + path).parent_path());
    std::ofstream(Root() + path) << bytes;
  }
  std::string WriteProgram(const std::string& name, const std::string& text) const {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  struct Run {
    int status = -1;  // wait status
    std::string out;  // stdout and stderr
    int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  };
  /// prepare runs in the child before execve.
  Run Exec(
      const std::string& kind, std::vector<std::string> environment,
      const std::function<void()>& prepare = [] {}) const {
    int pipe_fds[2];
    EXPECT_EQ(pipe(pipe_fds), 0);
    const std::string program = Hooks() + "/" + kind;
    std::vector<char*> env;
    for (auto& e : environment) env.push_back(e.data());
    env.push_back(nullptr);
    std::string name = program;
    char* argv[] = {name.data(), nullptr};
    const pid_t child = fork();
    if (child == 0) {
      dup2(pipe_fds[1], 1);
      dup2(pipe_fds[1], 2);
      close(pipe_fds[0]);
      close(pipe_fds[1]);
      prepare();
      execve(program.c_str(), argv, env.data());
      _exit(99);
    }
    close(pipe_fds[1]);
    Run run;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(pipe_fds[0], buffer, sizeof buffer)) > 0)
      run.out.append(buffer, static_cast<size_t>(n));
    close(pipe_fds[0]);
    waitpid(child, &run.status, 0);
    return run;
  }
  std::vector<HookEvent> ReadEvents(const std::string& node = "n1") const {
    std::vector<HookEvent> events;
    for (const auto& entry : stdfs::directory_iterator(Events(node))) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
      auto event = ParseHookEvent(*platform::Fs().Read(entry.path().string()));
      EXPECT_TRUE(event.ok()) << event.error().message();
      if (event.ok()) events.push_back(*event);
    }
    return events;
  }
  HookEvent OnlyEvent(const std::string& node = "n1") const {
    const auto events = ReadEvents(node);
    EXPECT_EQ(events.size(), 1u);
    return events.empty() ? HookEvent{} : events[0];
  }

  TempDir dir_;
};

const std::vector<std::string> kProlog = {"SLURMD_NODENAME=n1",
                                          "SLURM_JOB_ID=41",
                                          "SLURM_JOB_UID=1001",
                                          "SLURM_JOB_RESTART_COUNT=0",
                                          "SLURM_SCRIPT_CONTEXT=prolog_slurmd",
                                          "AWS_SECRET_ACCESS_KEY=hunter2"};
const std::vector<std::string> kTask = {"SLURMD_NODENAME=n1", "SLURM_JOB_ID=13",
                                        "SLURM_JOB_UID=1001", "SLURM_SCRIPT_CONTEXT=epilog_task",
                                        "SLURM_STEPID=0",     "SECRET=hunter2"};

/// Environment, own cgroups and cgroup files of a recorded hook, from the lab's dump format.
struct Recorded {
  std::vector<std::string> environment;
  std::string own_cgroups;
  std::vector<std::pair<std::string, std::string>> files;
};
Recorded LoadRecorded(const std::string& name) {
  Recorded recorded;
  const auto text = platform::Fs().Read(std::string(EXPANSE_TESTDATA "/hook/") + name);
  EXPECT_TRUE(text.ok());
  int section = 0;
  for (const auto line : Split(*text, '\n')) {
    if (line.starts_with("# ---")) {
      ++section;
    } else if (section == 1 && !line.empty()) {
      recorded.environment.emplace_back(line);
    } else if (section == 2 && !line.empty()) {
      recorded.own_cgroups += std::string(line) + "\n";
    } else if (section == 3 && line.find(": ") != std::string_view::npos) {
      const auto colon = line.find(": ");
      recorded.files.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
  }
  return recorded;
}

TEST_F(HookProgram, PrologLeavesOneEventWithTheSelectedEnvironmentAndPrintsNothing) {
  const Run run = Exec("prolog", kProlog);
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_EQ(run.out, "");
  const HookEvent event = OnlyEvent();
  EXPECT_EQ(event.kind, HookKind::kProlog);
  EXPECT_EQ(event.job_id(), 41);
  EXPECT_EQ(event.uid, getuid());
  EXPECT_GT(event.time_ns, int64_t{1'700'000'000} * 1'000'000'000);
  for (const auto& entry : stdfs::directory_iterator(Events()))
    EXPECT_EQ(platform::Fs().Read(entry.path().string())->find("hunter2"), std::string::npos);
}

TEST_F(HookProgram, TaskEpilogReadsTheExactPeaksOfARecordedCgroupV1Step) {
  const Recorded recorded = LoadRecorded("22.05/13.task_epilog.step0.rank0.n1");
  WriteBelowRoot("/proc/self/cgroup", recorded.own_cgroups);
  for (const auto& [path, value] : recorded.files) {
    std::string text = value;
    // The dump joined the lines of memory.oom_control.
    if (path.ends_with("oom_control")) text = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n";
    WriteBelowRoot(path, text + "\n");
  }
  const std::string base = "/sys/fs/cgroup/memory/slurm_n1/uid_1001/job_13";
  WriteBelowRoot(base + "/step_0/task_0/memory.oom_control",
                 "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  WriteBelowRoot(base + "/step_0/memory.stat",
                 "cache 5\nrss 6\ntotal_cache 20480\ntotal_rss 1314816\ntotal_shmem 0\n"
                 "total_inactive_file 12288\ntotal_active_file 8192\n");
  EXPECT_EQ(Exec("task_epilog", recorded.environment).exit_code(), 0);
  const HookEvent event = OnlyEvent();
  EXPECT_EQ(event.step_id, "0");
  ASSERT_TRUE(event.step && event.job);
  EXPECT_EQ(event.step->peak, 4104192);
  EXPECT_EQ(event.step->limit, 104857600);
  EXPECT_EQ(event.step->cpu_ns, 96967366);
  EXPECT_EQ(event.step->oom_kills, 2) << "counted in the victim's task";
  EXPECT_EQ(event.step->anon, 1314816);
  EXPECT_EQ(event.step->file_lru, 20480);
  EXPECT_EQ(event.job->peak, 9756672);
  EXPECT_EQ(event.job->cpu_ns, 175106374);
}

TEST_F(HookProgram, TaskEpilogOfTheBatchStepNamesItFromTheCgroup) {
  const Recorded recorded = LoadRecorded("22.05/1.task_epilog.rank0.n1");
  WriteBelowRoot("/proc/self/cgroup", recorded.own_cgroups);
  for (const auto& [path, value] : recorded.files) WriteBelowRoot(path, value + "\n");
  EXPECT_EQ(Exec("task_epilog", recorded.environment).exit_code(), 0);
  const HookEvent event = OnlyEvent();
  EXPECT_EQ(event.step_id, "batch");
  EXPECT_EQ(event.step->peak, 3350528);
  EXPECT_EQ(event.job->peak, 3518464);
}

TEST_F(HookProgram, TaskEpilogReadsCgroupV2AlsoWhenTheJobDirectoryIsASluid) {
  for (const std::string job : {"job_4", "s1ZDM8Q6FTPJ00"}) {
    const std::string scope = "/system.slice/n1_slurmstepd.scope/" + job;
    WriteBelowRoot("/proc/self/cgroup", "0::" + scope + "/step_0/slurm\n");
    const std::string base = "/sys/fs/cgroup" + scope;
    WriteBelowRoot(base + "/memory.peak", "11538432\n");
    WriteBelowRoot(base + "/memory.max", "209715200\n");
    WriteBelowRoot(base + "/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n");
    WriteBelowRoot(base + "/step_0/memory.events", "low 0\nhigh 0\nmax 0\noom 1\noom_kill 1\n");
    WriteBelowRoot(base + "/step_0/memory.max", "max\n");
    WriteBelowRoot(base + "/step_0/user/memory.peak", "4259840\n");
    WriteBelowRoot(base + "/step_0/user/memory.max", "209715200\n");
    WriteBelowRoot(base + "/step_0/user/memory.events", "max 7\noom_kill 1\n");
    WriteBelowRoot(base + "/step_0/user/cpu.stat", "usage_usec 2500\nuser_usec 1\n");
    WriteBelowRoot(base + "/step_0/user/memory.stat",
                   "anon 100\nfile 50\nshmem 10\ninactive_file 30\nactive_file 10\n"
                   "slab_reclaimable 5\n");
    EXPECT_EQ(Exec("task_epilog", kTask).exit_code(), 0);
    const HookEvent event = OnlyEvent();
    EXPECT_EQ(event.step_id, "0");
    ASSERT_TRUE(event.step && event.job) << job;
    EXPECT_EQ(event.step->peak, 4259840);
    EXPECT_EQ(event.step->limit, 209715200);
    EXPECT_EQ(event.step->limit_hits, 7);
    EXPECT_EQ(event.step->oom_kills, 1);
    EXPECT_EQ(event.step->cpu_ns, 2'500'000);
    EXPECT_EQ(event.step->file_lru, 40);
    EXPECT_EQ(event.step->slab_reclaimable, 5);
    EXPECT_EQ(event.job->peak, 11538432);
    stdfs::remove_all(Events());
    stdfs::create_directories(Events());
  }
}

TEST_F(HookProgram, SlurmctldHooksWriteToTheControllersFolder) {
  stdfs::create_directories(Events("ctld"));
  EXPECT_EQ(Exec("prolog_slurmctld", {"SLURM_JOB_ID=5", "SLURM_JOB_NAME=x"}).exit_code(), 0);
  EXPECT_EQ(OnlyEvent("ctld").Env("SLURM_JOB_NAME"), "x");
}

TEST_F(HookProgram, ExitsZeroWhateverIsBroken) {
  struct Case {
    const char* name;
    std::function<void()> before;  // in the test process
    std::vector<std::string> environment;
    std::function<void()> prepare;  // in the child
  };
  const auto nothing = [] {};
  const auto limit = [](__rlimit_resource what, rlim_t value = 0) {
    return [what, value] {
      const rlimit limited{value, value};
      setrlimit(what, &limited);
    };
  };
  const std::vector<Case> cases = {
      {"no environment", nothing, {}, nothing},
      {"node name with a slash", nothing, {"SLURMD_NODENAME=../../tmp"}, nothing},
      {"huge values",
       nothing,
       {"SLURMD_NODENAME=n1", "SLURM_JOB_NAME=" + std::string(100'000, 'x')},
       nothing},
      {"closed standard streams", nothing, kProlog,
       [] {
         for (int i = 0; i < 3; ++i) close(i);
       }},
      {"no file descriptors", nothing, kProlog, limit(RLIMIT_NOFILE)},
      {"file size limit zero", nothing, kProlog, limit(RLIMIT_FSIZE)},
      {"no processes", nothing, kProlog, limit(RLIMIT_NPROC)},
      {"128 KiB of data", nothing, kProlog, limit(RLIMIT_DATA, 128 << 10)},
      {"8 MiB of address space", nothing, kProlog, limit(RLIMIT_AS, 8 << 20)},
      {"256 KiB of stack", nothing, kProlog, limit(RLIMIT_STACK, 256 << 10)},
      {"spool marked full", [this] { std::ofstream(Spool() + "/n1/full") << ""; }, kProlog,
       nothing},
      {"events is a file",
       [this] {
         stdfs::remove_all(Events());
         std::ofstream(Events()) << "";
       },
       kProlog, nothing},
      {"spool missing", [this] { stdfs::remove_all(Spool()); }, kProlog, nothing},
      {"settings are rubbish",
       [this] {
         std::ofstream(Hooks() + "/hook.conf") << std::string(20'000, '=') << "\nspool\n\0\xff";
       },
       kProlog, nothing},
      {"settings missing", [this] { stdfs::remove(Hooks() + "/hook.conf"); }, kProlog, nothing},
      {"settings are a directory", [this] { stdfs::create_directory(Hooks() + "/hook.conf"); },
       kProlog, nothing},
  };
  for (const auto& c : cases) {
    c.before();
    for (const auto* kind : {"prolog", "epilog", "task_prolog", "task_epilog"}) {
      const Run run = Exec(kind, c.environment, c.prepare);
      EXPECT_EQ(run.exit_code(), 0) << c.name << " " << kind << " status " << run.status;
      EXPECT_EQ(run.out, "") << c.name;
    }
  }
}

TEST_F(HookProgram, ExitsZeroWhenTheSpoolMayNotBeWritten) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(Events().c_str(), 0700), 0);
  const Run run = Exec("task_prolog", kTask, [] {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(98);
  });
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_TRUE(stdfs::is_empty(Events()));
}

TEST_F(HookProgram, AUsersEventIsReadableForTheSamplerDespiteUmask) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  EXPECT_EQ(Exec("task_prolog", kTask,
                 [] {
                   umask(0777);
                   if (setgid(65534) != 0 || setuid(65534) != 0) _exit(98);
                 })
                .exit_code(),
            0);
  for (const auto& entry : stdfs::directory_iterator(Events())) {
    struct stat st {};
    ASSERT_EQ(stat(entry.path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0644u);
    EXPECT_EQ(st.st_uid, 65534u);
  }
  EXPECT_EQ(ReadEvents().size(), 1u);
}

TEST_F(HookProgram, AChainedHookRunsFirstAndItsStatusIsPassedOn) {
  const std::string foreign =
      WriteProgram("foreign.sh", "#!/bin/sh\necho \"export A=$SLURM_JOB_ID\"\nexit 3\n");
  Configure("chain.task_prolog = " + foreign + "\n");
  const Run run = Exec("task_prolog", kTask);
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_EQ(run.out, "export A=13\n");
  EXPECT_EQ(ReadEvents().size(), 1u);
  EXPECT_EQ(Exec("prolog", kProlog).exit_code(), 0) << "chained for its own kind only";
}

TEST_F(HookProgram, AChainedHookKilledByASignalFailsAsItWouldAlone) {
  Configure("chain.prolog = " + WriteProgram("foreign.sh", "#!/bin/sh\nkill -9 $$\n") + "\n");
  EXPECT_EQ(Exec("prolog", kProlog).exit_code(), 128 + 9);
}

TEST_F(HookProgram, AMissingChainedHookIsNotedAndNoFailure) {
  Configure("chain.prolog = /nowhere/prolog.sh\n");
  EXPECT_EQ(Exec("prolog", kProlog).exit_code(), 0);
  const HookEvent event = OnlyEvent();
  ASSERT_EQ(event.notes.size(), 2u);
  EXPECT_EQ(event.notes[1], "/nowhere/prolog.sh");
}

TEST_F(HookProgram, AChainedPatternRunsItsMatchesInOrderUntilOneFails) {
  stdfs::create_directories(dir_.path() + "/prolog.d");
  const std::string log = dir_.path() + "/log";
  for (const std::string n : {"10-a", "20-b", "30-c"})
    WriteProgram("prolog.d/" + n,
                 "#!/bin/sh\necho " + n + " >> " + log + "\n" + (n == "20-b" ? "exit 7\n" : ""));
  Configure("chain.prolog = " + dir_.path() + "/prolog.d/*\n");
  EXPECT_EQ(Exec("prolog", kProlog).exit_code(), 7);
  EXPECT_EQ(*platform::Fs().Read(log), "10-a\n20-b\n");
}

TEST_F(HookProgram, AChainedHookGetsTheSignalsThatSlurmSet) {
  // /proc/self/status of the chained program: nothing of ours is ignored or blocked in it.
  const std::string foreign =
      WriteProgram("foreign.sh", "#!/bin/sh\ngrep -E '^Sig(Ign|Blk)' /proc/self/status\n");
  Configure("chain.prolog = " + foreign + "\n");
  const Run run = Exec("prolog", kProlog);
  EXPECT_EQ(run.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(HookProgram, IsCalledBySymbolicLinkToo) {
  const std::string link = dir_.path() + "/links";
  stdfs::create_directories(link);
  stdfs::create_symlink(Hooks() + "/prolog", link + "/prolog");
  std::vector<std::string> environment = kProlog;
  std::vector<char*> env;
  for (auto& e : environment) env.push_back(e.data());
  env.push_back(nullptr);
  std::string name = link + "/prolog";
  char* argv[] = {name.data(), nullptr};
  const pid_t child = fork();
  if (child == 0) {
    execve(name.c_str(), argv, env.data());
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(ReadEvents().size(), 1u);
}

}  // namespace
}  // namespace expanse::collect::hook
