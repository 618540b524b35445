// SPDX-License-Identifier: Apache-2.0
// collector_cost [SECONDS=60] [HOURS=24]: what the node's sampler costs. As root on cgroup v1 it
// makes 200 job cgroups with steps and tasks and 600 processes in them that use memory and CPU each
// second; elsewhere it makes the same tree of plain files. Then it runs the sampler at 1 Hz for
// SECONDS, and HOURS simulated hours back to back on a tree of files whose jobs come and go.
// Prints name,metric,value,unit; exit status 1 when a bar is missed: cgroups under 1 % of a core,
// all under 2 %, resident under 40 MiB, no growth (2 MiB) after the first simulated hour.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/core/spool.h"
#include "collect/host/sampler.h"

namespace {

namespace stdfs = std::filesystem;
using namespace expanse;                 // NOLINT(google-build-using-namespace): a program
using namespace expanse::collect;        // NOLINT(google-build-using-namespace)
using namespace expanse::collect::host;  // NOLINT(google-build-using-namespace)

constexpr int kJobs = 200;
constexpr int kProcessesPerJob = 3;
constexpr int kSimulatedJobs = 20;
constexpr char kTop[] = "/slurm_expansebench/uid_1001";

int g_missed = 0;

void Print(const char* metric, double value, const char* unit, double bar = 0) {
  const bool is_missed = bar > 0 && value > bar;
  std::printf("collector_cost,%s,%.4f,%s%s\n", metric, value, unit, is_missed ? ",MISSED" : "");
  if (is_missed) ++g_missed;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}
void Replace(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Uses a page more or less and some CPU each second, as a quiet job does.
[[noreturn]] void Work(int number) {
  constexpr size_t kBytes = 1 << 20;
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t round = 0;; ++round) {
    for (size_t page = 0; page < 8; ++page) memory[(round * 8 + page) * 4096 % kBytes] = 1;
    if (round % 16 == 15) ::madvise(memory, kBytes, MADV_DONTNEED);
    ::usleep(1'000'000 + static_cast<useconds_t>(number % 97) * 100);
  }
}

class RealTree {
 public:
  static bool IsPossible() {
    return ::geteuid() == 0 && stdfs::exists("/sys/fs/cgroup/memory/cgroup.procs") &&
           stdfs::exists("/sys/fs/cgroup/cpuacct/cgroup.procs");
  }
  RealTree() {
    for (const std::string controller : {"memory", "cpuacct"})
      for (int job = 1; job <= kJobs; ++job)
        for (const char* step : {"/step_batch/task_0", "/step_extern/task_0"})
          stdfs::create_directories("/sys/fs/cgroup/" + controller + Job(job) + step);
    for (int job = 1; job <= kJobs; ++job)
      for (int n = 0; n < kProcessesPerJob; ++n) Start(job, n);
  }
  ~RealTree() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
    for (const std::string controller : {"memory", "cpuacct"})
      Remove("/sys/fs/cgroup/" + controller + "/slurm_expansebench");
  }
  RealTree(const RealTree&) = delete;
  RealTree& operator=(const RealTree&) = delete;

 private:
  static std::string Job(int job) { return std::string(kTop) + "/job_" + std::to_string(job); }
  void Start(int job, int number) {
    const pid_t child = ::fork();
    if (child == 0 && number == 0)
      for (;;) ::pause();
    if (child == 0) Work(job * kProcessesPerJob + number);
    children_.push_back(child);
    // The first is the sleeping process that SLURM keeps in step_extern.
    const std::string task = number == 0 ? "/step_extern/task_0" : "/step_batch/task_0";
    for (const std::string controller : {"memory", "cpuacct"})
      WriteFile("/sys/fs/cgroup/" + controller + Job(job) + task + "/cgroup.procs",
                std::to_string(child));
  }
  static void Remove(const std::string& directory) {
    std::error_code ignored;
    for (const auto& entry : stdfs::directory_iterator(directory, ignored))
      if (entry.is_directory()) Remove(entry.path());
    ::rmdir(directory.c_str());
  }
  std::vector<pid_t> children_;
};

/// Plain files with the same names.
class FileTree {
 public:
  explicit FileTree(std::string root) : root_(std::move(root)) {
    Replace2("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n");
    Replace2("/proc/stat", "cpu 100 0 0 1000 0 0 0 0 0 0\ncpu0 1 0 0 1\n");
    stdfs::create_directories(root_ + "/sys/fs/cgroup/memory");
    stdfs::create_directories(root_ + "/sys/fs/cgroup/cpuacct");
  }
  void Add(int job, int processes) {
    for (const std::string& unit :
         {Job(job), Job(job) + "/step_batch", Job(job) + "/step_extern"}) {
      Set(unit, 1 << 20);
      const std::string memory = "/sys/fs/cgroup/memory" + unit;
      Replace2(memory + "/memory.limit_in_bytes", "104857600\n");
      Replace2(memory + "/memory.failcnt", "0\n");
      Replace2(memory + "/memory.stat",
               "total_cache 8192\ntotal_rss 16384\ntotal_shmem 0\ntotal_swap 0\n"
               "total_inactive_file 8192\ntotal_active_file 0\n");
    }
    std::string pids;
    for (int n = 0; n < processes; ++n) pids += std::to_string(::getpid()) + "\n";
    Replace2("/sys/fs/cgroup/memory" + Job(job) + "/step_batch/task_0/cgroup.procs", pids);
  }
  void Set(const std::string& unit, int64_t usage) {
    Replace2("/sys/fs/cgroup/memory" + unit + "/memory.usage_in_bytes", std::to_string(usage));
    Replace2("/sys/fs/cgroup/memory" + unit + "/memory.max_usage_in_bytes", std::to_string(usage));
    Replace2("/sys/fs/cgroup/cpuacct" + unit + "/cpuacct.usage", std::to_string(usage * 10));
  }
  void Remove(int job) {
    for (const std::string controller : {"memory", "cpuacct"})
      stdfs::remove_all(root_ + "/sys/fs/cgroup/" + controller + Job(job));
  }
  static std::string Job(int job) { return std::string(kTop) + "/job_" + std::to_string(job); }

 private:
  void Replace2(const std::string& path, const std::string& text) {
    stdfs::create_directories(stdfs::path(root_ + path).parent_path());
    Replace(root_ + path, text);
  }
  std::string root_;
};

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

double ProcessSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Parts {
  Parts(const platform::Clock& clock, const platform::Fs& fs, const std::string& directory,
        bool use_taskstats)
      : random(1) {
    SpoolOptions spool_options;
    spool_options.directory = directory + "/spool";
    spool_options.max_bytes = 32 << 20;
    spool = *SpoolWriter::Open(spool_options, clock, random);
    SamplerOptions options;
    options.node = "expansebench";
    options.events_directory = "/tmp/expanse-collector-cost-events-" + std::to_string(::getpid());
    options.use_taskstats = use_taskstats;
    events = fs.Host(options.events_directory);
    sampler = std::make_unique<Sampler>(options, clock, fs, *CgroupReader::Detect(fs, options.node),
                                        *spool);
  }
  ~Parts() {
    std::error_code ignored;
    stdfs::remove_all(events, ignored);
  }
  platform::FakeRandom random;
  std::unique_ptr<SpoolWriter> spool;
  std::unique_ptr<Sampler> sampler;
  std::string events;
};

void RunAtOneHertz(int seconds) {
  const platform::TempDir directory;
  std::unique_ptr<RealTree> real;
  platform::Fs fs;
  if (RealTree::IsPossible()) {
    real = std::make_unique<RealTree>();
  } else {
    FileTree tree(directory.path() + "/root");
    for (int job = 1; job <= kJobs; ++job) tree.Add(job, kProcessesPerJob);
    fs = platform::Fs(directory.path() + "/root");
  }
  Print("real_cgroups", real ? 1 : 0, "bool");
  Print("job_cgroups", kJobs, "count");
  Print("processes", kJobs * kProcessesPerJob, "count");
  const platform::SystemClock clock;
  Parts parts(clock, fs, directory.path(), true);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (int i = 0; i < 3; ++i) parts.sampler->Tick();  // opens files, learns processes
  const SamplerStats before = parts.sampler->stats();
  const double cpu_before = ProcessSeconds();
  std::vector<double> ticks;
  auto next = std::chrono::steady_clock::now();
  const auto start = next;
  for (int i = 0; i < seconds; ++i) {
    next += std::chrono::seconds(1);
    std::this_thread::sleep_until(next);
    parts.sampler->Tick();
    ticks.push_back(parts.sampler->stats().tick_cpu_ms);
  }
  const SamplerStats after = parts.sampler->stats();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const auto percent = [&](double cpu_seconds) { return 100 * cpu_seconds / wall.count(); };
  std::sort(ticks.begin(), ticks.end());
  Print("wall", wall.count(), "s");
  Print("cgroups", percent(after.cost.cgroup - before.cost.cgroup), "% of a core", 1);
  Print("processes", percent(after.cost.processes - before.cost.processes), "% of a core");
  Print("taskstats", percent(after.cost.taskstats - before.cost.taskstats), "% of a core");
  Print("all", percent(ProcessSeconds() - cpu_before), "% of a core", 2);
  Print("tick_median", ticks[ticks.size() / 2], "ms");
  Print("tick_largest", ticks.back(), "ms");
  Print("samples_a_second", static_cast<double>(after.samples - before.samples) / wall.count(),
        "count");
  Print("resident", static_cast<double>(ResidentBytes()) / (1 << 20), "MiB", 40);
}

void RunSimulatedHours(int hours) {
  const platform::TempDir directory;
  FileTree tree(directory.path() + "/root");
  for (int job = 1; job <= kSimulatedJobs; ++job) tree.Add(job, kProcessesPerJob);
  const platform::Fs fs(directory.path() + "/root");
  platform::FakeClock clock(FromUnixMillis(1'800'000'000'000));
  Parts parts(clock, fs, directory.path(), false);
  int newest = kSimulatedJobs;
  double first_hour = 0;
  for (int hour = 1; hour <= hours; ++hour) {
    for (int second = 0; second < 3600; ++second) {
      clock.Advance(Millis(1000));
      if (second % 60 == 0) {  // a job ends, another begins
        tree.Remove(newest + 1 - kSimulatedJobs);
        tree.Add(++newest, kProcessesPerJob);
      }
      if (second % 10 == 0) tree.Set(FileTree::Job(newest), 1'000'000 + second);
      parts.sampler->Tick();
    }
    if (hour == 1) first_hour = static_cast<double>(ResidentBytes()) / (1 << 20);
  }
  const double last = static_cast<double>(ResidentBytes()) / (1 << 20);
  Print("simulated", hours, "h");
  Print("simulated_jobs_ended", newest - kSimulatedJobs, "count");
  Print("resident_after_1h", first_hour, "MiB");
  Print("resident_at_end", last, "MiB", 40);
  Print("growth", last - first_hour, "MiB", 2);
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 60;
  const int hours = argc > 2 ? std::atoi(argv[2]) : 24;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65'536);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (seconds > 0) RunAtOneHertz(seconds);
  if (hours > 0) RunSimulatedHours(hours);
  return g_missed == 0 ? 0 : 1;
}
