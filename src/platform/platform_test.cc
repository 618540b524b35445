// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ids.h"
#include "platform/clock/clock.h"
#include "platform/config/config.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/file_lock.h"
#include "platform/fs/fs.h"
#include "platform/process/process.h"
#include "platform/random/random.h"
#include "platform/service/service.h"

namespace expanse::platform {
namespace {

TEST(Crypto, KnownAnswers) {
  // FIPS 180-2 "abc"; RFC 4231 case 2; RFC 3720 B.4 (32 zero bytes).
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256Stream stream;
  stream.Update("a");
  stream.Update("bc");
  EXPECT_EQ(stream.FinishHex(), Sha256Hex("abc"));
  EXPECT_EQ(static_cast<uint8_t>(HmacSha256("Jefe", "what do ya want for nothing?")[0]), 0x5b);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c("56789", Crc32c("1234")), 0xE3069283U);
  EXPECT_TRUE(ConstantTimeEquals("x", "x"));
  EXPECT_FALSE(ConstantTimeEquals("x", "xy"));
}

TEST(Random, IdsAreUniqueAndTokensCarryTheirPrefix) {
  SystemRandom random;
  const FakeClock clock(FromUnixMillis(1'700'000'000'000));
  const std::string a = NewUuid(clock, random);
  EXPECT_TRUE(IsUuid(a));
  EXPECT_NE(a, NewUuid(clock, random));
  const std::string token = NewToken("exp_user_", random);
  EXPECT_EQ(token.size(), 9U + 43U);
  EXPECT_TRUE(token.starts_with("exp_user_"));
}

TEST(Fs, AtomicWriteKeepsModeAndLeavesNoTemporary) {
  const TempDir dir;
  const Fs fs(dir.path());
  ASSERT_TRUE(fs.WriteAtomic("/f", "one", 0640).ok());
  ASSERT_TRUE(fs.Chmod("/f", 0755).ok());
  ASSERT_TRUE(fs.WriteAtomic("/f", "two", 0600, true).ok());
  EXPECT_EQ(fs.Read("/f").value(), "two");
  EXPECT_EQ(fs.Stat("/f")->mode & 07777U, 0755U);
  EXPECT_THAT(fs.List("/").value(), testing::ElementsAre("f"));
}

TEST(Fs, ReadingIsBoundedAndNeverBlocksOnAFifo) {
  const TempDir dir;
  const Fs fs(dir.path());
  ASSERT_TRUE(fs.WriteAtomic("/big", std::string(1000, 'x'), 0644).ok());
  EXPECT_EQ(fs.Read("/big", 999).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(fs.ReadTail("/big", 10)->bytes, std::string(10, 'x'));
  EXPECT_EQ(fs.ReadTail("/big", 10)->offset, 990);
  ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(fs.Read("/fifo").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(fs.Read("/").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(fs.Read("/none").error().code(), Code::kNotFound);
}

TEST(Fs, SymlinkLoopIsAnErrorNotAHang) {
  const TempDir dir;
  const Fs fs(dir.path());
  ASSERT_EQ(::symlink("b", (dir.path() + "/a").c_str()), 0);
  ASSERT_EQ(::symlink("a", (dir.path() + "/b").c_str()), 0);
  EXPECT_EQ(fs.Read("/a").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(fs.RealPath("/a").error().code(), Code::kFailedPrecondition);
}

TEST(Paths, JoinBaseDir) {
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(BaseName("/a/b/"), "b");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("a"), ".");
  EXPECT_EQ(NormalizePath("/a/./b/../c"), "/a/c");
}

ProcessSpec Shell(const std::string& script, Millis timeout = Millis(5000)) {
  ProcessSpec spec;
  spec.argv = {"sh", "-c", script};
  spec.timeout = timeout;
  return spec;
}

TEST(Process, OutputExitCodeAndStdin) {
  SystemProcessRunner runner;
  ProcessSpec spec = Shell("cat; echo err >&2; exit 3");
  spec.stdin_bytes = std::string(200'000, 'a');
  const auto r = runner.Run(spec);
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(r->exit_code, 3);
  EXPECT_EQ(r->out.size(), 200'000U);
  EXPECT_EQ(r->err, "err\n");
  EXPECT_EQ(runner.Run(Shell("kill -9 $$"))->exit_code, 137);
}

TEST(Process, TheChildSeesOnlyTheEnvironmentItIsGiven) {
  ::setenv("EXPANSE_TEST_LEAK", "secret", 1);
  SystemProcessRunner runner;
  ProcessSpec spec = Shell("env");
  spec.env = {{"PATH", "/usr/bin:/bin"}};
  const auto r = runner.Run(spec);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->out.find("EXPANSE_TEST_LEAK"), std::string::npos);
}

TEST(Process, TimeoutEndsTheWholeGroupAndOutputIsBounded) {
  SystemProcessRunner runner;
  const auto late = runner.Run(Shell("sleep 30 & sleep 30", Millis(200)));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  ProcessSpec loud = Shell("yes");
  loud.max_output = 100'000;
  EXPECT_EQ(runner.Run(loud).error().code(), Code::kResourceExhausted);
  ProcessSpec missing;
  missing.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(runner.Run(missing).error().code(), Code::kNotFound);
}

TEST(RecordedProcess, RefusesWhatWasNotRecorded) {
  RecordedProcessRunner runner;
  runner.Add({"sacct"}, {0, "out", "", Millis(1)});
  ProcessSpec spec;
  spec.argv = {"sacct"};
  EXPECT_EQ(runner.Run(spec)->out, "out");
  spec.argv = {"sacct", "-X"};
  EXPECT_EQ(runner.Run(spec).error().code(), Code::kNotFound);
}

constexpr Setting kTable[] = {
    {"listen", "EXPANSE_T_LISTEN", SettingKind::kString, "127.0.0.1:1", "address"},
    {"interval", "EXPANSE_T_INTERVAL", SettingKind::kDuration, "30s", "time"},
    {"fast", "", SettingKind::kBool, "false", "switch"},
    {"token", "EXPANSE_T_TOKEN", SettingKind::kString, "", "secret", true},
};

TEST(Config, FlagBeatsEnvironmentBeatsFile) {
  const TempDir dir;
  const std::string file = dir.path() + "/c";
  ASSERT_TRUE(Fs().WriteAtomic(file, "# c\nlisten = f\ninterval = 1m\n", 0600).ok());
  const std::vector<std::string> args{"--config", file, "--listen=flag", "--fast"};
  const auto c =
      Config::Load(kTable, args, {{"EXPANSE_T_LISTEN", "env"}, {"EXPANSE_T_TOKEN", "s3cr3t"}});
  ASSERT_TRUE(c.ok()) << c.error().message();
  EXPECT_EQ(c->GetString("listen"), "flag");
  EXPECT_EQ(c->GetMillis("interval"), 60'000);
  EXPECT_TRUE(c->GetBool("fast"));
  EXPECT_EQ(c->Print().find("s3cr3t"), std::string::npos);
  EXPECT_THAT(c->Print(), testing::HasSubstr("token = (set)  # environment EXPANSE_T_TOKEN"));
}

TEST(Config, UnknownKeysNameTheNearestAndSecretsAreNoFlags) {
  const auto load = [](std::vector<std::string> args) { return Config::Load(kTable, args, {}); };
  EXPECT_THAT(load({"--listne", "x"}).error().message(),
              testing::HasSubstr("did you mean 'listen'?"));
  EXPECT_THAT(load({"--token", "x"}).error().message(), testing::HasSubstr("secret"));
  EXPECT_FALSE(load({"--interval", "soon"}).ok());
  EXPECT_FALSE(load({"--listen"}).ok());
}

TEST(Config, WhatIsWrongInAFileIsNamedByFileAndLine) {
  const TempDir dir;
  const std::string file = dir.path() + "/c";
  const auto load = [&](const std::string& text) {
    EXPECT_TRUE(Fs().WriteAtomic(file, text, 0600).ok());
    return Config::Load(kTable, std::vector<std::string>{"--settings", file}, {}, "settings");
  };
  const auto message = [&](const std::string& text) {
    const auto loaded = load(text);
    return loaded.ok() ? "taken" : loaded.error().message();
  };
  EXPECT_EQ(message("\n# c\nlisten = a\n"), "taken");
  EXPECT_EQ(message("listen = a\n\nintervall = 1s\n"),
            file + ":3: unknown setting 'intervall'; did you mean 'interval'?");
  EXPECT_EQ(message("\ninterval = soon\n"),
            file + ":2: interval = 'soon' is not a duration such as 30s or 5m");
  EXPECT_EQ(message("listen\n"), file + ":1: expected 'key = value'");
  EXPECT_EQ(message("listen = a\nlisten = b\n"), file + ":2: listen is set in line 1 already");
  EXPECT_THAT(message("\x1b[31m = a\n"), testing::Not(testing::HasSubstr("\x1b")));
  EXPECT_FALSE(
      Config::Load(kTable, std::vector<std::string>{"--settings", file + "no"}, {}, "settings")
          .ok());
  EXPECT_FALSE(
      Config::Load(kTable, std::vector<std::string>{"--config", file}, {}, "settings").ok())
      << "means something else to this program";
}

TEST(Config, ShowsWhereEachValueCameFromAndNoPasswords) {
  const TempDir dir;
  const std::string file = dir.path() + "/c";
  ASSERT_TRUE(Fs().WriteAtomic(file, "\ninterval = 1m\ntoken = s3cr3t\n", 0600).ok());
  const auto c = Config::Load(kTable, std::vector<std::string>{"--config", file, "--fast"},
                              {{"EXPANSE_T_LISTEN", "http://me:pass@h:1/x"}});
  ASSERT_TRUE(c.ok()) << c.error().message();
  EXPECT_EQ(c->origin("interval"), "file " + file + ":2");
  EXPECT_EQ(c->origin("listen"), "environment EXPANSE_T_LISTEN");
  EXPECT_EQ(c->origin("fast"), "flag");
  const std::string printed = c->Print();
  EXPECT_THAT(printed, testing::HasSubstr("interval = 1m  # file " + file + ":2\n"));
  EXPECT_THAT(printed, testing::HasSubstr("listen = http://(set)@h:1/x  # environment"));
  EXPECT_THAT(printed, testing::HasSubstr("token = (set)  # file"));
  for (const char* hidden : {"s3cr3t", "pass"})
    EXPECT_THAT(printed, testing::Not(testing::HasSubstr(hidden)));
}

/// In a process of its own: signals and masks belong to a whole process.
void InChild(const std::function<int()>& body, int expected) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), expected);
}

TEST(StopSignal, AHangUpReloadsAndATermEnds) {
  InChild(
      [] {
        StopSignal stop;
        int reloads = 0;
        int periods = 0;
        ::kill(::getpid(), SIGHUP);
        const int number = stop.Wait([&] { ++reloads; }, Millis(1),
                                     [&] {
                                       if (++periods == 2) ::kill(::getpid(), SIGTERM);
                                     });
        return number == SIGTERM && reloads == 1 && periods == 2 ? 7 : 1;
      },
      7);
}

TEST(StopDeadline, EndsAProcessThatHangsAndLeavesTheOthers) {
  InChild(
      [] {
        const StopDeadline deadline(Millis(20));
        ::pause();
        return 0;
      },
      1);
  InChild(
      [] {
        { const StopDeadline deadline(Millis(60'000)); }
        return 0;
      },
      0);
}

TEST(PeriodicTask, RunsAtOnceAndOnWakeAndStopsCleanly) {
  std::atomic<int> runs{0};
  {
    PeriodicTask task("t", Millis(60'000), [&] { ++runs; });
    while (runs < 1) std::this_thread::yield();
    task.Wake();
    while (runs < 2) std::this_thread::yield();
  }
  EXPECT_EQ(runs, 2);
}

TEST(FileLock, IsHeldByOneAtATimeAndEndsWithItsHolder) {
  const TempDir dir;
  const std::string path = dir.path() + "/lock";
  auto first = FileLock::Try(path);
  ASSERT_TRUE(first.ok()) << first.error().message();
  const auto second = FileLock::Try(path);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
  first = Error(Code::kUnknown, "released");
  EXPECT_TRUE(FileLock::Wait(path).ok());
  EXPECT_FALSE(FileLock::Try(dir.path() + "/no/such/folder").ok());
}

}  // namespace
}  // namespace expanse::platform
