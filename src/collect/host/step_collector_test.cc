// SPDX-License-Identifier: Apache-2.0
#include "collect/host/step_collector.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/units.h"
#include "collect/host/node_sampler.h"
#include "domain/metric_catalogue.h"

namespace expanse::collect::host {
namespace {

namespace stdfs = std::filesystem;

class StepCollectorTest : public ::testing::Test {
 protected:
  StepCollectorTest() : fs_(dir_.path()), events_({}, clock_, fs_) {
    Write("/sys/fs/cgroup/cgroup.controllers", "cpu memory io pids\n");
    Write("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n");
    Write("/proc/stat", "cpu 100 0 0 1000 7 0 0 0 0 0\ncpu0 1 0 0 1\n");
  }
  void Write(const std::string& path, const std::string& text) {
    const stdfs::path host = dir_.path() + path;
    stdfs::create_directories(host.parent_path());
    std::ofstream(host) << text;
  }
  void SetStep(int64_t anon, int64_t file, bool has_io = true) {
    const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
    for (const std::string& path : {job, job + "/step_0/user"}) {
      Write(path + "/memory.current", std::to_string(anon + file));
      Write(path + "/memory.peak", std::to_string(anon + file));
      Write(path + "/memory.max", "max\n");
      Write(path + "/memory.swap.current", "4096\n");
      Write(path + "/memory.stat", "anon " + std::to_string(anon) + "\nfile " +
                                       std::to_string(file) + "\nkernel 100\nshmem 0\n" +
                                       "inactive_file " + std::to_string(file) +
                                       "\nactive_file 0\nslab_reclaimable 0\n");
      Write(path + "/memory.events", "max 0\noom 0\noom_kill 0\n");
      Write(path + "/cpu.stat",
            "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\n"
            "throttled_usec 5000\n");
      for (const char* what : {"cpu", "memory", "io"})
        Write(path + "/" + what + ".pressure", "some avg10=0 total=2000000\nfull total=1\n");
      if (has_io) Write(path + "/io.stat", "8:0 rbytes=111 wbytes=222 rios=1\n");
      if (has_io) Write(path + "/pids.current", "9\n");
    }
    Write(job + "/step_0/memory.events", "oom_kill 2\n");
    Write(job + "/step_0/user/task_0/cgroup.procs", "41\n");
  }
  void AddProcess(const std::string& written) {
    Write("/proc/41/stat", "41 (w) S 1 1 1 0 -1 0 0 0 0 0 50 50 0 0 20 0 2 0 5 1 10 0 0\n");
    Write("/proc/41/io", "read_bytes: 0\nwrite_bytes: " + written + "\n");
    Write("/proc/41/cmdline", "work");
  }
  void Start() {
    collector_ = std::make_unique<StepCollector>(fs_, *CgroupReader::Detect(fs_, "n1"), events_,
                                                 /*use_taskstats=*/false);
  }
  /// The last value of each series of this many rounds, by metric.
  std::map<std::string, double> Rounds(int n) {
    for (int i = 0; i < n; ++i) {
      clock_.Advance(Millis(1000));
      collector_->Read(clock_.Now(), clock_.Mono(), &batch_);
      node_.Read(clock_.Now(), clock_.Mono(), collector_->jobs(), &batch_);
      node_.AddOwnCost(clock_.Now(), collector_->cost(), 1, 0, &batch_);
    }
    std::map<std::string, double> last;
    counts_.clear();
    const auto block = batch_.Take();
    for (const auto& series : block.series()) {
      last[series.metric()] = series.values(series.values_size() - 1);
      counts_[series.metric()] += series.values_size();
      EXPECT_NE(domain::FindMetric(series.metric()), nullptr) << series.metric();
    }
    return last;
  }
  TrackedUnit* Step() {
    return collector_->tracker().Find("/system.slice/slurmstepd.scope/job_7/step_0");
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(1'800'000'000'000)};
  EventCollector events_;
  SampleBatch batch_;
  NodeSampler node_{fs_};
  std::unique_ptr<StepCollector> collector_;
  std::map<std::string, int> counts_;
};

TEST_F(StepCollectorTest, EveryMetricOfTheCatalogueThatThisTreeHasIsSampledAtItsPeriod) {
  SetStep(40 * kMiB, 8 * kMiB);
  AddProcess("4096");
  Start();
  const auto last = Rounds(70);
  for (const auto& metric : domain::MetricCatalogue()) {
    if (metric.source == "nvidia-smi" || metric.name == "memory-limit" || metric.name == "exits" ||
        metric.name.starts_with("network") || metric.name.starts_with("node-pressure") ||
        metric.name.starts_with("node-disk") || metric.name.starts_with("node-network") ||
        metric.name == "node-swap-used" || metric.name == "collector-memory")
      continue;  // not in this tree
    ASSERT_TRUE(last.contains(std::string(metric.name))) << metric.name;
    if (metric.scope == "step" && metric.period_seconds == 1) {
      EXPECT_GE(counts_[std::string(metric.name)], 69) << metric.name;
    }
    if (metric.scope == "step" && metric.period_seconds == 10) {
      EXPECT_LE(counts_[std::string(metric.name)], 12) << metric.name;
    }
  }
  EXPECT_FALSE(last.contains("memory-limit")) << "there is none: absent, not 0";
  EXPECT_EQ(last.at("memory-need"), 40.0 * kMiB);
  EXPECT_EQ(last.at("memory-kernel"), 100);
  EXPECT_EQ(last.at("memory-swap"), 4096);
  EXPECT_DOUBLE_EQ(last.at("cpu-user"), 0.9);
  EXPECT_DOUBLE_EQ(last.at("cpu-throttled"), 0.005);
  EXPECT_DOUBLE_EQ(last.at("pressure-io"), 2);
  EXPECT_EQ(last.at("oom-kills"), 2) << "counted above the victim";
  EXPECT_EQ(last.at("threads"), 9);
  EXPECT_EQ(last.at("processes"), 1);
  EXPECT_EQ(last.at("io-read"), 111);
  EXPECT_EQ(last.at("io-write"), 4096) << "page cache that is dirty is not at the device yet";
  EXPECT_EQ(last.at("node-jobs"), 1);
  EXPECT_EQ(last.at("node-jobs-memory"), 48.0 * kMiB);
}

TEST_F(StepCollectorTest, TheNeedsGrowthIsMeasuredAfterAMinute) {
  SetStep(10 * kMiB, 0);
  Start();
  for (int i = 0; i < 120; ++i) {
    SetStep((10 + i) * kMiB, 0);
    Rounds(1);
  }
  ASSERT_NE(Step(), nullptr);
  ASSERT_TRUE(Step()->NeedSlope());
  EXPECT_NEAR(*Step()->NeedSlope(), 1.0 * kMiB, 0.01 * kMiB) << "bytes a second";
}

TEST_F(StepCollectorTest, BytesOfLivingProcessesAreAFloorThatSaysWhy) {
  SetStep(10 * kMiB, 0, /*has_io=*/false);
  AddProcess("4096");
  Start();
  Rounds(1);
  AddProcess("8192");
  Rounds(10);
  const StepIo io = collector_->IoOf(*Step());
  EXPECT_EQ(io.bytes.written, 8192);
  EXPECT_NE(io.reason.find("exit records are switched off"), std::string::npos) << io.reason;
}

TEST_F(StepCollectorTest, TheProcessTreeTravelsWithTheFacts) {
  SetStep(10 * kMiB, 0);
  AddProcess("4096");
  Start();
  Rounds(1);
  data::v1::ExecutionFacts facts;
  SetCgroupFacts(*Step(), collector_->IoOf(*Step()), "n1", collector_->KeyOf(Step()->unit, {}),
                 &facts);
  ASSERT_EQ(facts.execution().steps(0).processes_size(), 1);
  const auto& process = facts.execution().steps(0).processes(0);
  EXPECT_EQ(process.pid(), 41);
  EXPECT_EQ(process.command(), "work");
  EXPECT_EQ(process.threads(), 2);
  EXPECT_DOUBLE_EQ(process.cpu_seconds(), 1);
  EXPECT_FALSE(facts.execution().steps(0).network_receive_bytes().has_value());
  EXPECT_FALSE(facts.execution().steps(0).network_receive_bytes().reason().empty());
}

TEST_F(StepCollectorTest, AStepWhoseUserPartComesLaterIsReadThen) {
  Write("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.current", "1");
  Start();
  Rounds(1);
  EXPECT_EQ(Step(), nullptr);
  SetStep(10 * kMiB, 0);
  Rounds(1);
  ASSERT_NE(Step(), nullptr);
  EXPECT_EQ(Step()->last.usage, 10 * kMiB);
}

TEST_F(StepCollectorTest, StepsOfOneSecondThatTakeEachOthersPlaceAreSeen) {
  SetStep(10 * kMiB, 0);
  Start();
  Rounds(1);
  const std::string job = dir_.path() + "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
  stdfs::rename(job + "/step_0", job + "/step_1");  // as many directories as before
  Rounds(16);
  EXPECT_NE(collector_->tracker().Find("/system.slice/slurmstepd.scope/job_7/step_1"), nullptr);
}

}  // namespace
}  // namespace expanse::collect::host
