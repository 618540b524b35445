// SPDX-License-Identifier: Apache-2.0
#include "collect/core/spool.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/core/spool_files.h"
#include "collect/core/spool_format.h"
#include "platform/fs/fs.h"

namespace expanse::collect {
namespace {

using platform::FakeClock;
using platform::FakeRandom;
using platform::TempDir;

class SpoolTest : public ::testing::Test {
 protected:
  SpoolOptions Options() const {
    SpoolOptions options;
    options.directory = dir_.path() + "/spool";
    return options;
  }
  std::unique_ptr<SpoolWriter> Writer(SpoolOptions options) {
    auto writer = SpoolWriter::Open(std::move(options), clock_, random_);
    EXPECT_TRUE(writer.ok()) << (writer.ok() ? "" : writer.error().message());
    return writer.ok() ? std::move(writer).value() : nullptr;
  }
  std::unique_ptr<SpoolReader> Reader() {
    auto reader = SpoolReader::Open(Options().directory);
    EXPECT_TRUE(reader.ok());
    return std::move(reader).value();
  }
  static data::v1::Record Record(int64_t n, size_t padding = 0) {
    data::v1::Record record;
    record.set_observed_time_ms(n);
    record.set_node(std::string(padding, 'x'));
    record.mutable_facts()->set_step_id("batch");
    return record;
  }
  static void Write(SpoolWriter& writer, int64_t from, int64_t to, size_t padding = 0) {
    for (int64_t n = from; n <= to; ++n) ASSERT_TRUE(writer.Append(Record(n, padding)).ok());
    ASSERT_TRUE(writer.Flush().ok());
  }
  /// Every record that can be read now, by observed_time_ms.
  static std::vector<int64_t> ReadAll(SpoolReader& reader) {
    std::vector<int64_t> seen;
    for (;;) {
      auto batch = reader.Next(100, 1 << 20);
      EXPECT_TRUE(batch.ok());
      if (!batch.ok() || batch->empty()) return seen;
      for (const auto& r : batch->records) seen.push_back(r.observed_time_ms());
    }
  }
  std::vector<std::string> Segments() const {
    std::vector<std::string> names;
    const auto segments = ListSegments(Options().directory);
    for (const auto& s : *segments) names.push_back(platform::BaseName(s.path));
    return names;
  }

  TempDir dir_;
  FakeClock clock_{FromUnixMillis(1'800'000'000'000)};
  FakeRandom random_{7};
};

std::vector<int64_t> Range(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  for (int64_t n = from; n <= to; ++n) out.push_back(n);
  return out;
}

TEST_F(SpoolTest, GivesBackWhatWasFlushedInOrderWithItsSequences) {
  auto writer = Writer(Options());
  Write(*writer, 1, 10);
  auto reader = Reader();
  auto batch = reader->Next(4, 1 << 20);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->first_sequence, 1u);
  EXPECT_EQ(batch->last_sequence(), 4u);
  EXPECT_EQ(batch->source_id, writer->source_id());
  EXPECT_EQ(ReadAll(*reader), Range(5, 10));
  EXPECT_TRUE(reader->Next(4, 1 << 20)->empty());
  Write(*writer, 11, 12);
  EXPECT_EQ(ReadAll(*reader), Range(11, 12));
}

TEST_F(SpoolTest, UnflushedRecordsAreNotInTheSpool) {
  auto writer = Writer(Options());
  ASSERT_TRUE(writer->Append(Record(1)).ok());
  auto reader = Reader();
  EXPECT_TRUE(ReadAll(*reader).empty());
}

TEST_F(SpoolTest, ABatchKeepsToItsByteLimitButGivesALargerRecordAlone) {
  auto writer = Writer(Options());
  Write(*writer, 1, 3, 1000);
  auto reader = Reader();
  EXPECT_EQ(reader->Next(100, 2500)->records.size(), 2u);
  EXPECT_EQ(reader->Next(100, 10)->records.size(), 1u);
}

TEST_F(SpoolTest, TheCursorSurvivesAndDeliveredSegmentsAreDeleted) {
  auto options = Options();
  options.segment_bytes = 1000;
  auto writer = Writer(options);
  for (int64_t n = 1; n <= 20; ++n) Write(*writer, n, n, 200);
  const size_t before = Segments().size();
  ASSERT_GT(before, 3u);
  {
    auto reader = Reader();
    EXPECT_EQ(ReadAll(*reader), Range(1, 20));
    ASSERT_TRUE(reader->Acknowledge(writer->source_id(), 11).ok());
  }
  EXPECT_LT(Segments().size(), before);
  auto again = Reader();
  EXPECT_EQ(again->acknowledged(), 11u);
  EXPECT_EQ(ReadAll(*again), Range(12, 20));
  EXPECT_EQ(again->stats().lost_records, 0u);
}

TEST_F(SpoolTest, RewindStartsAfterTheLastAcknowledged) {
  auto writer = Writer(Options());
  Write(*writer, 1, 9);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader), Range(1, 9));
  ASSERT_TRUE(reader->Acknowledge(writer->source_id(), 4).ok());
  reader->Rewind();
  EXPECT_EQ(ReadAll(*reader), Range(5, 9));
}

TEST_F(SpoolTest, WhatIsGivenOutWasMadeDurableBefore) {
  auto options = Options();
  options.segment_bytes = 1000;
  auto writer = Writer(options);
  for (int64_t n = 1; n <= 8; ++n) Write(*writer, n, n, 200);
  ASSERT_GT(Segments().size(), 1u);
  std::map<ino_t, off_t> synced;
  bool broken = true;
  auto opened = SpoolReader::Open(Options().directory, [&](int fd) -> Status {
    if (broken) return Error(Code::kUnavailable, "no sync");
    struct stat st {};
    EXPECT_EQ(::fstat(fd, &st), 0);
    synced[st.st_ino] = st.st_size;
    return {};
  });
  ASSERT_TRUE(opened.ok());
  SpoolReader& reader = **opened;
  EXPECT_FALSE(reader.Next(100, 1 << 20).ok());
  EXPECT_FALSE(reader.Next(100, 1 << 20).ok());
  broken = false;
  EXPECT_EQ(ReadAll(reader), Range(1, 8));  // an error skipped nothing
  EXPECT_EQ(synced.size(), Segments().size());
  const size_t segments = synced.size();
  synced.clear();
  Write(*writer, 9, 9);
  EXPECT_EQ(ReadAll(reader), Range(9, 9));
  EXPECT_EQ(synced.size(), 1u);
  EXPECT_GE(Segments().size(), segments);
}

TEST_F(SpoolTest, ASpoolThatIsRemovedAndMadeAgainIsReadFromItsBeginning) {
  auto options = Options();
  options.segment_bytes = 1000;
  for (const bool moved : {false, true}) {
    for (const bool rewound : {false, true}) {
      for (const int64_t old_records : {1, 40}) {
        std::filesystem::remove_all(Options().directory);
        std::filesystem::remove_all(dir_.path() + "/away");
        auto writer = Writer(options);
        for (int64_t n = 1; n <= old_records; ++n) Write(*writer, n, n, 200);
        auto reader = Reader();
        ASSERT_EQ(ReadAll(*reader), Range(1, old_records));
        ASSERT_TRUE(
            reader->Acknowledge(writer->source_id(), static_cast<uint64_t>(old_records)).ok());
        writer.reset();
        if (moved)
          std::filesystem::rename(Options().directory, dir_.path() + "/away");
        else
          std::filesystem::remove_all(Options().directory);
        if (rewound) reader->Rewind();
        writer = Writer(options);  // counts from 1 again
        for (int64_t n = 101; n <= 120; ++n) Write(*writer, n, n, 200);
        std::vector<int64_t> seen = ReadAll(*reader);
        for (const int64_t n : ReadAll(*reader)) seen.push_back(n);  // looked at once a second
        ASSERT_EQ(seen, Range(101, 120)) << moved << rewound << old_records;
        const uint64_t half = 10;
        ASSERT_TRUE(reader->Acknowledge(writer->source_id(), half).ok());
        EXPECT_EQ(ReadAll(*Reader()), Range(111, 120));
      }
    }
  }
}

TEST_F(SpoolTest, AnAcknowledgementOfARemovedSpoolDeletesNothingOfTheNewOne) {
  auto options = Options();
  options.segment_bytes = 1000;
  auto writer = Writer(options);
  const std::string old_source = writer->source_id();
  for (int64_t n = 1; n <= 40; ++n) Write(*writer, n, n, 200);
  auto reader = Reader();
  ASSERT_EQ(ReadAll(*reader).size(), 40u);
  writer.reset();
  std::filesystem::remove_all(Options().directory);
  writer = Writer(options);
  for (int64_t n = 101; n <= 120; ++n) Write(*writer, n, n, 200);
  const auto before = Segments();
  ASSERT_TRUE(reader->Acknowledge(old_source, 40).ok());
  EXPECT_EQ(Segments(), before);
  std::vector<int64_t> seen = ReadAll(*reader);
  for (const int64_t n : ReadAll(*reader)) seen.push_back(n);
  EXPECT_EQ(seen, Range(101, 120));
}

TEST_F(SpoolTest, AnOpenSegmentWithoutARecordDoesNotHideTheNextOne) {
  // As a power failure leaves it: nothing, a part of the header, the header alone, a torn frame.
  for (const size_t left : {size_t{0}, size_t{10}, kSegmentHeaderBytes, kSegmentHeaderBytes + 20}) {
    for (const bool sealed : {false, true}) {
      std::filesystem::remove_all(Options().directory);
      {
        auto writer = Writer(Options());
        Write(*writer, 1, 1, 100);
      }
      const std::string path = Options().directory + "/" + SegmentName(1, true);
      std::filesystem::resize_file(path, left);
      if (sealed) std::filesystem::rename(path, Options().directory + "/" + SegmentName(1, false));
      auto writer = Writer(Options());
      Write(*writer, 2, 4);
      ASSERT_EQ(Segments().size(), 1u) << left;
      auto reader = Reader();
      EXPECT_EQ(ReadAll(*reader), Range(2, 4)) << left << sealed;
      EXPECT_EQ(reader->stats().damaged_frames, 0u);
    }
  }
}

TEST_F(SpoolTest, ADamagedHeaderOfTheOpenSegmentHidesNeitherItsRecordsNorTheNext) {
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 5);
  }
  const std::string path = Options().directory + "/" + SegmentName(1, true);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << "x";
  auto writer = Writer(Options());
  EXPECT_EQ(writer->next_sequence(), 6u);
  Write(*writer, 6, 7);
  EXPECT_EQ(ReadAll(*Reader()), Range(1, 7));
}

TEST_F(SpoolTest, ARecordThatItsWriterKeepsIsNotCountedWhenTheDiskIsFull) {
  auto writer = Writer(Options());
  const std::string segment = Options().directory + "/" + SegmentName(1, true);
  std::filesystem::create_directory(segment);  // no segment can be made
  std::filesystem::create_directory(Options().directory + "/probe");
  ASSERT_TRUE(writer->AppendKept(Record(1)).ok());
  ASSERT_TRUE(writer->Append(Record(2)).ok());
  EXPECT_FALSE(writer->Sync().ok());
  EXPECT_EQ(writer->dropped_records(), 1u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(writer->AppendKept(Record(1)).ok());
    EXPECT_TRUE(writer->Flush().ok());
  }
  EXPECT_EQ(writer->dropped_records(), 1u);
  EXPECT_EQ(writer->next_sequence(), 3u);
  std::filesystem::remove(segment);
  std::filesystem::remove(Options().directory + "/probe");
  ASSERT_TRUE(writer->AppendKept(Record(1)).ok());
  EXPECT_TRUE(writer->Sync().ok());
  EXPECT_EQ(ReadAll(*Reader()), Range(1, 1));
}

TEST_F(SpoolTest, RefusesToAcknowledgeWhatWasNotRead) {
  auto writer = Writer(Options());
  Write(*writer, 1, 9);
  auto reader = Reader();
  (void)reader->Next(3, 1 << 20);
  EXPECT_FALSE(reader->Acknowledge(writer->source_id(), 4).ok());
  EXPECT_FALSE(reader->Acknowledge("01890000-0000-7000-8000-000000000000", 2).ok());
}

TEST_F(SpoolTest, SequencesGoOnAfterARestartAndTheSourceStaysTheSame) {
  std::string source;
  {
    auto writer = Writer(Options());
    source = writer->source_id();
    Write(*writer, 1, 5);
  }
  auto writer = Writer(Options());
  EXPECT_EQ(writer->source_id(), source);
  EXPECT_EQ(writer->next_sequence(), 6u);
  Write(*writer, 6, 7);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader), Range(1, 7));
  EXPECT_EQ(reader->stats().damaged_frames, 0u);
}

TEST_F(SpoolTest, SequencesNeverRepeatWhenAllSegmentsAndTheStateFileAreGone) {
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 5);
  }
  {
    auto reader = Reader();
    auto batch = reader->Next(100, 1 << 20);
    ASSERT_TRUE(reader->Acknowledge(batch->source_id, 5).ok());
  }
  const auto segments = ListSegments(Options().directory);
  for (const auto& s : *segments) std::filesystem::remove(s.path);
  EXPECT_EQ(Writer(Options())->next_sequence(), 6u);
}

TEST_F(SpoolTest, AHalfWrittenFrameIsWaitedForInTheOpenSegment) {
  auto writer = Writer(Options());
  Write(*writer, 1, 2);
  std::string frame;
  AppendFrame(3, Record(3).SerializeAsString(), &frame);
  const std::string path = Options().directory + "/" + SegmentName(1, true);
  std::ofstream(path, std::ios::app | std::ios::binary) << frame.substr(0, frame.size() / 2);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader), Range(1, 2));
  EXPECT_EQ(reader->stats().damaged_frames, 0u);
  std::ofstream(path, std::ios::app | std::ios::binary) << frame.substr(frame.size() / 2);
  EXPECT_EQ(ReadAll(*reader), Range(3, 3));
}

TEST_F(SpoolTest, ACutTailIsTakenAwayByTheNextWriter) {
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 4, 100);
  }
  const std::string path = Options().directory + "/" + SegmentName(1, true);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 30);
  auto writer = Writer(Options());
  EXPECT_EQ(writer->next_sequence(), 4u);
  Write(*writer, 40, 41);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader), (std::vector<int64_t>{1, 2, 3, 40, 41}));
  EXPECT_EQ(reader->stats().damaged_frames, 0u);
  EXPECT_EQ(reader->stats().lost_records, 0u);
}

TEST_F(SpoolTest, EveryFlippedByteIsDetectedAndCostsAtMostItsRecord) {
  auto options = Options();
  options.segment_bytes = 600;
  {
    auto writer = Writer(options);
    for (int64_t n = 1; n <= 12; ++n) Write(*writer, n, n, 60);
  }
  const std::string path = Options().directory + "/" + SegmentName(1, false);
  ASSERT_TRUE(std::filesystem::exists(path));
  const std::string good = *platform::Fs().Read(path);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    auto reader = Reader();
    const auto seen = ReadAll(*reader);
    ASSERT_TRUE(std::is_sorted(seen.begin(), seen.end())) << at;
    EXPECT_EQ(seen.size(), at < kSegmentHeaderBytes ? 12u : 11u) << at;
    EXPECT_EQ(reader->stats().damaged_frames, 1u) << at;
    EXPECT_EQ(reader->stats().lost_records, 12u - seen.size()) << at;
  }
}

TEST_F(SpoolTest, DamageInTheOpenSegmentIsPassedAfterALittlePatience) {
  auto writer = Writer(Options());
  Write(*writer, 1, 8, 50);
  const std::string path = Options().directory + "/" + SegmentName(1, true);
  std::string bytes = *platform::Fs().Read(path);
  bytes[kSegmentHeaderBytes + kFrameHeaderBytes + 5] ^= 1;
  std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out) << bytes;
  auto reader = Reader();
  EXPECT_TRUE(ReadAll(*reader).empty());  // another machine's page cache may show it right soon
  for (int i = 0; i < 40; ++i) {
    const auto seen = ReadAll(*reader);
    if (!seen.empty()) {
      EXPECT_EQ(seen, Range(2, 8));
    }
    reader->Rewind();
  }
  EXPECT_EQ(ReadAll(*reader), Range(2, 8));
  EXPECT_EQ(reader->stats().lost_records, 1u);
}

TEST_F(SpoolTest, AFlippedCursorSendsAgainAndSkipsNothing) {
  auto writer = Writer(Options());
  Write(*writer, 1, 30);
  {
    auto reader = Reader();
    ASSERT_EQ(reader->Next(10, 1 << 20)->records.size(), 10u);
    ASSERT_TRUE(reader->Acknowledge(writer->source_id(), 10).ok());
  }
  const std::string path = Options().directory + "/cursor";
  const std::string good = *platform::Fs().Read(path);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    auto reader = Reader();
    const auto seen = ReadAll(*reader);
    ASSERT_GE(seen.size(), 20u) << bit;  // what comes twice is known by its sequence
    ASSERT_EQ(seen.back(), 30) << bit;
    ASSERT_EQ(seen.size(), static_cast<size_t>(31 - seen.front())) << bit;
  }
}

TEST_F(SpoolTest, AFlippedOrCutStateFileLosesNeitherSourceNorSequence) {
  std::string source;
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 30);
    source = writer->source_id();
  }
  const std::string path = Options().directory + "/state";
  const std::string good = *platform::Fs().Read(path);
  for (size_t round = 0; round < good.size() * 2; ++round) {
    std::string bad = good.substr(0, round < good.size() ? round : good.size());
    if (round >= good.size()) bad[round - good.size()] ^= 4;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    auto writer = Writer(Options());
    ASSERT_EQ(writer->source_id(), source) << round;
    ASSERT_EQ(writer->next_sequence(), 31u) << round;
  }
}

TEST_F(SpoolTest, ASpoolOfVersion01IsReadOn) {
  auto writer = Writer(Options());
  Write(*writer, 1, 5);
  std::ofstream(Options().directory + "/cursor")
      << "source_id=" << writer->source_id() << "\nacknowledged=3\n";
  EXPECT_EQ(ReadAll(*Reader()), Range(4, 5));
}

TEST_F(SpoolTest, ADamagedFrameInTheMiddleDoesNotMakeTheWriterReuseSequences) {
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 8, 50);
  }
  const std::string path = Options().directory + "/" + SegmentName(1, true);
  std::string bytes = *platform::Fs().Read(path);
  bytes[kSegmentHeaderBytes + kFrameHeaderBytes + 5] ^= 1;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  EXPECT_EQ(Writer(Options())->next_sequence(), 9u);
}

TEST_F(SpoolTest, TheByteCapDropsTheOldestSegmentAndCountsWhatWasNotDelivered) {
  auto options = Options();
  options.segment_bytes = 1000;
  options.max_bytes = 5000;
  uint64_t dropped = 0;
  {
    auto writer = Writer(options);
    for (int64_t n = 1; n <= 60; ++n) {
      Write(*writer, n, n, 200);
      EXPECT_LE(writer->bytes(), 5000 + 400);
    }
    dropped = writer->dropped_records();
  }
  ASSERT_GT(dropped, 0u);
  auto writer = Writer(options);
  EXPECT_EQ(writer->dropped_records(), dropped) << "the counter is persisted";
  auto reader = Reader();
  auto batch = reader->Next(100, 1 << 20);
  EXPECT_EQ(batch->dropped_records, dropped);
  EXPECT_EQ(batch->first_sequence, dropped + 1);
  EXPECT_EQ(batch->records.size(), 60 - dropped);
}

TEST_F(SpoolTest, AcknowledgedRecordsThatTheCapDropsAreNoLoss) {
  auto options = Options();
  options.segment_bytes = 100'000;
  options.max_bytes = 400'000;
  auto writer = Writer(options);
  Write(*writer, 1, 200, 1000);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader).size(), 200u);
  ASSERT_TRUE(reader->Acknowledge(writer->source_id(), 200).ok());
  for (int64_t n = 0; n < 5; ++n) Write(*writer, 201 + n * 60, 260 + n * 60, 1000);
  const uint64_t lost = writer->dropped_records();
  reader->Rewind();
  EXPECT_EQ(ReadAll(*reader).size(), 300 - lost);
  EXPECT_EQ(reader->stats().lost_records, lost);
}

TEST_F(SpoolTest, AFullDiskDropsCountsAndRecovers) {
  const auto path = dir_.path() + "/spool";
  auto writer = Writer(Options());
  Write(*writer, 1, 3);
  // A file size limit stands for the full disk: write(2) fails the same way.
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit tight{1500, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  for (int64_t n = 4; n <= 13; ++n) ASSERT_TRUE(writer->Append(Record(n, 500)).ok());
  EXPECT_FALSE(writer->Flush().ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_EQ(writer->dropped_records(), 10u);
  Write(*writer, 14, 15);
  auto reader = Reader();
  EXPECT_EQ(ReadAll(*reader), (std::vector<int64_t>{1, 2, 3, 14, 15}));
  EXPECT_EQ(reader->stats().damaged_frames, 0u);
  EXPECT_EQ(reader->stats().lost_records, 10u);
}

TEST_F(SpoolTest, ASecondWriterIsRefused) {
  auto writer = Writer(Options());
  // flock belongs to the open file, so that a second open in this process conflicts as well.
  auto second = SpoolWriter::Open(Options(), clock_, random_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
}

TEST_F(SpoolTest, AnAbsentOrEmptyDirectoryIsAnEmptySpool) {
  auto reader = Reader();
  EXPECT_TRUE(reader->Next(10, 1000)->empty());
  auto writer = Writer(Options());
  EXPECT_TRUE(reader->Next(10, 1000)->empty());
  Write(*writer, 1, 1);
  EXPECT_EQ(ReadAll(*reader), Range(1, 1));
}

TEST_F(SpoolTest, ANewSpoolInTheSameDirectoryIsANewSource) {
  {
    auto writer = Writer(Options());
    Write(*writer, 1, 9);
  }
  auto reader = Reader();
  auto batch = reader->Next(100, 1 << 20);
  ASSERT_TRUE(reader->Acknowledge(batch->source_id, 9).ok());
  const std::string cursor = *platform::Fs().Read(Options().directory + "/cursor");
  std::filesystem::remove_all(Options().directory);
  auto writer = Writer(Options());
  std::ofstream(Options().directory + "/cursor") << cursor;
  Write(*writer, 1, 3);
  auto fresh = Reader();
  auto first = fresh->Next(100, 1 << 20);
  EXPECT_EQ(first->source_id, writer->source_id());
  EXPECT_EQ(first->first_sequence, 1u);
  EXPECT_EQ(first->records.size(), 3u);
}

TEST_F(SpoolTest, KillNineLosesNothingThatWasFlushed) {
  for (int round = 0; round < 5; ++round) {
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto options = Options();
      options.segment_bytes = 20'000;
      auto opened = SpoolWriter::Open(options, clock_, random_);
      if (!opened.ok()) _exit(3);
      for (;;) {
        const auto sequence = (*opened)->Append(Record(static_cast<int64_t>(0), 300));
        if (!sequence.ok() || !(*opened)->Flush().ok()) _exit(4);
        const uint64_t flushed = *sequence;
        if (write(out[1], &flushed, sizeof flushed) != sizeof flushed) _exit(5);
      }
    }
    close(out[1]);
    uint64_t last = 0;
    uint64_t value = 0;
    for (int n = 0; n < 200 + 37 * round; ++n)
      if (read(out[0], &value, sizeof value) == sizeof value) last = value;
    kill(child, SIGKILL);
    while (read(out[0], &value, sizeof value) == sizeof value) last = value;
    close(out[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    auto reader = Reader();
    uint64_t seen = 0;
    for (;;) {
      auto batch = reader->Next(1000, 1 << 20);
      if (batch->empty()) break;
      seen = batch->last_sequence();
    }
    EXPECT_GE(seen, last);
    EXPECT_EQ(reader->stats().lost_records, 0u);
    EXPECT_EQ(reader->stats().damaged_frames, 0u);
  }
}

}  // namespace
}  // namespace expanse::collect
