// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/core/spool.h"
#include "collect/daemon/adaptive_loop.h"
#include "collect/daemon/controller_daemon.h"
#include "collect/daemon/daemon_config.h"
#include "collect/daemon/health.h"
#include "collect/daemon/sampler_daemon.h"
#include "domain/layout.h"
#include "expanse/data/v1/data.pb.h"
#include "platform/metrics/metrics.h"
#include "platform/metrics/text_check.h"

namespace expanse::collect::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConfig[] =
    R"({"compute_id":"c1","organisation_id":"o1","credential":"exp_compute_x",
        "data_plane_url":"http://127.0.0.1:1","control_plane_url":"http://127.0.0.1:2",
        "shared_prefix":"/srv/expanse","slurm_conf":"/etc/slurm/slurm.conf","type":"slurm"})";

class ConfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0640) {
    const std::string path = dir_.path() + "/config.json";
    EXPECT_TRUE(fs_.WriteAtomic(path, text, mode).ok());
    return path;
  }
  platform::TempDir dir_;
  platform::Fs fs_;
};

TEST_F(ConfigTest, ReadsWhatTheInstallerWrites) {
  const auto config = LoadDaemonConfig(fs_, Write(kConfig));
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->compute_id, "c1");
  EXPECT_EQ(config->credential.Reveal(), "exp_compute_x");
  EXPECT_EQ(config->data_plane_url, "http://127.0.0.1:1");
  EXPECT_EQ(config->slurm_conf, "/etc/slurm/slurm.conf");
  EXPECT_EQ(config->state_dir, dir_.path() + "/state");
  EXPECT_EQ(config->hook_spool, domain::kHookSpool);
}

TEST_F(ConfigTest, AFileThatOthersMayReadIsRefused) {
  for (mode_t mode : {0644, 0660, 0641, 0777}) {
    const auto config = LoadDaemonConfig(fs_, Write(kConfig, mode));
    ASSERT_FALSE(config.ok()) << mode;
    EXPECT_EQ(config.error().code(), Code::kFailedPrecondition);
    EXPECT_THAT(config.error().message(), HasSubstr("broader than 0640"));
  }
  for (mode_t mode : {0640, 0600, 0400})
    EXPECT_TRUE(LoadDaemonConfig(fs_, Write(kConfig, mode)).ok());
}

TEST_F(ConfigTest, WhatIsMissingIsNamedAndTheCredentialIsNot) {
  EXPECT_THAT(LoadDaemonConfig(fs_, Write("{}")).error().message(), HasSubstr("compute_id"));
  EXPECT_FALSE(LoadDaemonConfig(fs_, Write("not json")).ok());
  EXPECT_FALSE(LoadDaemonConfig(fs_, dir_.path() + "/absent").ok());
  std::string text = kConfig;
  text.replace(text.find("/srv/expanse"), 12, "srv/expanse");
  const auto config = LoadDaemonConfig(fs_, Write(text));
  EXPECT_THAT(config.error().message(), HasSubstr("shared_prefix"));
  EXPECT_THAT(config.error().message(), Not(HasSubstr("exp_compute_x")));
}

TEST_F(ConfigTest, TheHookSpoolComesFromTheSharedSettings) {
  ASSERT_TRUE(fs_.MakeDirs(dir_.path() + "/etc").ok());
  EXPECT_EQ(*SamplerHookSpool(fs_, dir_.path()), domain::kHookSpool);
  const std::string path = dir_.path() + "/etc/sampler.json";
  ASSERT_TRUE(fs_.WriteAtomic(path, R"({"hook_spool":"/var/tmp/hooks"})", 0644).ok());
  EXPECT_EQ(*SamplerHookSpool(fs_, dir_.path()), "/var/tmp/hooks");
  ASSERT_TRUE(fs_.WriteAtomic(path, R"({"hook_spool":"relative"})", 0644).ok());
  EXPECT_FALSE(SamplerHookSpool(fs_, dir_.path()).ok());
}

class HealthTest : public ::testing::Test {
 protected:
  HealthcheckReport Check(bool json = false) {
    HealthcheckOptions options;
    options.directory = dir_.path();
    options.json = json;
    options.max_accepted_age = accepted_;
    return Healthcheck(options, fs_, clock_);
  }
  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(1'800'000'000'000)};
  HealthFiles files_{dir_.path(), fs_};
  std::optional<Millis> accepted_;
};

TEST_F(HealthTest, TheLoopMarkerDecides) {
  EXPECT_FALSE(Check().healthy);  // never ran
  ASSERT_TRUE(files_.TouchLoop(clock_).ok());
  clock_.Advance(Millis(19 * 60'000));
  EXPECT_TRUE(Check().healthy);
  EXPECT_THAT(Check().text, HasSubstr("19m ago"));
  clock_.Advance(Millis(2 * 60'000));
  EXPECT_FALSE(Check().healthy);
  EXPECT_THAT(Check().text, HasSubstr("not turned for 21m"));
}

TEST_F(HealthTest, TheAcceptedMarkerCountsWhenAskedFor) {
  ASSERT_TRUE(files_.TouchLoop(clock_).ok());
  accepted_ = Millis(15 * 60'000);
  EXPECT_FALSE(Check().healthy);
  ASSERT_TRUE(files_.TouchAccepted(clock_).ok());
  EXPECT_TRUE(Check().healthy);
}

TEST_F(HealthTest, EveryDegradedSourceIsNamedAndDoesNotKillTheDaemon) {
  ASSERT_TRUE(files_.TouchLoop(clock_).ok());
  std::vector<data::v1::CollectorHealth> table(3);
  table[0].set_part("squeue");
  table[0].set_status("ok");
  table[1].set_part("sacct");
  table[1].set_status("degraded");
  table[1].set_reason("sacct: time-out \x1b[31m\"quoted\"");
  table[2].set_part("spool");
  table[2].set_node("n2");
  table[2].set_status("degraded");
  ASSERT_TRUE(files_.WriteTable(table).ok());
  const auto report = Check();
  EXPECT_TRUE(report.healthy);
  EXPECT_THAT(report.text, HasSubstr("degraded: sacct"));
  EXPECT_THAT(report.text, HasSubstr("degraded: spool of n2"));
  EXPECT_THAT(report.text, Not(HasSubstr("squeue")));
  EXPECT_THAT(report.text, Not(HasSubstr("\x1b")));
  const std::string json = Check(true).text;
  EXPECT_THAT(json, HasSubstr("\"healthy\":true"));
  EXPECT_THAT(json, HasSubstr("\\u001b[31m\\\"quoted\\\""));
  EXPECT_THAT(json, HasSubstr("\"part\":\"squeue\""));
}

TEST_F(HealthTest, ATableThatCannotBeReadIsNotOneWithoutProblems) {
  ASSERT_TRUE(files_.TouchLoop(clock_).ok());
  EXPECT_EQ(Check().degraded, 1);
  ASSERT_TRUE(fs_.WriteAtomic(dir_.path() + "/health.json", "{", 0640).ok());
  const auto report = Check(true);
  EXPECT_TRUE(report.healthy);
  EXPECT_THAT(report.text, HasSubstr("\"reason\":\"health.json is damaged\""));
  EXPECT_THAT(report.text, HasSubstr("\"degraded\":1}"));
}

TEST_F(HealthTest, ASourceThatLosesRecordsIsDegradedForAnHour) {
  DropWatch watch;
  std::vector<data::v1::CollectorHealth> table(1);
  const auto judge = [&](uint64_t dropped) {
    table[0].set_part("spool");
    table[0].set_status("ok");
    table[0].set_dropped_records(dropped);
    watch.Judge(clock_, &table);
    return table[0].status();
  };
  EXPECT_EQ(judge(7), "ok") << "lost before this daemon looked";
  EXPECT_EQ(judge(7), "ok");
  EXPECT_EQ(judge(9), "degraded");
  EXPECT_THAT(table[0].reason(), HasSubstr("9 records were dropped in all"));
  clock_.Advance(Millis(3'500'000));
  EXPECT_EQ(judge(9), "degraded");
  clock_.Advance(Millis(200'000));
  EXPECT_EQ(judge(9), "ok");
}

TEST(HookProblem, NamesTheHooksThatSlurmDoesNotCall) {
  constexpr char kDirectory[] = "/var/lib/expanse/hooks";
  const std::string of_22_05 =
      "Epilog                  = /var/lib/expanse/hooks/epilog\n"
      "Prolog                  = /var/lib/expanse/hooks/prolog\n"
      "PrologSlurmctld         = (null)\n"
      "TaskEpilog              = /var/lib/expanse/hooks/task_epilog\n"
      "TaskProlog              = /var/lib/expanse/hooks/task_prolog\n";
  EXPECT_EQ(HookProblem(of_22_05, kDirectory), "");
  std::string several = of_22_05;
  several.replace(several.find("Prolog  "), 8, "Prolog[0]");
  EXPECT_EQ(HookProblem(several, kDirectory), "");
  std::string none = of_22_05;
  for (size_t at = 0; (at = none.find("/var/lib/expanse/hooks/")) != std::string::npos;)
    none.replace(at, none.find('\n', at) - at, "(null)");
  EXPECT_THAT(HookProblem(none, kDirectory), HasSubstr("no hook is wired"));
  std::string some = of_22_05;
  some.replace(some.find("/var/lib/expanse/hooks/task_prolog"), 34, "/site/task_prolog");
  EXPECT_EQ(HookProblem(some, kDirectory), "TaskProlog of slurm.conf do not call our hook");
  // PrologSlurmctld is another key than Prolog.
  EXPECT_THAT(HookProblem("PrologSlurmctld = /var/lib/expanse/hooks/prolog\n", kDirectory),
              HasSubstr("no hook is wired"));
}

TEST(ClockProblem, TwoSecondsAreTolerated) {
  EXPECT_EQ(ClockProblem(Millis(2'000)), "");
  EXPECT_EQ(ClockProblem(Millis(-1'999)), "");
  EXPECT_THAT(ClockProblem(Millis(90'000)), HasSubstr("1m30s behind"));
  EXPECT_THAT(ClockProblem(Millis(-5'000)), HasSubstr("5s ahead of"));
}

TEST(DiskProblem, ADirectoryThatIsNotThereIsNamed) {
  const platform::TempDir dir;
  EXPECT_EQ(DiskProblem(dir.path()), "");
  EXPECT_THAT(DiskProblem(dir.path() + "/absent"), HasSubstr("absent is not there"));
}

/// Waits for what other threads do, at most ten seconds.
class Awaiter {
 public:
  void Changed() { changed_.notify_all(); }
  template <typename Predicate>
  bool Await(Predicate done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), done);
  }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class FakeDataPlane final : public rpc::Channel {
 public:
  explicit FakeDataPlane(Awaiter& awaiter) : awaiter_(awaiter) {}
  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline) override {
    const std::lock_guard lock(awaiter_.mutex());
    EXPECT_EQ(bearer, "exp_compute_x");
    awaiter_.Changed();
    if (path.ends_with("/Heartbeat")) {
      last_heartbeat.CopyFrom(request);
      ++heartbeats;
      data::v1::HeartbeatResponse beat;
      if (clock_ms) beat.set_server_clock_ms(*clock_ms);
      response->CopyFrom(beat);
      return {};
    }
    data::v1::PushRequest push;
    push.CopyFrom(request);
    data::v1::PushResponse answer;
    uint64_t sequence = push.first_sequence();
    for (const auto& record : push.records())
      if (stored.insert({push.source_id(), sequence++}).second) records.push_back(record);
    answer.set_acknowledged_through(sequence - 1);
    response->CopyFrom(answer);
    return {};
  }
  Awaiter& awaiter_;
  std::optional<int64_t> clock_ms;
  int heartbeats = 0;
  data::v1::HeartbeatRequest last_heartbeat;
  std::set<std::pair<std::string, uint64_t>> stored;
  std::vector<data::v1::Record> records;
};

/// No SLURM here: every tool is missing.
class NoTools final : public platform::ProcessRunner {
 public:
  Result<platform::ProcessResult> Run(const platform::ProcessSpec& spec) override {
    return Error(Code::kNotFound, spec.argv[0] + ": no such program");
  }
};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    options_.config.compute_id = "c1";
    options_.config.credential = Secret("exp_compute_x");
    options_.config.shared_prefix = dir_.path() + "/shared";
    options_.config.state_dir = dir_.path() + "/state";
    options_.config.hook_spool = dir_.path() + "/hooks";
    options_.version = "0.1.0";
  }
  Result<std::unique_ptr<ControllerDaemon>> Start() {
    return ControllerDaemon::Start(options_, {clock_, fs_, runner_, random_, plane_});
  }
  void WriteNodeSpool(const std::string& node, int records) {
    SpoolOptions spool;
    spool.directory = options_.config.shared_prefix + "/spool/" + node;
    auto writer = SpoolWriter::Open(spool, clock_, random_);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < records; ++i) {
      data::v1::Record record;
      record.set_node(node);
      record.set_observed_time_ms(ToUnixMillis(clock_.Now()));
      record.mutable_compute()->add_health()->set_part("sampler");
      ASSERT_TRUE((*writer)->Append(record).ok());
    }
    ASSERT_TRUE((*writer)->Flush().ok());
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::SystemClock clock_;
  platform::SystemRandom random_;
  NoTools runner_;
  Awaiter awaiter_;
  FakeDataPlane plane_{awaiter_};
  ControllerOptions options_;
};

TEST_F(ControllerTest, BeatsAndNamesWhatIsMissing) {
  options_.heartbeat = Millis(20);
  auto running = Start();
  ASSERT_TRUE(running.ok()) << running.error().message();
  ASSERT_TRUE(awaiter_.Await([&] {
    for (const auto& line : plane_.last_heartbeat.health())
      if (line.part() == "squeue" && line.status() == "degraded") return true;
    return false;
  }));
  EXPECT_EQ(plane_.last_heartbeat.daemon_version(), "0.1.0");
  running->reset();
  EXPECT_TRUE(fs_.Exists(options_.config.state_dir + "/loop"));
  EXPECT_TRUE(fs_.Exists(options_.config.state_dir + "/accepted"));
  HealthcheckOptions check;
  check.directory = options_.config.state_dir;
  EXPECT_THAT(Healthcheck(check, fs_, clock_).text, HasSubstr("degraded: squeue"));
}

TEST_F(ControllerTest, NamesItsClockAndHooksAndHasThemAsMetrics) {
  plane_.clock_ms = ToUnixMillis(clock_.Now()) + 3'600'000;
  auto running = Start();
  ASSERT_TRUE(running.ok()) << running.error().message();
  platform::MetricsRegistry registry;
  (*running)->AddMetrics(registry);
  const auto is_told = [&](const std::string& part, const std::string& reason) {
    for (const auto& line : (*running)->health())
      if (line.part() == part && line.status() == "degraded" &&
          line.reason().find(reason) != std::string::npos)
        return true;
    return false;
  };
  const Deadline deadline = Deadline::In(Millis(10'000));
  while ((!is_told("clock", "behind the data plane's") ||
          !is_told("hooks", "whether they are wired is not known")) &&
         !deadline.Expired())
    usleep(5'000);
  EXPECT_TRUE(is_told("clock", "behind the data plane's"));
  EXPECT_TRUE(is_told("hooks", "no such program"));
  const std::string text = registry.Text();
  EXPECT_THAT(platform::MetricsTextCheck::Problems(text), testing::IsEmpty());
  EXPECT_THAT(text, HasSubstr("expanse_collector_source_degraded{node=\"\",part=\"clock\"} 1"));
  EXPECT_THAT(text, HasSubstr("expanse_queue_bytes"));
  EXPECT_THAT(text, testing::ContainsRegex("expanse_clock_offset_seconds 3[56]"));
}

TEST_F(ControllerTest, DeliversNodeSpoolsOnceOverRestarts) {
  WriteNodeSpool("n1", 5);
  WriteNodeSpool("n2", 3);
  for (int start = 0; start < 3; ++start) {
    auto running = Start();
    ASSERT_TRUE(running.ok());
    ASSERT_TRUE(awaiter_.Await([&] { return plane_.records.size() >= 8; }));
  }
  EXPECT_EQ(plane_.records.size(), 8u);
}

TEST_F(ControllerTest, ASecondControllerOnTheSameStateIsRefused) {
  auto first = Start();
  ASSERT_TRUE(first.ok());
  const auto second = Start();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
}

TEST_F(ControllerTest, KilledAnywhereItDeliversEachRecordOnce) {
  // The plane lives in this process, so each killed child only gets as far as its own delivery;
  // what it wrote to disk is what the next start finds.
  WriteNodeSpool("n1", 50);
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto running = Start();
      usleep(static_cast<useconds_t>(1000 * (1 + i * 7)));
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  auto running = Start();
  ASSERT_TRUE(running.ok()) << running.error().message();
  // A child that was killed after its plane's acknowledgement has delivered; the rest comes here,
  // without a hole and without a repetition.
  const Deadline deadline = Deadline::In(Millis(10'000));
  const auto acknowledged = [&] {
    auto reader = SpoolReader::Open(options_.config.shared_prefix + "/spool/n1");
    return reader.ok() ? (*reader)->acknowledged() : 0;
  };
  while (acknowledged() < 50 && !deadline.Expired()) usleep(5'000);
  EXPECT_EQ(acknowledged(), 50u);
  running->reset();
  std::set<uint64_t> sequences;
  for (const auto& [source, sequence] : plane_.stored) sequences.insert(sequence);
  if (!sequences.empty()) {
    EXPECT_EQ(*sequences.rbegin(), 50u);
    EXPECT_EQ(sequences.size(), 50u - *sequences.begin() + 1);
  }
  EXPECT_EQ(plane_.records.size(), sequences.size());
}

TEST(SamplerDaemonTest, WritesItsPartOfTheSharedSpoolAndItsMarker) {
  platform::TempDir dir;
  const platform::Fs fs;
  const platform::SystemClock clock;
  platform::SystemRandom random;
  SamplerDaemonOptions options{"n1", dir.path() + "/shared", dir.path() + "/hooks"};
  {
    auto running = SamplerDaemon::Start(options, clock, fs, random);
    ASSERT_TRUE(running.ok()) << running.error().message();
    const auto second = SamplerDaemon::Start(options, clock, fs, random);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
    platform::MetricsRegistry registry;
    (*running)->AddMetrics(registry);
    const Deadline deadline = Deadline::In(Millis(10'000));
    while (registry.Text().find("expanse_sampler_ticks_total 0\n") != std::string::npos &&
           !deadline.Expired())
      usleep(5'000);
    const std::string text = registry.Text();
    EXPECT_THAT(platform::MetricsTextCheck::Problems(text), testing::IsEmpty());
    EXPECT_THAT(text, HasSubstr("expanse_spool_bytes"));
    EXPECT_THAT(text, HasSubstr("expanse_collector_source_degraded{node=\"n1\",part=\"disk\"} 0"));
    while (!fs.Exists(dir.path() + "/hooks/n1/loop") && !deadline.Expired()) usleep(5'000);
  }
  EXPECT_TRUE(fs.Exists(dir.path() + "/hooks/n1/loop"));
  EXPECT_TRUE(fs.Exists(dir.path() + "/hooks/n1/events"));
  auto reader = SpoolReader::Open(dir.path() + "/shared/spool/n1");
  ASSERT_TRUE(reader.ok());
  const auto batch = (*reader)->Next(1000, 1 << 20);
  ASSERT_TRUE(batch.ok());
  EXPECT_FALSE(batch->empty());
}

TEST(AdaptiveLoopTest, RunsAtOnceAndWhenWokenAndStopsWhileItWaits) {
  Awaiter awaiter;
  int runs = 0;
  AdaptiveLoop loop;
  loop.Wake();  // before it runs: no harm
  loop.Start([&] {
    const std::lock_guard lock(awaiter.mutex());
    ++runs;
    awaiter.Changed();
    return Pause{Millis(3'600'000)};
  });
  EXPECT_TRUE(awaiter.Await([&] { return runs == 1; }));
  loop.Wake();
  EXPECT_TRUE(awaiter.Await([&] { return runs == 2; }));
  loop.Stop();
  loop.Stop();
}

TEST(AdaptiveLoopTest, AWakeDoesNotShortenTheLeastPauseAndIsNotForgotten) {
  Awaiter awaiter;
  std::vector<MonoTime> runs;
  const Millis least(200);
  AdaptiveLoop loop;
  loop.Start([&] {
    const std::lock_guard lock(awaiter.mutex());
    runs.push_back(std::chrono::steady_clock::now());
    awaiter.Changed();
    return Pause{Millis(3'600'000), least};
  });
  EXPECT_TRUE(awaiter.Await([&] { return runs.size() == 1; }));
  loop.Wake();
  EXPECT_TRUE(awaiter.Await([&] { return runs.size() == 2; }));
  EXPECT_GE(runs[1] - runs[0], least);
  loop.Stop();  // does not wait for a pause
}

TEST(AdaptiveLoopTest, APauseRespectsTheRoundsCostAndAFailure) {
  PollLimits limits;
  limits.usual = Millis(10'000);
  limits.fastest = Millis(2'000);
  limits.slowest = Millis(60'000);
  limits.rest_per_work = 5;
  const auto quick = PauseAfterRound(true, true, Millis(10), limits);
  EXPECT_EQ(quick.wish, Millis(2'000));
  EXPECT_EQ(quick.least, Millis(2'000));
  const auto idle = PauseAfterRound(true, false, Millis(10), limits);
  EXPECT_EQ(idle.wish, Millis(10'000));
  EXPECT_EQ(idle.least, Millis(2'000));
  const auto slow = PauseAfterRound(true, true, Millis(4'000), limits);
  EXPECT_EQ(slow.wish, Millis(20'000));
  EXPECT_EQ(slow.least, Millis(20'000));
  const auto failed = PauseAfterRound(false, true, Millis(10), limits);
  EXPECT_EQ(failed.wish, Millis(10'000));
  EXPECT_EQ(failed.least, Millis(10'000));
  EXPECT_EQ(PauseAfterRound(false, false, Millis(30'000), limits).least, Millis(60'000));
}

}  // namespace
}  // namespace expanse::collect::daemon
