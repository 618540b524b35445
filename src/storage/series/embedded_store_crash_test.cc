// SPDX-License-Identifier: Apache-2.0
// The embedded store when the process dies, files are cut or damaged and disks are full: what was
// acknowledged is there, once; what is lost is named.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/series/series_test_util.h"

namespace expanse::storage {
namespace {

namespace filesystem = std::filesystem;

void Copy(const std::string& from, const std::string& to) {
  filesystem::remove_all(to);
  // Files can vanish meanwhile (a merge, a sealed log): as a snapshot of the disk would show, the
  // file that takes their place is there before they go, so another look finds it.
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::error_code error;
    filesystem::remove_all(to);
    filesystem::create_directories(to);
    // Logs first: what is sealed meanwhile is in both, as it is never in neither on a disk.
    if (filesystem::exists(from + "/wal"))
      filesystem::copy(from + "/wal", to + "/wal", filesystem::copy_options::recursive, error);
    if (!error)
      filesystem::copy(
          from, to, filesystem::copy_options::recursive | filesystem::copy_options::skip_existing,
          error);
    if (!error) return;
  }
  FAIL() << "cannot copy " << from;
}

std::vector<std::string> Files(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : filesystem::directory_iterator(directory)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

EmbeddedStoreOptions Busy(const std::string& directory) {
  auto options = At(directory);
  options.head_samples = 40;
  options.merge_files = 2;
  return options;
}

TEST(EmbeddedStoreCrash, HasEveryAcknowledgedBatchAtEveryLengthOfTheLog) {
  const platform::TempDir directory;
  const std::string live = directory.path() + "/live";
  std::vector<int64_t> ends;  // log length when batch i was acknowledged
  {
    const auto store = MustOpen(At(live));
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(
          AppendOne(*store, Key(i % 2, "cpu"), {i * 10, i * 10 + 1}, {i + 0.5, i + 0.25}).ok());
      ends.push_back(store->Stats().wal_bytes);
    }
  }
  const auto logs = Files(live + "/wal");
  ASSERT_EQ(logs.size(), 1U);
  const std::string log = platform::Fs().Read(logs[0]).value();
  ASSERT_EQ(static_cast<int64_t>(log.size()), ends.back());
  const std::string copy = directory.path() + "/copy";
  for (size_t size = 0; size <= log.size(); ++size) {
    Copy(live, copy);
    filesystem::resize_file(copy + "/wal/" + platform::BaseName(logs[0]), size);
    const auto store = MustOpen(At(copy));
    size_t samples = 0;
    for (const auto& [key, series] : ReadAll(*store, kOrg)) {
      samples += series.size();
      for (const auto& [t, v] : series)
        ASSERT_EQ(v, static_cast<double>(t / 10) + (t % 10 == 0 ? 0.5 : 0.25));
    }
    size_t acknowledged = 0;
    for (const int64_t end : ends) acknowledged += end <= static_cast<int64_t>(size) ? 2U : 0U;
    // A batch is there wholly or not at all.
    ASSERT_EQ(samples, acknowledged) << size;
  }
}

TEST(EmbeddedStoreCrash, LosesAtMostOneBatchOfTheLogToAFlippedBitAndCountsIt) {
  const platform::TempDir directory;
  const std::string live = directory.path() + "/live";
  {
    const auto store = MustOpen(At(live));
    for (int i = 0; i < 6; ++i)
      ASSERT_TRUE(AppendOne(*store, Key(i % 2, "cpu"), {i * 10, i * 10 + 1}, {1, 2}).ok());
  }
  const auto logs = Files(live + "/wal");
  const std::string log = platform::Fs().Read(logs[0]).value();
  const std::string copy = directory.path() + "/copy";
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    Copy(live, copy);
    std::string damaged = log;
    const size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    std::ofstream(copy + "/wal/" + platform::BaseName(logs[0]), std::ios::binary) << damaged;
    const auto store = MustOpen(At(copy));
    size_t samples = 0;
    for (const auto& [key, series] : ReadAll(*store, kOrg)) samples += series.size();
    ASSERT_GE(samples, 10U) << at;
    // The last frame's damage looks like a write that was cut off.
    if (samples < 12 && at < log.size() * 5 / 6) {
      ASSERT_GT(store->Stats().damaged_parts, 0) << at;
    }
  }
}

TEST(EmbeddedStoreCrash, HasEverythingInACopyOfTheDirectoryAtAnyMoment) {
  const platform::TempDir directory;
  const std::string live = directory.path() + "/live";
  const auto store = MustOpen(Busy(live));
  const std::string copy = directory.path() + "/copy";
  std::mt19937_64 random(2);
  int64_t next = 0;
  for (int round = 0; round < 60; ++round) {
    const size_t batches = 1 + random() % 30;
    for (size_t i = 0; i < batches; ++i, ++next)
      ASSERT_TRUE(AppendOne(*store, Key(static_cast<int>(next % 5), "cpu"), {next, next + 100'000},
                            {static_cast<double>(next) * 0.5, 1})
                      .ok());
    Copy(live, copy);
    const auto restored = MustOpen(Busy(copy));
    const Content content = ReadAll(*restored, kOrg);
    size_t samples = 0;
    for (const auto& [key, series] : content) samples += series.size();
    ASSERT_EQ(samples, static_cast<size_t>(next) * 2) << round;
  }
  EXPECT_EQ(store->Stats().last_background_error, "");
}

// The child appends and says so on a pipe; it is killed in the middle.
TEST(EmbeddedStoreCrash, HasWhatWasAcknowledgedBeforeKillDashNine) {
  const platform::TempDir directory;
  const std::string path = directory.path() + "/series";
  std::mt19937_64 random(4);
  int64_t acknowledged = -1;
  int64_t attempted = 0;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = MustOpen(Busy(path));
      for (int64_t n = attempted; store != nullptr; ++n) {
        if (!AppendOne(*store, Key(static_cast<int>(n % 3), "cpu"), {n},
                       {static_cast<double>(n) * 0.25})
                 .ok())
          _exit(1);
        if (write(ends[1], &n, sizeof n) != sizeof n) _exit(2);
      }
      _exit(3);
    }
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 100));
    kill(child, SIGKILL);
    int64_t n = 0;
    while (read(ends[0], &n, sizeof n) == sizeof n) acknowledged = n;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    attempted = acknowledged + 1;
    const auto store = MustOpen(Busy(path));
    std::map<int64_t, double> all;
    for (const auto& [key, series] : ReadAll(*store, kOrg))
      all.insert(series.begin(), series.end());
    for (int64_t i = 0; i <= acknowledged; ++i) {
      ASSERT_TRUE(all.contains(i))
          << "round " << round << ", batch " << i << " of " << acknowledged;
      ASSERT_EQ(all[i], static_cast<double>(i) * 0.25);
    }
    // At most the one batch that was under way is there without an answer.
    ASSERT_LE(all.size(), static_cast<size_t>(acknowledged) + 2);
  }
  EXPECT_GT(acknowledged, 50);
}

TEST(EmbeddedStoreCrash, RefusesADirectoryThatIsOpenElsewhere) {
  const platform::TempDir directory;
  const auto store = MustOpen(At(directory.path()));
  const auto second = OpenEmbeddedStore(At(directory.path()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
}

TEST(EmbeddedStoreCrash, AnswersTheRestWhenASealedFileIsUnreadable) {
  const platform::TempDir directory;
  for (int i = 0; i < 3; ++i) {
    const auto store = MustOpen(At(directory.path()));
    ASSERT_TRUE(AppendOne(*store, Key(1, "cpu"), {i * 10}, {1.0 * i}).ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  const auto sealed = Files(directory.path() + "/sealed");
  ASSERT_EQ(sealed.size(), 3U);
  std::ofstream(sealed[1], std::ios::binary) << "rubbish";
  auto options = At(directory.path());
  options.merge_files = 2;  // must not merge across the hole
  {
    const auto store = MustOpen(options);
    std::vector<std::string> damage;
    const Content content = ReadAll(*store, kOrg, &damage);
    EXPECT_EQ(content.at(Key(1, "cpu")), (std::map<int64_t, double>{{0, 0}, {20, 2}}));
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_NE(damage[0].find(sealed[1]), std::string::npos);
    EXPECT_EQ(store->Stats().damaged_parts, 1);
    ASSERT_TRUE(store->Flush().ok());
  }
  EXPECT_TRUE(platform::Fs().Exists(sealed[1]));  // kept for whoever can repair it
}

TEST(EmbeddedStoreCrash, GoesOnAfterAFullDisk) {
  const platform::TempDir directory;
  const auto store = MustOpen(At(directory.path()));
  ASSERT_TRUE(AppendOne(*store, Key(1, "cpu"), {1}, {1}).ok());
  std::vector<int64_t> times;
  for (int i = 0; i < 10'000; ++i) times.push_back(1000 + i * 7 % 10'000);
  const std::vector<double> values(times.size(), 2);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int i = 0; i < 5; ++i) {
    const auto status = AppendOne(*store, Key(2, "cpu"), times, values);
    EXPECT_EQ(status.error().code(), Code::kResourceExhausted) << status.error().message();
  }
  EXPECT_TRUE(AppendOne(*store, Key(1, "cpu"), {2}, {2}).ok());  // still fits
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(AppendOne(*store, Key(2, "cpu"), times, values).ok());
  EXPECT_EQ(ReadOne(*store, Of(1)).size(), 2U);
  EXPECT_EQ(ReadOne(*store, Of(2)).size(), times.size());
  const std::string copy = directory.path() + "-copy";
  Copy(directory.path(), copy);
  EXPECT_EQ(ReadAll(*MustOpen(At(copy)), kOrg), ReadAll(*store, kOrg));
  filesystem::remove_all(copy);
}

}  // namespace
}  // namespace expanse::storage
