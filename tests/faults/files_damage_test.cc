// SPDX-License-Identifier: Apache-2.0
// Damage of spools, series, blobs and the run table: what is answered is right, what is missing is
// named, and the program goes on.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "collect/core/spool.h"
#include "collect/core/spool_files.h"
#include "collect/slurm/run_table.h"
#include "damage.h"
#include "plane_load.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/blob/blob_store.h"
#include "storage/series/embedded_store.h"

namespace expanse::faults {
namespace {

using collect::SpoolOptions;
using collect::SpoolReader;
using collect::SpoolWriter;

class FilesDamageTest : public testing::Test {
 protected:
  static data::v1::Record Record(int64_t n) {
    data::v1::Record record;
    record.set_observed_time_ms(n);
    record.mutable_facts()->set_step_id(std::string(static_cast<size_t>(n % 97), 'x'));
    return record;
  }

  platform::TempDir dir_;
  std::string good_ = dir_.path() + "/good", bad_ = dir_.path() + "/bad";
  platform::FakeClock clock_{FromUnixMillis(1'800'000'000'000)};
  platform::SystemRandom random_;
};

TEST_F(FilesDamageTest, ASpoolLosesAtMostTheDamagedRecordAndCountsIt) {
  constexpr int64_t kRecords = 300, kAcknowledged = 60;
  std::string source;
  {
    SpoolOptions options;
    options.directory = good_;
    options.segment_bytes = 4000;
    auto writer = SpoolWriter::Open(options, clock_, random_).value();
    source = writer->source_id();
    for (int64_t n = 1; n <= kRecords; ++n) {
      ASSERT_TRUE(writer->Append(Record(n)).ok());
      ASSERT_TRUE(writer->Flush().ok());
    }
    auto reader = SpoolReader::Open(good_).value();
    ASSERT_EQ(reader->Next(kAcknowledged, 1 << 20)->records.size(), size_t{kAcknowledged});
    ASSERT_TRUE(reader->Acknowledge(source, kAcknowledged).ok());
  }
  const int rounds = Rounds(100);
  Damager damager(11);
  int64_t lost_by_flips = 0;
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    std::filesystem::remove(bad_ + "/writer.lock");
    const auto files = FilesBelow(bad_);
    const std::string what = damager.Damage(files[damager.Pick(files.size())]);
    // A writer comes first, as after a crash, and must neither fail nor repeat a sequence.
    SpoolOptions options;
    options.directory = bad_;
    auto writer = SpoolWriter::Open(options, clock_, random_);
    ASSERT_TRUE(writer.ok()) << what << writer.error().message();
    EXPECT_EQ((*writer)->source_id(), source) << what;
    const uint64_t next = (*writer)->next_sequence();
    ASSERT_TRUE((*writer)->Append(Record(1'000'000)).ok() && (*writer)->Flush().ok());
    auto reader = SpoolReader::Open(bad_).value();
    std::vector<int64_t> seen;
    uint64_t last = 0;
    for (;;) {
      const auto batch = reader->Next(50, 1 << 20);
      ASSERT_TRUE(batch.ok()) << what;
      if (batch->empty()) break;
      ASSERT_GT(batch->first_sequence, last) << what;
      for (size_t i = 0; i < batch->records.size(); ++i) {
        const auto time = batch->records[i].observed_time_ms();
        const uint64_t sequence = batch->first_sequence + i;
        // A record is what was written under its sequence, or it does not come.
        ASSERT_EQ(time, sequence == next ? 1'000'000 : static_cast<int64_t>(sequence)) << what;
        seen.push_back(time);
      }
      last = batch->last_sequence();
    }
    int64_t lost = 0;
    const std::set<int64_t> all(seen.begin(), seen.end());
    for (int64_t n = kAcknowledged + 1; n <= kRecords; ++n) lost += all.contains(n) ? 0 : 1;
    EXPECT_TRUE(all.contains(1'000'000)) << what;
    if (!damager.is_cut()) {
      EXPECT_LE(lost, 1) << what;
      lost_by_flips += lost;
    }
    // A sealed segment or header that lost something says so; the open end of a log cannot.
    if (lost > 0 && what.find(".open") == std::string::npos) {
      EXPECT_GT(reader->stats().damaged_frames + reader->stats().lost_records, 0u) << what;
    }
  }
  std::printf("spool: %d rounds, flips lost %lld records\n", rounds,
              static_cast<long long>(lost_by_flips));
}

TEST_F(FilesDamageTest, ASeriesStoreAnswersRightOrNamesWhatIsMissing) {
  constexpr int kSeries = 40, kTimes = 60;
  const auto key_of = [](int s) {
    storage::SeriesKey key;
    key.org = OrgId("o");
    key.execution = ExecutionId("e" + std::to_string(s / 4));
    key.metric = s % 2 == 0 ? "cpu" : "memory";
    key.source = "cgroup";
    key.step_id = std::to_string(s % 4);
    return key;
  };
  const auto value_of = [](int s, int64_t t) { return static_cast<double>(s * 1000 + t % 17) / 8; };
  {
    storage::EmbeddedStoreOptions options;
    options.directory = good_;
    options.head_samples = kSeries * 20;  // two sealed files and a log
    auto store = storage::OpenEmbeddedStore(options).value();
    for (int64_t t = 1; t <= kTimes; ++t) {
      std::vector<storage::SeriesBlock> batch;
      std::vector<double> values(kSeries);
      for (int s = 0; s < kSeries; ++s) {
        values[static_cast<size_t>(s)] = value_of(s, t);
        batch.push_back({key_of(s), {&t, 1}, {&values[static_cast<size_t>(s)], 1}});
      }
      ASSERT_TRUE(store->Append(batch, "b").ok());
      if (t == 45) {
        ASSERT_TRUE(store->Flush().ok());
      }
    }
  }
  const int rounds = Rounds(60);
  Damager damager(12);
  int64_t lost_of_flips = 0, most = 0, silent_tails = 0;
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    const auto files = FilesBelow(bad_);
    const std::string what = damager.Damage(files[damager.Pick(files.size())]);
    storage::EmbeddedStoreOptions options;
    options.directory = bad_;
    auto store = storage::OpenEmbeddedStore(options);
    ASSERT_TRUE(store.ok()) << what << store.error().message();
    storage::SeriesSelector selector;
    selector.org = OrgId("o");
    const auto answer = (*store)->Read(selector, {}, 1'000'000);
    ASSERT_TRUE(answer.ok()) << what;
    int64_t found = 0;
    std::map<storage::SeriesKey, int> numbers;
    for (int s = 0; s < kSeries; ++s) numbers[key_of(s)] = s;
    for (const auto& series : answer->series) {
      ASSERT_TRUE(numbers.contains(series.key)) << what;
      for (const auto& sample : series.samples) {
        ASSERT_EQ(sample.value, value_of(numbers[series.key], sample.timestamp_ms)) << what;
        ++found;
      }
    }
    const int64_t lost = int64_t{kSeries} * kTimes - found;
    ASSERT_GE(lost, 0) << what;
    if (!damager.is_cut()) {
      lost_of_flips += lost;
      most = std::max(most, lost);
    }
    if (lost > 0 && answer->damage.empty() && (*store)->Stats().damaged_parts == 0) {
      // The end of a log that was cut or flipped looks like a write that a crash cut off; logged.
      EXPECT_NE(what.find(".wal"), std::string::npos) << what;
      ++silent_tails;
    }
    // It takes and seals samples again.
    const int64_t t = 1'000;
    const double value = 1;
    const storage::SeriesBlock block{key_of(0), {&t, 1}, {&value, 1}};
    ASSERT_TRUE((*store)->Append({&block, 1}, "b").ok()) << what;
    ASSERT_TRUE((*store)->Flush().ok()) << what;
  }
  std::printf(
      "series: %d rounds of %d samples; flips lost %lld in all, %lld at most; ends of logs taken "
      "for cut writes %lld\n",
      rounds, kSeries * kTimes, static_cast<long long>(lost_of_flips), static_cast<long long>(most),
      static_cast<long long>(silent_tails));
}

TEST_F(FilesDamageTest, ADamagedBlobIsNamedNeverAnsweredAndReplacedWhenItComesAgain) {
  auto store = storage::BlobStore::Open("file:" + good_).value();
  std::vector<std::pair<storage::BlobKey, std::string>> blobs;
  for (int i = 0; i < 10; ++i) {
    const std::string bytes(static_cast<size_t>(i) * 500 + 20, static_cast<char>('a' + i));
    blobs.emplace_back(store
                           ->Put(OrgId("01940000-0000-7000-8000-0000000000a0"), "source",
                                 bytes + std::to_string(i))
                           .value(),
                       bytes + std::to_string(i));
  }
  const int rounds = Rounds(100);
  Damager damager(13);
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    const auto files = FilesBelow(bad_);
    const std::string file = files[damager.Pick(files.size())];
    const std::string what = damager.Damage(file);
    auto damaged = storage::BlobStore::Open("file:" + bad_).value();
    for (const auto& [key, bytes] : blobs) {
      const bool is_it = file.find(key.sha256) != std::string::npos;
      const auto got = damaged->Get(key, 1 << 20);
      if (got.ok()) {
        ASSERT_EQ(*got, bytes) << what;  // zstd has bits that mean nothing
        continue;
      }
      ASSERT_TRUE(is_it) << what;
      EXPECT_NE(got.error().code(), Code::kNotFound) << what;
      EXPECT_NE(got.error().message().find(key.sha256), std::string::npos) << what;
      ASSERT_TRUE(damaged->Put(key.org, key.kind, bytes).ok()) << what;
      ASSERT_EQ(damaged->Get(key, 1 << 20).value_or(""), bytes) << what;
    }
  }
}

TEST_F(FilesDamageTest, ADamagedRunTableIsRefusedAsAWholeNeverReadWrong) {
  collect::slurm::RunTable table;
  table.sacct_cursor = 1'796'000'000;
  for (int64_t job = 1; job <= 50; ++job) {
    collect::slurm::RunState run;
    run.id.job_id = job;
    run.id.submit = 1'795'000'000 + job;
    run.name = "train";
    run.sent["sacct"] = "0123456789abcdef";
    table.runs()[run.id] = run;
  }
  const platform::Fs fs;
  ASSERT_TRUE(fs.MakeDirs(good_).ok());
  ASSERT_TRUE(table.Save(fs, good_ + "/runs.json").ok());
  const int rounds = Rounds(200);
  Damager damager(14);
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    const std::string what = damager.Damage(bad_ + "/runs.json");
    collect::slurm::RunTable loaded;
    EXPECT_FALSE(loaded.Load(fs, bad_ + "/runs.json").ok()) << what;
  }
  collect::slurm::RunTable loaded;
  ASSERT_TRUE(loaded.Load(fs, good_ + "/runs.json").ok());
  EXPECT_EQ(loaded.runs().size(), 50u);
}

}  // namespace
}  // namespace expanse::faults
