// SPDX-License-Identifier: Apache-2.0
// Damage of the SQLite file and its log: found, named, repaired, and what it costs.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "damage.h"
#include "plane_load.h"
#include "storage/relational/open_migrated.h"
#include "storage/relational/sqlite/repair.h"

namespace expanse::faults {
namespace {

using storage::DataMigrations;
using storage::OpenMigrated;

// Every row of the tables that acknowledged records are kept in, as text.
using Content = std::map<std::string, std::multiset<std::string>>;

std::string AsText(const storage::Value& value) {
  const auto& v = value.variant();
  if (const auto* i = std::get_if<int64_t>(&v)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&v)) return std::to_string(*d);
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  if (const auto* b = std::get_if<storage::Blob>(&v)) return b->bytes;
  return "null";
}

Result<Content> ReadContent(storage::Database& database) {
  Content content;
  for (const char* table : {"executions", "execution_facts", "run_fragments", "execution_aliases",
                            "log_tails", "ingest_sources"}) {
    EXPANSE_TRY(const auto rows, database.Query(std::string("SELECT * FROM ") + table));
    for (const storage::Row row : rows) {
      std::string text;
      for (size_t i = 0; i < rows.columns().size(); ++i) text += AsText(row.Cell(i)) + "|";
      content[table].insert(text);
    }
  }
  return content;
}

class DatabaseDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<Sender> senders{Sender(0)};
    Server server(dir_.path() + "/plane");
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(senders[0].SendOnce(server.url()));
    server.Kill();
    good_ = dir_.path() + "/good";
    std::filesystem::create_directories(good_);
    for (const char* name : {"data.db", "data.db-wal", "data.db.page1"})
      if (platform::Fs().Exists(dir_.path() + "/plane/" + name))
        std::filesystem::copy(dir_.path() + "/plane/" + std::string(name), good_);
    bad_ = dir_.path() + "/bad";
  }
  // Log and file as one: what a plane that stopped in order leaves.
  void Checkpoint() {
    auto database = OpenMigrated(good_ + "/data.db", DataMigrations()).value();
    want_ = ReadContent(*database).value();
    database.reset();
    std::filesystem::remove(good_ + "/data.db-wal");
    std::filesystem::remove(good_ + "/data.db-shm");
  }

  platform::TempDir dir_;
  std::string good_, bad_;
  Content want_;
};

TEST_F(DatabaseDamageTest, OpensAgainByItselfAndKeepsWhatCanBeRead) {
  Checkpoint();
  const int rounds = Rounds(25);
  Damager damager(3);
  int64_t lost_of_flips = 0, most_of_a_flip = 0, flips = 0, unseen = 0, unseen_harm = 0,
          refused = 0;
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    const std::string what = damager.Damage(bad_ + "/data.db");
    auto opened = OpenMigrated(bad_ + "/data.db", DataMigrations());
    if (!opened.ok()) {
      // Nothing left to read: only a file that is cut to less than its first pages.
      EXPECT_TRUE(damager.is_cut()) << what << ": " << opened.error().message();
      EXPECT_EQ(opened.error().code(), Code::kDataLoss) << what;
      ++refused;
      continue;
    }
    const auto got = ReadContent(**opened);
    ASSERT_TRUE(got.ok()) << what << ": " << got.error().message();
    bool repaired = false;
    for (const auto& name : FilesBelow(bad_))
      repaired = repaired || name.find(".damaged-") != std::string::npos;
    int64_t lost = 0;
    for (const auto& [table, rows] : want_)
      for (const auto& row : rows) {
        const auto it = got->find(table);
        lost += it == got->end() || !it->second.contains(row) ? 1 : 0;
      }
    if (!repaired) {
      ++unseen;
      unseen_harm += lost > 0 ? 1 : 0;
      // SQLite has no checksum of its pages: a flip inside of a value changes that value alone.
      EXPECT_LE(lost, 1) << what;
    }
    if (!damager.is_cut()) {
      ++flips;
      lost_of_flips += lost;
      most_of_a_flip = std::max(most_of_a_flip, lost);
    }
    // It can be written again.
    ASSERT_TRUE((*opened)->Execute("UPDATE ingest_sources SET last_push_ms = 1").ok()) << what;
    ASSERT_TRUE((*opened)->CheckIntegrity().ok()) << what;
  }
  int64_t rows = 0;
  for (const auto& [table, all] : want_) rows += static_cast<int64_t>(all.size());
  std::printf(
      "%d rounds (%lld flips), %lld rows: flips cost %.2f rows in the mean and %lld at most; not "
      "seen by SQLite %lld, of which %lld changed one value; cut files that hold nothing %lld\n",
      rounds, static_cast<long long>(flips), static_cast<long long>(rows),
      flips > 0 ? static_cast<double>(lost_of_flips) / static_cast<double>(flips) : 0.0,
      static_cast<long long>(most_of_a_flip), static_cast<long long>(unseen),
      static_cast<long long>(unseen_harm), static_cast<long long>(refused));
}

TEST_F(DatabaseDamageTest, ADamagedLogIsNamedAndWhatCameBeforeIsKept) {
  ASSERT_TRUE(platform::Fs().Exists(good_ + "/data.db-wal"));
  const auto whole = storage::sqlite::InspectLog(*platform::Fs().Read(good_ + "/data.db-wal"));
  EXPECT_GT(whole.whole_frames, 10);
  EXPECT_EQ(whole.lost_frames, 0);
  const int rounds = Rounds(15);
  Damager damager(4);
  int named = 0, flips = 0;
  for (int round = 0; round < rounds; ++round) {
    CopyTree(good_, bad_);
    const std::string what = damager.Damage(bad_ + "/data.db-wal");
    const auto found = storage::sqlite::InspectLog(
        platform::Fs().Read(bad_ + "/data.db-wal").value_or(std::string()));
    if (!damager.is_cut()) {
      ++flips;
      named += found.lost_frames > 0 ? 1 : 0;
    }
    auto opened = OpenMigrated(bad_ + "/data.db", DataMigrations());
    ASSERT_TRUE(opened.ok()) << what << ": " << opened.error().message();
    ASSERT_TRUE((*opened)->CheckIntegrity().ok()) << what;
    ASSERT_TRUE(ReadContent(**opened).ok()) << what;
  }
  std::printf("log: %d of %d flips named\n", named, flips);
  EXPECT_GE(named, flips - 1 - rounds / 20);  // a flip in bytes that nobody reads any more
}

TEST_F(DatabaseDamageTest, DamageThatAStatementRunsIntoIsRepairedWhileThePlaneRuns) {
  Checkpoint();
  CopyTree(good_, bad_);
  auto database = OpenMigrated(bad_ + "/data.db", DataMigrations()).value();
  // A page in the middle becomes unreadable under the running program.
  {
    std::fstream file(bad_ + "/data.db", std::ios::binary | std::ios::in | std::ios::out);
    const auto pages = static_cast<int64_t>(std::filesystem::file_size(bad_ + "/data.db") / 4096);
    file.seekp(pages / 2 * 4096);
    file << std::string(4096, '\x5a');
  }
  (void)database->CheckIntegrity();  // its finding is the start of the repair
  const auto got = ReadContent(*database);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(database->CheckIntegrity().ok());
}

TEST_F(DatabaseDamageTest, NoRepairWhileAnotherProcessHasTheFileOpen) {
  Checkpoint();
  CopyTree(good_, bad_);
  const auto first = OpenMigrated(bad_ + "/data.db", DataMigrations()).value();
  std::fstream file(bad_ + "/data.db", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(4096 * 5);
  file << std::string(4096, '\x5a');
  file.close();
  const auto second = OpenMigrated(bad_ + "/data.db", DataMigrations());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace expanse::faults
