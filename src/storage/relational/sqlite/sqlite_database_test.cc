// SPDX-License-Identifier: Apache-2.0
// What is particular to the SQLite file: mode, durability settings, damage, a full disk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "platform/fs/fs.h"
#include "storage/relational/database.h"

namespace expanse::storage {
namespace {

std::unique_ptr<Database> MustOpen(const std::string& path) {
  auto opened = Database::Open("sqlite:" + path);
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return std::move(opened).value();
}

TEST(SqliteDatabase, IsReadableByItsOwnerOnly) {
  const platform::TempDir directory;
  const auto db = MustOpen(directory.path() + "/t.db");
  ASSERT_TRUE(db->Execute("CREATE TABLE a (x BIGINT)").ok());
  for (const char* name : {"/t.db", "/t.db-wal"}) {
    struct stat info {};
    ASSERT_EQ(stat((directory.path() + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U) << name;
  }
}

TEST(SqliteDatabase, FsyncsEachCommit) {
  const platform::TempDir directory;
  const auto db = MustOpen(directory.path() + "/t.db");
  EXPECT_EQ(db->Query("PRAGMA synchronous").value()[0].Int64(0), 2);
  EXPECT_EQ(db->Query("PRAGMA journal_mode").value()[0].Text(0), "wal");
  EXPECT_EQ(db->Query("PRAGMA foreign_keys").value()[0].Int64(0), 1);
}

TEST(SqliteDatabase, KeepsCommittedRowsWhenOnlyTheFilesSurvive) {
  const platform::TempDir directory;
  const platform::TempDir copy;
  const platform::Fs fs;
  const auto db = MustOpen(directory.path() + "/t.db");
  ASSERT_TRUE(db->Execute("CREATE TABLE a (x BIGINT)").ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(db->Execute("INSERT INTO a (x) VALUES ($1)", {i}).ok());
    // As after kill -9: the files as they are, without the process's shared memory.
    for (const char* name : {"/t.db", "/t.db-wal"})
      ASSERT_TRUE(
          fs.WriteAtomic(copy.path() + name, fs.Read(directory.path() + name).value(), 0600).ok());
    const auto after = MustOpen(copy.path() + "/t.db");
    ASSERT_EQ(after->Query("SELECT COUNT(*) FROM a").value()[0].Int64(0), i + 1);
    ASSERT_TRUE(after->CheckIntegrity().ok());
  }
}

TEST(SqliteDatabase, CallsAFileThatIsNoDatabaseDataLoss) {
  const platform::TempDir directory;
  const platform::Fs fs;
  const std::string path = directory.path() + "/t.db";
  ASSERT_TRUE(fs.WriteAtomic(path, std::string(8192, 'x'), 0600).ok());
  const auto opened = Database::Open("sqlite:" + path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::kDataLoss) << opened.error().message();
  EXPECT_NE(opened.error().message().find(path), std::string::npos);
}

TEST(SqliteDatabase, FindsDamagedPages) {
  const platform::TempDir directory;
  const platform::Fs fs;
  const std::string path = directory.path() + "/t.db";
  {
    const auto db = MustOpen(path);
    ASSERT_TRUE(db->Execute("CREATE TABLE a (x BIGINT, y TEXT)").ok());
    ASSERT_TRUE(db->Write([](Transaction& t) -> Status {
                    for (int i = 0; i < 2000; ++i)
                      EXPANSE_CHECK_OK(t.Execute("INSERT INTO a (x, y) VALUES ($1, $2)",
                                                 {i, std::string(100, 'y')}));
                    return {};
                  }).ok());
  }
  std::string bytes = fs.Read(path).value();
  for (size_t i = 40000; i < 60000; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  ASSERT_TRUE(fs.WriteAtomic(path, bytes, 0600).ok());
  const auto db = MustOpen(path);
  const auto status = db->CheckIntegrity();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kDataLoss);
  EXPECT_EQ(db->Query("SELECT SUM(LENGTH(y)) FROM a").error().code(), Code::kDataLoss);
}

TEST(SqliteDatabase, ReportsAFullStoreAndGoesOnAfterwards) {
  const platform::TempDir directory;
  const auto db = MustOpen(directory.path() + "/t.db");
  ASSERT_TRUE(db->Execute("CREATE TABLE a (y TEXT)").ok());
  // The engine's own page limit answers as a full disk does (SQLITE_FULL).
  const auto filled = db->Write([](Transaction& t) -> Status {
    EXPANSE_CHECK_OK(t.Query("PRAGMA max_page_count=64"));
    for (int i = 0; i < 100; ++i)
      EXPANSE_CHECK_OK(t.Execute("INSERT INTO a (y) VALUES ($1)", {std::string(10000, 'y')}));
    return {};
  });
  ASSERT_FALSE(filled.ok());
  EXPECT_EQ(filled.error().code(), Code::kResourceExhausted) << filled.error().message();
  ASSERT_TRUE(db->Execute("INSERT INTO a (y) VALUES ('small')").ok());
  EXPECT_EQ(db->Query("SELECT COUNT(*) FROM a").value()[0].Int64(0), 1);
}

TEST(SqliteDatabase, NamesADirectoryThatIsMissing) {
  const auto opened = Database::Open("sqlite:/nonexistent/place/t.db");
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message().find("/nonexistent/place/t.db"), std::string::npos);
}

}  // namespace
}  // namespace expanse::storage
