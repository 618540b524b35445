// SPDX-License-Identifier: Apache-2.0
// Real full disks: a small tmpfs, filled and emptied again. Needs root (mount).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collect/core/spool.h"
#include "collect/uplink/record_queue.h"
#include "plane_load.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/random/random.h"

namespace expanse::faults {
namespace {

using ::testing::HasSubstr;

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=8m") != 0)
      GTEST_SKIP() << "mounting a small tmpfs needs root";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
  }
  /// Leaves so many bytes free.
  void Fill(uint64_t leave) {
    struct statvfs info {};
    ASSERT_EQ(statvfs(disk_.c_str(), &info), 0);
    const uint64_t free = info.f_bavail * info.f_frsize;
    std::ofstream(disk_ + "/filler", std::ios::app)
        << std::string(free > leave ? free - leave : 0, 'x');
  }
  void MakeRoom() { std::filesystem::remove(disk_ + "/filler"); }

  platform::TempDir dir_;
  std::string disk_ = dir_.path() + "/disk";
  bool mounted_ = false;
};

TEST_F(FullDiskTest, ADataPlaneAcknowledgesNothingSaysWhyAndGoesOnByItself) {
  const int rounds = Rounds(6);
  std::mt19937 random(5);
  Sender sender(0);
  int refused = 0;
  Server server(disk_ + "/plane");
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(sender.SendOnce(server.url())) << sender.last_error();
    // Another store meets the end each time: the log of samples, a blob, SQLite's log or file.
    Fill(random() % 100'000);
    bool is_full = false;
    for (int i = 0; i < 200 && !is_full; ++i) is_full = !sender.SendOnce(server.url());
    ASSERT_TRUE(is_full);
    EXPECT_THAT(sender.last_error(), HasSubstr("nothing of this batch is acknowledged"));
    ++refused;
    if (round % 3 == 2) server.Kill();  // and a power cut on top
    MakeRoom();
    if (round % 3 == 2) {
      const Server again(disk_ + "/plane");
      ASSERT_FALSE(again.url().empty());
      ASSERT_TRUE(sender.SendOnce(again.url())) << sender.last_error();
      sender.Check(again.url());
      break;
    }
    ASSERT_TRUE(sender.SendOnce(server.url())) << sender.last_error();
    sender.Check(server.url());
  }
  std::printf("full disk: %d times, %lld records acknowledged, all there once\n", refused,
              static_cast<long long>(sender.acknowledged()));
}

TEST_F(FullDiskTest, ASpoolCountsWhatItCouldNotTakeAndGoesOnByItself) {
  platform::FakeClock clock{FromUnixMillis(1'800'000'000'000)};
  platform::SystemRandom random;
  collect::SpoolOptions options;
  options.directory = disk_ + "/spool";
  auto writer = collect::SpoolWriter::Open(options, clock, random).value();
  data::v1::Record record;
  record.set_node(std::string(2000, 'n'));
  record.set_observed_time_ms(1);
  const auto write = [&] { return writer->Append(record).ok() && writer->Flush().ok(); };
  int64_t taken = 0, dropped = 0;
  for (int round = 0; round < 5; ++round) {
    Fill(20'000);
    for (int i = 0; i < 30; ++i) ++(write() ? taken : dropped);
    MakeRoom();
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(write()) << round;
      ++taken;
    }
  }
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(writer->dropped_records(), static_cast<uint64_t>(dropped));
  auto reader = collect::SpoolReader::Open(options.directory).value();
  int64_t read = 0;
  for (;;) {
    const auto batch = reader->Next(100, 1 << 20).value();
    if (batch.empty()) break;
    read += static_cast<int64_t>(batch.records.size());
    EXPECT_EQ(batch.dropped_records, static_cast<uint64_t>(dropped));
  }
  EXPECT_EQ(read, taken);
  EXPECT_EQ(reader->stats().lost_records, static_cast<uint64_t>(dropped));
  EXPECT_EQ(reader->stats().damaged_frames, 0u);
}

TEST_F(FullDiskTest, TheControllersQueueRefusesARecordThatItCannotKeep) {
  platform::FakeClock clock{FromUnixMillis(1'800'000'000'000)};
  platform::SystemRandom random;
  collect::SpoolOptions options;
  options.directory = disk_ + "/queue";
  auto queue = collect::uplink::RecordQueue::Open(options, clock, random).value();
  data::v1::Record record;
  record.set_node(std::string(50'000, 'n'));
  Fill(20'000);
  const Status full = queue->Append(record);
  ASSERT_FALSE(full.ok());  // the reconciler then does not note the job as told
  EXPECT_EQ(full.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(full.error().message(), HasSubstr("No space left"));
  MakeRoom();
  EXPECT_TRUE(queue->Append(record).ok());
  EXPECT_TRUE(queue->Sync().ok());
}

}  // namespace
}  // namespace expanse::faults
