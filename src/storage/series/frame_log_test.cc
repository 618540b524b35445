// SPDX-License-Identifier: Apache-2.0
#include "storage/series/frame_log.h"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "platform/fs/fs.h"

namespace expanse::storage {
namespace {

class FrameLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = FrameLogWriter::Create(path_);
    ASSERT_TRUE(writer.ok());
    ends_.push_back(0);
    for (int i = 0; i < 8; ++i) {
      writer->Add(Payload(i));
      ASSERT_TRUE(writer->Commit().ok());
      ends_.push_back(static_cast<size_t>(writer->size()));
    }
    bytes_ = platform::Fs().Read(path_).value();
    ASSERT_EQ(bytes_.size(), ends_.back());
  }
  static std::string Payload(int i) {
    return std::string(static_cast<size_t>(i * 3), 'a') + std::to_string(i);
  }
  std::vector<std::string> Frames(std::string_view bytes, FrameLogDamage* damage) {
    std::vector<std::string> out;
    *damage = ParseFrames(bytes, [&](std::string_view payload) { out.emplace_back(payload); });
    return out;
  }

  platform::TempDir directory_;
  std::string path_ = directory_.path() + "/log";
  std::string bytes_;
  std::vector<size_t> ends_;  // of the file after each commit
};

TEST_F(FrameLogTest, KeepsEveryWholeFrameOfATruncatedFile) {
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    FrameLogDamage damage;
    const auto frames = Frames(std::string_view(bytes_).substr(0, size), &damage);
    const auto whole =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), size) - ends_.begin() - 1);
    ASSERT_EQ(frames.size(), whole);
    ASSERT_EQ(damage.lost_frames, 0);
    ASSERT_EQ(damage.skipped_bytes, 0);
    ASSERT_EQ(damage.tail_bytes, static_cast<int64_t>(size - ends_[whole]));
    for (size_t i = 0; i < whole; ++i) ASSERT_EQ(frames[i], Payload(static_cast<int>(i)));
  }
}

TEST_F(FrameLogTest, LosesOneFrameToAFlippedBitAndSaysSo) {
  for (size_t at = 0; at < bytes_.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      FrameLogDamage damage;
      const auto frames = Frames(damaged, &damage);
      const auto hit =
          static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin() - 1);
      ASSERT_EQ(frames.size(), 7U) << at;
      ASSERT_GT(damage.lost_frames + damage.tail_bytes, 0);
      for (size_t i = 0; i < frames.size(); ++i)
        ASSERT_EQ(frames[i], Payload(static_cast<int>(i < hit ? i : i + 1)));
    }
}

TEST_F(FrameLogTest, IsNotMisledByFramesInsideAPayload) {
  const std::string path = directory_.path() + "/outer";
  auto writer = FrameLogWriter::Create(path).value();
  writer.Add(bytes_);
  writer.Add("after");
  ASSERT_TRUE(writer.Commit().ok());
  FrameLogDamage damage;
  const auto frames = Frames(platform::Fs().Read(path).value(), &damage);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], bytes_);
}

// A file size limit fails as a full disk does: part of the write reaches the file.
TEST_F(FrameLogTest, CutsOffWhatAFullDiskTookInPart) {
  const std::string path = directory_.path() + "/full";
  auto writer = FrameLogWriter::Create(path).value();
  writer.Add("kept");
  ASSERT_TRUE(writer.Commit().ok());
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  writer.Add(std::string(500, 'x'));
  const auto full = writer.Commit();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), Code::kResourceExhausted) << full.error().message();
  EXPECT_FALSE(writer.broken());
  writer.Add("after");
  ASSERT_TRUE(writer.Commit().ok());
  FrameLogDamage damage;
  const auto frames = Frames(platform::Fs().Read(path).value(), &damage);
  EXPECT_EQ(frames, (std::vector<std::string>{"kept", "after"}));
  EXPECT_EQ(damage.lost_frames + damage.skipped_bytes + damage.tail_bytes, 0);
}

}  // namespace
}  // namespace expanse::storage
