// SPDX-License-Identifier: Apache-2.0
// Data directories that released versions wrote are opened, migrated and read. testdata/PROVENANCE
// says how they were made. A release adds its own; none is ever changed.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "damage.h"
#include "plane_load.h"
#include "storage/backup/backup.h"
#include "storage/relational/open_migrated.h"

namespace expanse::faults {
namespace {

using storage::BackupLayout;

const BackupLayout kData{{"data.db"}, {}, "series", "blobs"};
constexpr int64_t kRecords = 40;

class SchemaTest : public testing::TestWithParam<const char*> {
 protected:
  std::string Fixture(const std::string& plane) const {
    return std::string(EXPANSE_TESTDATA) + "/" + GetParam() + "/" + plane;
  }
  platform::TempDir dir_;
};

TEST_P(SchemaTest, TheDataPlaneHasEveryRecord) {
  const auto restored = storage::Restore(Fixture("data"), kData, dir_.path() + "/data");
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  const Server server(dir_.path() + "/data");
  ASSERT_FALSE(server.url().empty());
  Sender(0).Check(server.url(), kRecords);
}

TEST_P(SchemaTest, ControlAndIntelligenceDatabasesMigrateWithTheirRows) {
  const struct {
    const char* name;
    std::span<const storage::Migration> migrations;
    const char* count;
    int64_t at_least;
  } databases[] = {
      {"control", storage::ControlMigrations(), "SELECT COUNT(*) FROM api_key", 1},
      {"intelligence", storage::IntelligenceMigrations(), "SELECT COUNT(*) FROM schema_migration",
       2},
  };
  for (const auto& one : databases) {
    const std::string file = std::string(one.name) + ".db";
    const auto restored =
        storage::Restore(Fixture(one.name), {{file}, {}, "", ""}, dir_.path() + "/" + one.name);
    ASSERT_TRUE(restored.ok()) << restored.error().message();
    const auto database =
        storage::OpenMigrated(dir_.path() + "/" + one.name + "/" + file, one.migrations);
    ASSERT_TRUE(database.ok()) << database.error().message();
    EXPECT_GE((*database)->Query(one.count).value()[0].Int64(0), one.at_least);
    EXPECT_EQ((*database)->Query("SELECT COUNT(*) FROM schema_migration").value()[0].Int64(0),
              static_cast<int64_t>(one.migrations.size()));
    EXPECT_TRUE((*database)->CheckIntegrity().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, SchemaTest, testing::Values("v0.1"));

// EXPANSE_WRITE_FIXTURE=DIR makes the data plane's fixture of a new release.
TEST(SchemaFixture, Write) {
  const char* to = std::getenv("EXPANSE_WRITE_FIXTURE");
  if (to == nullptr) GTEST_SKIP() << "only with EXPANSE_WRITE_FIXTURE=DIR";
  const platform::TempDir dir;
  Sender sender(0);
  {
    const Server server(dir.path() + "/data");
    while (sender.acknowledged() < kRecords) ASSERT_TRUE(sender.SendOnce(server.url()));
  }
  const auto done = storage::Backup(dir.path() + "/data", kData, to);
  ASSERT_TRUE(done.ok()) << done.error().message();
}

}  // namespace
}  // namespace expanse::faults
