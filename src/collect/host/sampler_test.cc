// SPDX-License-Identifier: Apache-2.0
#include "collect/host/sampler.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "collect/host/event_collector.h"

namespace expanse::collect::host {
namespace {

namespace stdfs = std::filesystem;
namespace v1 = expanse::common::v1;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace): literals with NUL

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() : fs_(dir_.path() + "/root") {
    Write("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n");
    Write("/proc/stat", "cpu 100 0 0 1000 0 0 0 0 0 0\ncpu0 1 0 0 1\n");
    stdfs::create_directories(dir_.path() + "/root/sys/fs/cgroup/memory");
    stdfs::create_directories(dir_.path() + "/root/sys/fs/cgroup/cpuacct");
    SpoolOptions spool;
    spool.directory = dir_.path() + "/spool";
    spool_ = *SpoolWriter::Open(spool, clock_, random_);
    reader_ = *SpoolReader::Open(spool.directory);
    Start();
  }
  void Start() {
    SamplerOptions options;
    options.node = "n1";
    options.events_directory = "/hooks/n1/events";
    options.state_file = "/hooks/n1/jobs";
    options.service_uid = ::getuid();
    sampler_ =
        std::make_unique<Sampler>(options, clock_, fs_, *CgroupReader::Detect(fs_, "n1"), *spool_);
  }
  void Write(const std::string& path, const std::string& bytes) {
    const stdfs::path host = fs_.Host(path);
    stdfs::create_directories(host.parent_path());
    std::ofstream(host) << bytes;
  }
  static std::string Step(const std::string& step = "batch") {
    return "slurm_n1/uid_1001/job_7/step_" + step;
  }
  void SetCgroup(const std::string& unit, int64_t usage, int64_t peak, int64_t cache,
                 int64_t cpu_ns) {
    const std::string memory = "/sys/fs/cgroup/memory/" + unit;
    Write(memory + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    Write(memory + "/memory.max_usage_in_bytes", std::to_string(peak) + "\n");
    Write(memory + "/memory.limit_in_bytes", "104857600\n");
    Write(memory + "/memory.failcnt", "0\n");
    Write(memory + "/memory.stat", "total_cache " + std::to_string(cache) +
                                       "\ntotal_rss 1\ntotal_shmem 0\ntotal_inactive_file " +
                                       std::to_string(cache) + "\ntotal_active_file 0\n");
    Write("/sys/fs/cgroup/cpuacct/" + unit + "/cpuacct.usage", std::to_string(cpu_ns) + "\n");
  }
  void RemoveJob() {
    stdfs::remove_all(fs_.Host("/sys/fs/cgroup/memory/slurm_n1/uid_1001/job_7"));
    stdfs::remove_all(fs_.Host("/sys/fs/cgroup/cpuacct/slurm_n1/uid_1001/job_7"));
  }
  void WriteEvent(const std::string& name, const std::string& kind, const std::string& more,
                  int64_t time_ms, uid_t owner = 0) {
    const std::string path = "/hooks/n1/events/" + name;
    Write(path, "EXPHOOK1\0kind="s + kind + "\0time_ns="s + std::to_string(time_ms) + "000000\0"s +
                    "env.SLURM_JOB_ID=7\0env.SLURM_JOB_UID=1001\0"s + more + "end=1\0"s);
    if (::getuid() == 0) {
      ASSERT_EQ(::chown(fs_.Host(path).c_str(), owner, owner), 0);
    }
  }
  static std::string LayoutOf(int task, int tasks) {
    return "env.SLURM_NODEID=0\0env.SLURM_TASKS_PER_NODE="s + std::to_string(tasks) +
           "\0env.SLURM_LOCALID="s + std::to_string(task) + "\0"s;
  }
  void Ticks(int n) {
    for (int i = 0; i < n; ++i) {
      clock_.Advance(Millis(1000));
      sampler_->Tick();
    }
  }
  std::vector<data::v1::Record> Records() {
    std::vector<data::v1::Record> all;
    for (;;) {
      auto batch = reader_->Next(1000, 1 << 20);
      if (!batch.ok() || batch->empty()) return all;
      for (auto& record : batch->records) all.push_back(std::move(record));
    }
  }
  static const data::v1::Series* FindSeries(const std::vector<data::v1::Record>& records,
                                            const std::string& metric) {
    for (const auto& record : records)
      for (const auto& series : record.samples().series())
        if (series.metric() == metric) return &series;
    return nullptr;
  }
  static std::vector<data::v1::Record> FactsOf(const std::vector<data::v1::Record>& records,
                                               data::v1::FactOrigin origin) {
    std::vector<data::v1::Record> out;
    for (const auto& record : records)
      if (record.has_facts() && record.facts().origin() == origin) out.push_back(record);
    return out;
  }
  static constexpr int64_t kStart = 1'800'000'000'000;

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(kStart)};
  platform::FakeRandom random_{3};
  std::unique_ptr<SpoolWriter> spool_;
  std::unique_ptr<SpoolReader> reader_;
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(SamplerTest, SamplesOfSomeSecondsTravelInOneRecordPerNode) {
  SetCgroup(Step(), 50 * kMiB, 60 * kMiB, 10 * kMiB, 1'000'000'000);
  Ticks(1);
  SetCgroup(Step(), 52 * kMiB, 60 * kMiB, 10 * kMiB, 1'500'000'000);
  Ticks(5);
  const auto records = Records();
  const auto* cpu = FindSeries(records, "cpu");
  ASSERT_NE(cpu, nullptr);
  EXPECT_EQ(cpu->step_id(), "batch");
  EXPECT_EQ(cpu->run().native_id(), "7");
  ASSERT_GE(cpu->values_size(), 2);
  EXPECT_DOUBLE_EQ(cpu->values(0), 0.5) << "half a second of CPU in one second";
  EXPECT_DOUBLE_EQ(cpu->values(1), 0.0);
  EXPECT_EQ(cpu->timestamps_ms(0), kStart + 2000);
  const auto* need = FindSeries(records, "memory-need");
  ASSERT_NE(need, nullptr);
  EXPECT_EQ(need->values(0), 40.0 * kMiB);
  EXPECT_NE(FindSeries(records, "node-memory-available"), nullptr);
  EXPECT_EQ(FindSeries(records, "node-memory-available")->values(0), 4000.0 * 1024);
}

TEST_F(SamplerTest, WhenACgroupGoesItsPeaksAreReportedAsFloors) {
  SetCgroup("slurm_n1/uid_1001/job_7", 55 * kMiB, 66 * kMiB, 10 * kMiB, 1'100'000'000);
  SetCgroup(Step(), 50 * kMiB, 60 * kMiB, 10 * kMiB, 1'000'000'000);
  Ticks(2);
  RemoveJob();
  Ticks(1);
  const auto facts = FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP);
  ASSERT_EQ(facts.size(), 2u);
  const auto& job = facts[0].facts().execution();
  EXPECT_EQ(facts[0].facts().step_id(), "");
  EXPECT_EQ(job.memory_peak_enforced().value(), 66 * kMiB);
  EXPECT_EQ(job.memory_peak_enforced().bound(), v1::BOUND_AT_LEAST);
  EXPECT_DOUBLE_EQ(job.cpu_seconds().value(), 1.1);
  EXPECT_DOUBLE_EQ(job.cpu_cores_used_peak().value(), 0.0);
  const auto& step = facts[1].facts().execution().steps(0);
  EXPECT_EQ(step.memory_need().value(), 50 * kMiB) << "the peak less the cache";
  EXPECT_EQ(step.memory_need().bound(), v1::BOUND_AT_LEAST);
  Ticks(3);
  EXPECT_TRUE(FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP).empty()) << "reported once";
}

TEST_F(SamplerTest, ARunningJobIsReportedOnceAMinute) {
  SetCgroup(Step(), 50 * kMiB, 60 * kMiB, 10 * kMiB, 1'000'000'000);
  Ticks(59);
  EXPECT_TRUE(FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP).empty());
  Ticks(2);
  EXPECT_FALSE(FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP).empty());
}

TEST_F(SamplerTest, ARequeuedJobStartsItsPeaksAfresh) {
  SetCgroup(Step(), 90 * kMiB, 95 * kMiB, 0, 9'000'000'000);
  Ticks(2);
  RemoveJob();
  Ticks(1);
  (void)Records();
  SetCgroup(Step(), 10 * kMiB, 12 * kMiB, 0, 1'000'000'000);
  Ticks(2);
  RemoveJob();
  Ticks(1);
  for (const auto& record : FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP)) {
    if (record.facts().execution().steps_size() > 0) {
      EXPECT_EQ(record.facts().execution().steps(0).memory_peak_enforced().value(), 12 * kMiB);
    }
  }
}

TEST_F(SamplerTest, HookEventsBecomeFactsAndTheirFilesGo) {
  WriteEvent("1-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=1\0"s, kStart);
  SetCgroup(Step(), 40 * kMiB, 60 * kMiB, 0, 1);
  Ticks(1);
  WriteEvent("2-t", "task_epilog", "step=batch\0step.peak=62914560\0step.cpu_ns=1000000000\0"s,
             kStart + 1500, 1001);
  Ticks(1);
  const auto records = Records();
  EXPECT_EQ(FactsOf(records, data::v1::FACT_ORIGIN_HOOK_PROLOG).size(), 1u);
  const auto epilogs = FactsOf(records, data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG);
  ASSERT_EQ(epilogs.size(), 1u);
  EXPECT_EQ(epilogs[0].facts().key().restart_count(), 1) << "task hooks are not told";
  const auto& step = epilogs[0].facts().execution().steps(0);
  EXPECT_EQ(step.memory_peak_enforced().value(), 62914560);
  EXPECT_EQ(step.memory_need().value(), 40 * kMiB) << "the sampler's floor";
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
  EXPECT_EQ(sampler_->stats().events, 2u);
}

TEST_F(SamplerTest, EventsAreTakenInTheOrderOfTheirTime) {
  WriteEvent("9-p", "prolog", "", kStart);
  WriteEvent("1-e", "epilog", "", kStart + 800);
  Ticks(1);
  std::vector<data::v1::FactOrigin> origins;
  for (const auto& record : Records())
    if (record.has_facts()) origins.push_back(record.facts().origin());
  EXPECT_EQ(origins, (std::vector<data::v1::FactOrigin>{data::v1::FACT_ORIGIN_HOOK_PROLOG,
                                                        data::v1::FACT_ORIGIN_HOOK_EPILOG}));
}

TEST_F(SamplerTest, TheTasksOfAStepMakeOneRecordEach) {
  WriteEvent("1-p", "prolog", "", kStart);
  for (int task = 0; task < 4; ++task) {
    WriteEvent("2-" + std::to_string(task), "task_prolog", "step=0\0"s, kStart + 10 + task, 1001);
    WriteEvent("3-" + std::to_string(task), "task_epilog",
               "step=0\0step.peak="s + std::to_string(1000 + task) + "\0"s + LayoutOf(task, 4),
               kStart + 500 + task, 1001);
  }
  Ticks(1);
  const auto records = Records();
  const auto starts = FactsOf(records, data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG);
  const auto ends = FactsOf(records, data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG);
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0].facts().execution().steps(0).start_time_ms(), kStart + 10);
  EXPECT_EQ(ends[0].facts().execution().steps(0).end_time_ms(), kStart + 503);
  EXPECT_EQ(ends[0].facts().execution().steps(0).memory_peak_enforced().value(), 1003);
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
}

TEST_F(SamplerTest, AStepIsExactOnceItsLastTaskEnded) {
  WriteEvent("1-p", "prolog", "", kStart);
  for (int task = 0; task < 2; ++task) {
    for (int again = 0; again < 2; ++again)  // a hook that ran twice is no second task
      WriteEvent("2-" + std::to_string(again), "task_epilog",
                 "step=0\0step.peak="s + std::to_string(1000 + task) + "\0"s + LayoutOf(task, 2),
                 kStart + 500 + task, 1001);
    Ticks(1);
    const auto ends = FactsOf(Records(), data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG);
    ASSERT_EQ(ends.size(), 1u);
    const auto& step = ends[0].facts().execution().steps(0);
    EXPECT_EQ(step.memory_peak_enforced().bound(),
              task == 1 ? v1::BOUND_EXACT : v1::BOUND_AT_LEAST);
    EXPECT_EQ(step.has_end_time_ms(), task == 1);
  }
}

TEST_F(SamplerTest, AnAttemptOnTheSamePathHasItsOwnSeries) {
  WriteEvent("1-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart);
  Ticks(1);
  SetCgroup(Step(), 1, 1, 0, 1);
  Ticks(1);
  RemoveJob();
  WriteEvent("2-e", "epilog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart + 1);
  Ticks(1);
  SetCgroup(Step(), 2, 2, 0, 1);  // its prolog's file comes after its first sample
  Ticks(1);
  WriteEvent("3-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=1\0"s, kStart + 2);
  SetCgroup(Step(), 3, 3, 0, 1);
  Ticks(4);
  std::vector<std::pair<int, double>> found;  // restart count or -1, first value
  for (const auto& record : Records())
    for (const auto& series : record.samples().series())
      if (series.metric() == "memory")
        found.emplace_back(series.run().has_restart_count() ? series.run().restart_count() : -1,
                           series.values(0));
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(found[0], std::pair(0, 1.0));
  EXPECT_EQ(found[1], std::pair(-1, 2.0));
  EXPECT_EQ(found[2].first, 1) << "more is known of the run: another series";
}

TEST_F(SamplerTest, AHealthLineSaysSinceWhenItIsSo) {
  std::map<std::string, data::v1::CollectorHealth> last;
  const auto read = [&] {
    for (const auto& record : Records())
      for (const auto& health : record.compute().health()) last[health.part()] = health;
  };
  Ticks(1);
  read();
  const int64_t first = last.at("hooks").since_ms();
  Ticks(120);
  read();
  EXPECT_EQ(last.at("hooks").since_ms(), first) << "nothing changed";
  stdfs::remove_all(fs_.Host("/hooks/n1/events"));
  Write("/hooks/n1/events", "no directory");
  Ticks(120);
  read();
  EXPECT_EQ(last.at("hooks").status(), "degraded");
  EXPECT_EQ(last.at("hooks").since_ms(), kStart + 122'000);
  EXPECT_EQ(last.at("sampler").since_ms(), first);
}

TEST_F(SamplerTest, AKillInOneStepMakesTheJobsPeakAFloor) {
  WriteEvent("1-p", "prolog", "", kStart);
  WriteEvent("2-t", "task_epilog", "step=0\0step.peak=9\0step.oom_kills=1\0"s, kStart + 1, 1001);
  Ticks(1);
  Start();  // also over a restart
  WriteEvent("3-t", "task_epilog", "step=batch\0step.peak=5\0step.oom_kills=0\0job.peak=9\0"s,
             kStart + 2, 1001);
  Ticks(1);
  const auto ends = FactsOf(Records(), data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].facts().execution().memory_peak_enforced().bound(), v1::BOUND_AT_LEAST);
  EXPECT_EQ(ends[1].facts().execution().steps(0).memory_peak_enforced().bound(), v1::BOUND_EXACT);
}

TEST_F(SamplerTest, TheNextAttemptIsNotTakenForTheLastWhenItsPrologIsMissing) {
  WriteEvent("1-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart);
  WriteEvent("2-e", "epilog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart + 1);
  Ticks(1);
  (void)Records();
  SetCgroup(Step(), 1, 1, 0, 1);  // hooks were unwired in between
  Ticks(1);
  RemoveJob();
  Ticks(1);
  const auto facts = FactsOf(Records(), data::v1::FACT_ORIGIN_CGROUP);
  ASSERT_FALSE(facts.empty());
  EXPECT_FALSE(facts[0].facts().key().has_restart_count());
}

TEST_F(SamplerTest, AnEventOfSomebodyElsesJobIsRejected) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give files away";
  WriteEvent("1-p", "prolog", "", kStart);
  WriteEvent("2-t", "task_epilog", "step=batch\0step.peak=1\0"s, kStart + 1, 1002);
  WriteEvent("3-p", "epilog", "", kStart + 2, 1001);
  Ticks(1);
  EXPECT_EQ(sampler_->stats().rejected_events, 2u);
  EXPECT_EQ(sampler_->stats().events, 1u);
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
}

TEST_F(SamplerTest, ATaskEventWaitsForItsJobToBecomeKnown) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give files away";
  WriteEvent("2-t", "task_prolog", "step=batch\0"s, kStart, 1001);
  struct timespec times[2] = {{kStart / 1000, 0}, {kStart / 1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, fs_.Host("/hooks/n1/events/2-t").c_str(), times, 0), 0);
  Ticks(1);
  EXPECT_EQ(sampler_->stats().events, 0u);
  EXPECT_EQ(sampler_->stats().rejected_events, 0u);
  SetCgroup(Step(), 1, 1, 0, 1);  // the path says whose job it is
  Ticks(1);
  EXPECT_EQ(sampler_->stats().events, 1u);
}

TEST_F(SamplerTest, FilesWithAFutureTimeWaitNoLongerThanOthers) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give files away";
  WriteEvent("2-t", "task_prolog", "step=batch\0"s, kStart, 1001);
  Write("/hooks/n1/events/.tmp-1", "half");
  const struct timespec times[2] = {{kStart / 500, 0}, {kStart / 500, 0}};
  for (const char* name : {"2-t", ".tmp-1"})
    ASSERT_EQ(::utimensat(AT_FDCWD, fs_.Host("/hooks/n1/events/"s + name).c_str(), times, 0), 0);
  Ticks(12);
  EXPECT_EQ(sampler_->stats().rejected_events, 1u);
  Ticks(60);
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
}

TEST_F(SamplerTest, AUserWhoFloodsTheEventsFolderHoldsNobodyUp) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give files away";
  for (int i = 0; i < 5'000; ++i)  // more than a round reads
    WriteEvent("0-" + std::to_string(i), "task_prolog", "step=batch\0"s, kStart, 1002);
  for (int i = 0; i < 300; ++i) {
    const std::string name = "/hooks/n1/events/.tmp-" + std::to_string(i);
    Write(name, "");
    ASSERT_EQ(::chown(fs_.Host(name).c_str(), 1002, 1002), 0);
  }
  WriteEvent("9-p", "prolog", "", kStart);
  WriteEvent("9-t", "task_epilog", "step=batch\0"s, kStart + 1, 1001);
  Ticks(1);
  const auto records = Records();
  EXPECT_EQ(FactsOf(records, data::v1::FACT_ORIGIN_HOOK_PROLOG).size(), 1u);
  EXPECT_EQ(FactsOf(records, data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG).size(), 1u);
  Ticks(70);
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
  std::string reason;
  for (const auto& record : records)
    for (const auto& health : record.compute().health())
      if (health.part() == "hooks" && health.status() == "degraded") reason = health.reason();
  EXPECT_NE(reason.find("user 1002"), std::string::npos) << reason;
}

TEST_F(SamplerTest, WhoOwnsAJobIsRememberedOverARestart) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give files away";
  WriteEvent("1-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=3\0"s, kStart);
  Ticks(1);
  Start();
  WriteEvent("2-t", "task_epilog", "step=batch\0"s, kStart + 1500, 1001);
  Ticks(1);
  const auto epilogs = FactsOf(Records(), data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG);
  ASSERT_EQ(epilogs.size(), 1u);
  EXPECT_EQ(epilogs[0].facts().key().restart_count(), 3);
}

TEST_F(SamplerTest, ATaskOfALaterAttemptWithoutAPrologIsNotGivenToTheEarlierOne) {
  WriteEvent("1-p", "prolog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart);
  WriteEvent("2-e", "epilog", "env.SLURM_JOB_RESTART_COUNT=0\0"s, kStart + 1000);
  Ticks(1);
  WriteEvent("3-t", "task_prolog", "step=batch\0"s, kStart + 12000);
  Ticks(1);
  const auto starts = FactsOf(Records(), data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_FALSE(starts[0].facts().key().has_restart_count());
}

TEST_F(SamplerTest, AnEpilogWithoutAPrologIsToldAndHooksThatRanTwiceAreHarmless) {
  WriteEvent("1-e", "epilog", "", kStart);
  WriteEvent("2-e", "epilog", "", kStart + 90);
  Ticks(1);
  WriteEvent("3-p", "prolog", "", kStart + 5000);
  WriteEvent("4-p", "prolog", "", kStart + 5090);
  Ticks(1);
  const auto records = Records();
  const auto epilogs = FactsOf(records, data::v1::FACT_ORIGIN_HOOK_EPILOG);
  ASSERT_EQ(epilogs.size(), 2u);
  EXPECT_EQ(epilogs[0].facts().key().native_id(), "7");
  EXPECT_FALSE(epilogs[0].facts().key().has_restart_count()) << "no Prolog told it";
  EXPECT_FALSE(epilogs[0].facts().execution().has_start_time_ms());
  EXPECT_EQ(FactsOf(records, data::v1::FACT_ORIGIN_HOOK_PROLOG).size(), 2u);
  EXPECT_EQ(sampler_->stats().rejected_events, 0u);
  EXPECT_TRUE(stdfs::is_empty(fs_.Host("/hooks/n1/events")));
}

TEST_F(SamplerTest, LinksPipesAndRubbishAmongTheEventsAreRemovedAndHarmless) {
  const std::string events = fs_.Host("/hooks/n1/events");
  stdfs::create_directories(events);
  stdfs::create_symlink("/etc/passwd", events + "/link");
  ASSERT_EQ(::mkfifo((events + "/pipe").c_str(), 0666), 0);
  Write("/hooks/n1/events/rubbish", "not an event");
  Write("/hooks/n1/events/large", std::string(1 << 20, 'x'));
  Ticks(1);
  EXPECT_EQ(sampler_->stats().rejected_events, 4u);
  EXPECT_TRUE(stdfs::is_empty(events));
  EXPECT_TRUE(stdfs::exists("/etc/passwd"));
}

TEST_F(SamplerTest, TheEventsFolderIsMadeWritableButNotListable) {
  Ticks(1);
  struct stat st {};
  ASSERT_EQ(::stat(fs_.Host("/hooks/n1/events").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 01733u);
}

TEST_F(SamplerTest, WallTimeThatGoesBackLosesNoSample) {
  SetCgroup(Step(), 50 * kMiB, 60 * kMiB, 0, 1'000'000'000);
  Ticks(2);
  clock_.JumpWall(Millis(-3'600'000));
  Ticks(4);
  int values = 0;
  for (const auto& record : Records())
    for (const auto& series : record.samples().series()) {
      if (series.metric() != "memory") continue;
      values += series.values_size();
      EXPECT_TRUE(std::is_sorted(series.timestamps_ms().begin(), series.timestamps_ms().end()));
    }
  EXPECT_EQ(values, 6);
}

TEST_F(SamplerTest, ItsOwnStateIsPublished) {
  SetCgroup(Step(), 1, 1, 0, 1);
  Ticks(1);
  bool seen = false;
  for (const auto& record : Records())
    for (const auto& health : record.compute().health())
      if (health.part() == "sampler") {
        seen = true;
        EXPECT_EQ(health.status(), "ok");
        EXPECT_EQ(health.node(), "n1");
        EXPECT_NE(health.reason().find("of a core"), std::string::npos);
      }
  EXPECT_TRUE(seen);
  EXPECT_GT(sampler_->stats().cpu_seconds, 0);
}

TEST_F(SamplerTest, AHostWithoutCgroupsIsDegradedWithTheReason) {
  SamplerOptions options;
  options.node = "n1";
  options.events_directory = "/hooks/n1/events";
  Sampler sampler(options, clock_, fs_, nullptr, *spool_);
  sampler.Tick();
  bool seen = false;
  for (const auto& record : Records())
    for (const auto& health : record.compute().health())
      if (health.part() == "sampler") {
        seen = true;
        EXPECT_EQ(health.status(), "degraded");
      }
  EXPECT_TRUE(seen);
}

TEST_F(SamplerTest, MissedSecondsAreCounted) {
  Ticks(2);
  clock_.Advance(Millis(4000));
  sampler_->Tick();
  EXPECT_EQ(sampler_->stats().late_ticks, 1u);
}

TEST(EventCollector, TooManyFilesMakeTheHooksStopUntilHalfAreRead) {
  const platform::TempDir dir;
  const platform::Fs fs(dir.path());
  platform::FakeClock clock(FromUnixMillis(1'800'000'000'000));
  platform::FakeRandom random(1);
  SpoolOptions spool_options;
  spool_options.directory = dir.path() + "/spool";
  auto spool = *SpoolWriter::Open(spool_options, clock, random);
  EventCollectorOptions options;
  options.events_directory = "/n1/events";
  options.max_bytes = 10 * 4096;
  options.max_events_a_round = 8;
  EventCollector collector(options, clock, fs);
  stdfs::create_directories(dir.path() + "/n1/events");
  for (int i = 0; i < 20; ++i)
    std::ofstream(dir.path() + "/n1/events/" + std::to_string(100 + i))
        << "EXPHOOK1\0kind=prolog\0time_ns=5000000\0env.SLURM_JOB_ID=1\0end=1\0"s;
  ASSERT_TRUE(collector.Collect(*spool).ok());
  EXPECT_TRUE(collector.over_cap());
  EXPECT_TRUE(fs.Exists("/n1/full"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(collector.Collect(*spool).ok());
  EXPECT_FALSE(collector.over_cap());
  EXPECT_FALSE(fs.Exists("/n1/full"));
  EXPECT_EQ(collector.accepted(), 20u);
}

}  // namespace
}  // namespace expanse::collect::host
