// SPDX-License-Identifier: Apache-2.0
// A backup that is taken by another process while records come in.
#include "storage/backup/backup.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plane_load.h"
#include "platform/fs/fs.h"
#include "storage/backup/manifest.h"
#include "storage/series/embedded_store.h"

namespace expanse::faults {
namespace {

using storage::BackupLayout;
using ::testing::HasSubstr;

const BackupLayout& DataLayout() {
  static const BackupLayout layout{{"data.db"}, {"key-set.json"}, "series", "blobs"};
  return layout;
}

TEST(Backup, HoldsEveryRecordThatWasAcknowledgedBeforeItBegan) {
  const int rounds = Rounds(2);
  for (int round = 0; round < rounds; ++round) {
    const platform::TempDir dir;
    const std::string data = dir.path() + "/data", copy = dir.path() + "/copy",
                      restored = dir.path() + "/restored";
    std::vector<Sender> senders{Sender(0), Sender(1), Sender(2)};
    std::vector<int64_t> before;
    {
      Server server(data);
      ASSERT_FALSE(server.url().empty());
      for (Sender& sender : senders) {
        ASSERT_TRUE(sender.SendOnce(server.url())) << sender.last_error();
        before.push_back(sender.acknowledged());
      }
      Load load(server.url(), &senders);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const auto report = storage::Backup(data, DataLayout(), copy);
      ASSERT_TRUE(report.ok()) << report.error().message();
      EXPECT_GT(report->files, 2);
      load.Stop();
      for (const Sender& sender : senders) sender.Check(server.url());
    }
    std::filesystem::remove_all(data);
    const auto report = storage::Restore(copy, DataLayout(), restored);
    ASSERT_TRUE(report.ok()) << report.error().message();
    const Server server(restored);
    ASSERT_FALSE(server.url().empty());
    for (size_t i = 0; i < senders.size(); ++i) senders[i].Check(server.url(), before[i]);
  }
}

// The race that needs care: files are sealed and merged while they are listed.
TEST(Backup, SealingAndMergingMeanwhileLosesNoSample) {
  const int rounds = Rounds(10);
  const platform::TempDir dir;
  storage::EmbeddedStoreOptions options;
  options.directory = dir.path() + "/plane/series";
  options.head_samples = 50;
  options.merge_files = 2;
  ASSERT_TRUE(platform::Fs().MakeDirs(dir.path() + "/plane").ok());
  auto store = storage::OpenEmbeddedStore(options).value();
  storage::SeriesKey key;
  key.org = OrgId("o");
  key.execution = ExecutionId("e");
  key.metric = "cpu";
  key.source = "cgroup";
  std::atomic<int64_t> acknowledged{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t t = 1; !stop; ++t) {
      const double value = static_cast<double>(t);
      const storage::SeriesBlock block{key, {&t, 1}, {&value, 1}};
      EXPECT_TRUE(store->Append({&block, 1}, "b").ok());
      acknowledged = t;
    }
  });
  const BackupLayout layout{{}, {}, "series", ""};
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const int64_t least = acknowledged;
    const std::string copy = dir.path() + "/copy" + std::to_string(round);
    const auto report = storage::Backup(dir.path() + "/plane", layout, copy);
    ASSERT_TRUE(report.ok()) << report.error().message();
    storage::EmbeddedStoreOptions other;
    other.directory = copy + "/series";
    const auto restored = storage::OpenEmbeddedStore(other).value();
    const auto answer =
        restored->Read({key.org, key.execution, {}, {}, {}, {}, {}, {}}, {}, 10'000'000).value();
    ASSERT_EQ(answer.series.size(), 1u);
    EXPECT_TRUE(answer.damage.empty());
    const auto& samples = answer.series[0].samples;
    ASSERT_GE(static_cast<int64_t>(samples.size()), least) << round;
    for (size_t i = 0; i < samples.size(); ++i)
      ASSERT_EQ(samples[i].timestamp_ms, static_cast<int64_t>(i) + 1) << round;
    std::filesystem::remove_all(copy);
  }
  stop = true;
  writer.join();
}

class RestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    Server server(data_);
    ASSERT_TRUE(sender_.SendOnce(server.url()));
    server.Kill();
    const auto report = storage::Backup(data_, DataLayout(), copy_);
    ASSERT_TRUE(report.ok()) << report.error().message();
  }
  std::string RestoreError() {
    const auto report = storage::Restore(copy_, DataLayout(), restored_);
    return report.ok() ? "" : report.error().message();
  }

  platform::TempDir dir_;
  std::string data_ = dir_.path() + "/data";
  std::string copy_ = dir_.path() + "/copy";
  std::string restored_ = dir_.path() + "/restored";
  Sender sender_{0};
};

TEST_F(RestoreTest, RefusesATargetThatIsNotEmpty) {
  ASSERT_TRUE(platform::Fs().MakeDirs(restored_).ok());
  std::ofstream(restored_ + "/something") << "x";
  EXPECT_THAT(RestoreError(), HasSubstr("not empty (something)"));
  std::filesystem::remove(restored_ + "/something");
  EXPECT_EQ(RestoreError(), "");
  EXPECT_THAT(RestoreError(), HasSubstr("not empty"));
}

TEST_F(RestoreTest, ABackupIntoADirectoryThatIsNotEmptyIsRefused) {
  const auto again = storage::Backup(data_, DataLayout(), copy_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
}

TEST_F(RestoreTest, ADamagedCutOffOrForeignBackupIsNamedAndNothingStartsOnIt) {
  const std::string database = *platform::Fs().Read(copy_ + "/data.db");
  std::string bad = database;
  bad[bad.size() / 2] ^= 1;
  std::ofstream(copy_ + "/data.db", std::ios::binary) << bad;
  EXPECT_THAT(RestoreError(), HasSubstr("data.db has a wrong checksum"));
  EXPECT_TRUE(Server(restored_).url().empty());  // half restored
  EXPECT_THAT(RestoreError(), HasSubstr("was cut off"));
  std::filesystem::remove_all(restored_);

  std::ofstream(copy_ + "/data.db", std::ios::binary) << database.substr(0, database.size() - 1);
  EXPECT_THAT(RestoreError(), HasSubstr("bytes, not"));
  std::filesystem::remove_all(restored_);
  std::filesystem::remove(copy_ + "/data.db");
  EXPECT_THAT(RestoreError(), HasSubstr("data.db is missing"));
  std::filesystem::remove_all(restored_);

  EXPECT_FALSE(storage::Restore(copy_, {{"control.db"}, {}, "", ""}, restored_).ok());
  std::filesystem::remove(copy_ + "/backup.manifest");
  EXPECT_THAT(RestoreError(), HasSubstr("no complete backup"));
  EXPECT_FALSE(platform::Fs().Exists(restored_));
}

TEST(BackupManifest, AnyChangeIsSeenAndNoPathLeavesItsDirectory) {
  const std::string good = storage::EncodeManifest({{5, 77u, "a/b"}, {6, {}, "c"}});
  ASSERT_EQ(storage::ParseManifest(good)->size(), 2u);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    EXPECT_FALSE(storage::ParseManifest(bad).ok()) << at;
    EXPECT_FALSE(storage::ParseManifest(good.substr(0, at)).ok()) << at;
  }
  for (const char* path : {"/etc/x", "../x", "a/../../x", "a//b", "./a", ""})
    EXPECT_FALSE(storage::ParseManifest(storage::EncodeManifest({{1, {}, path}})).ok()) << path;
}

}  // namespace
}  // namespace expanse::faults
