// SPDX-License-Identifier: Apache-2.0
// A sealed file under damage: what it answers is right, what it cannot answer it names.
#include "storage/series/sealed_file.h"

#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "storage/series/series_test_util.h"

namespace expanse::storage {
namespace {

class SealedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(11);
    for (const char* metric : {"cpu", "memory", "processes"})
      for (int execution = 0; execution < 300; ++execution) {
        Columns columns;
        for (int i = 0; i < 40; ++i)
          columns.Add(1'700'000'000'000 + execution % 3 + i * 10'000,
                      static_cast<double>(random() % 100'000) / 8);
        const SeriesKey key = Key(execution, metric);
        for (size_t i = 0; i < columns.size(); ++i)
          want_[key][columns.times[i]] = columns.values[i];
        columns_.emplace_back(key, std::move(columns));
      }
    std::sort(columns_.begin(), columns_.end(),
              [](const auto& a, const auto& b) { return InFileOrder(a.first, b.first); });
    auto writer = SealedFileWriter::Create(path_).value();
    for (const auto& [key, columns] : columns_) ASSERT_TRUE(writer.Add(key, columns).ok());
    ASSERT_TRUE(writer.Finish().ok());
    bytes_ = platform::Fs().Read(path_).value();
  }
  void Overwrite(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Everything that can be read; damage is named.
  Content ReadFile(std::vector<std::string>& damage) {
    Content out;
    const auto file = SealedFile::Open(path_, 1, 1);
    if (!file.ok()) {
      EXPECT_EQ(file.error().code(), Code::kDataLoss) << file.error().message();
      damage.push_back(file.error().message());
      return out;
    }
    ChunkReader reader;
    (*file)->Scan(
        SeriesKey(),
        [&](IndexEntry&& entry) {
          for (const auto& chunk : entry.chunks) {
            const auto columns = reader.Read(**file, chunk);
            if (!columns.ok())
              damage.push_back(columns.error().message());
            else
              for (size_t i = 0; i < columns->size(); ++i)
                out[entry.key][columns->times[i]] = columns->values[i];
          }
          return true;
        },
        damage);
    return out;
  }
  void ExpectRightOrNamed(const std::string& what, bool is_one_bit) {
    std::vector<std::string> damage;
    const Content got = ReadFile(damage);
    for (const auto& [key, samples] : got) ASSERT_EQ(samples, want_[key]) << what;
    // One bit costs at most one block (64 KiB before compression) or one index page.
    if (is_one_bit) {
      ASSERT_GE(got.size(), want_.size() - 520) << what;
    }
    if (damage.empty()) {
      ASSERT_EQ(got.size(), want_.size()) << what;
    }
    for (const auto& text : damage) ASSERT_NE(text.find(path_), std::string::npos);
  }

  platform::TempDir directory_;
  std::string path_ = directory_.path() + "/a.xs";
  std::vector<std::pair<SeriesKey, Columns>> columns_;
  Content want_;
  std::string bytes_;
};

TEST_F(SealedFileTest, AnswersEverySeriesAndItsStatistics) {
  std::vector<std::string> damage;
  EXPECT_EQ(ReadFile(damage), want_);
  EXPECT_TRUE(damage.empty());
  const auto file = SealedFile::Open(path_, 1, 1).value();
  EXPECT_EQ(file->samples(), 3 * 300 * 40);
  file->Scan(
      Key(7, "cpu"),
      [&](IndexEntry&& entry) {
        EXPECT_EQ(entry.key, Key(7, "cpu"));
        const auto& samples = want_[entry.key];
        double sum = 0;
        double max = 0;
        for (const auto& [t, v] : samples) {
          sum += v;
          max = std::max(max, v);
        }
        EXPECT_EQ(entry.chunks.size(), 1U);
        EXPECT_EQ(entry.chunks[0].count, 40U);
        EXPECT_EQ(entry.chunks[0].sum, sum);
        EXPECT_EQ(entry.chunks[0].max, max);
        EXPECT_EQ(entry.chunks[0].last, samples.rbegin()->second);
        EXPECT_EQ(entry.chunks[0].first_ms, samples.begin()->first);
        return false;
      },
      damage);
}

TEST_F(SealedFileTest, NamesWhatAFlippedBitTook) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    std::string damaged = bytes_;
    const size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    Overwrite(damaged);
    ExpectRightOrNamed("byte " + std::to_string(at), true);
    if (HasFatalFailure()) return;
  }
}

TEST_F(SealedFileTest, NamesATruncatedFile) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 60; ++round) {
    const size_t size =
        round < 30 ? bytes_.size() - static_cast<size_t>(round) - 1 : random() % bytes_.size();
    Overwrite(bytes_.substr(0, size));
    ExpectRightOrNamed("size " + std::to_string(size), false);
    if (HasFatalFailure()) return;
  }
}

TEST_F(SealedFileTest, SplitsLongSeriesIntoChunks) {
  const std::string path = directory_.path() + "/long.xs";
  Columns columns;
  for (int i = 0; i < 10'000; ++i) columns.Add(i * 10, i % 7);
  auto writer = SealedFileWriter::Create(path).value();
  ASSERT_TRUE(writer.Add(Key(1, "cpu"), columns).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const auto file = SealedFile::Open(path, 1, 1).value();
  std::vector<std::string> damage;
  Columns got;
  ChunkReader reader;
  file->Scan(
      SeriesKey(),
      [&](IndexEntry&& entry) {
        EXPECT_EQ(entry.chunks.size(), 3U);
        for (const auto& chunk : entry.chunks) {
          const auto part = reader.Read(*file, chunk).value();
          for (size_t i = 0; i < part.size(); ++i) got.Add(part.times[i], part.values[i]);
        }
        return true;
      },
      damage);
  EXPECT_EQ(got.times, columns.times);
  EXPECT_EQ(got.values, columns.values);
}

}  // namespace
}  // namespace expanse::storage
