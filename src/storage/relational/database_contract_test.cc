// SPDX-License-Identifier: Apache-2.0
// What every relational backend has to do. A backend joins by a line in kBackends.
#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "platform/fs/fs.h"
#include "storage/relational/database.h"
#include "storage/relational/migrate.h"

namespace expanse::storage {
namespace {

struct Backend {
  const char* name;
  std::string (*url)(const platform::TempDir& directory);
};

const Backend kBackends[] = {
    {"SqliteFile", [](const platform::TempDir& d) { return "sqlite:" + d.path() + "/t.db"; }},
    {"SqliteMemory", [](const platform::TempDir&) { return std::string("sqlite::memory:"); }},
};

class DatabaseContract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto opened = Database::Open(GetParam().url(directory_));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    db_ = std::move(opened).value();
    Do("CREATE TABLE person (org_id TEXT NOT NULL, id BIGINT NOT NULL, name TEXT, weight DOUBLE "
       "PRECISION, photo BYTEA, active BIGINT NOT NULL DEFAULT 1, PRIMARY KEY (org_id, id))");
    Do("CREATE TABLE pet (person_id BIGINT NOT NULL, org_id TEXT NOT NULL, name TEXT NOT NULL "
       "UNIQUE,"
       " FOREIGN KEY (org_id, person_id) REFERENCES person (org_id, id) ON DELETE CASCADE)");
  }
  int64_t Do(std::string_view sql, std::initializer_list<Value> params = {}) {
    auto result = db_->Execute(sql, params);
    EXPECT_TRUE(result.ok()) << result.error().message();
    return result.value_or(-1);
  }
  Rows Get(std::string_view sql, std::initializer_list<Value> params = {}) {
    auto result = db_->Query(sql, params);
    EXPECT_TRUE(result.ok()) << result.error().message();
    return result.ok() ? *result : Rows({});
  }
  int64_t Count() { return Get("SELECT COUNT(*) FROM person")[0].Int64(0); }

  platform::TempDir directory_;
  std::unique_ptr<Database> db_;
};

TEST_P(DatabaseContract, KeepsEveryTypeExactly) {
  const std::string bytes("\x00\xff\x80 1", 5);
  Do("INSERT INTO person (org_id, id, name, weight, photo) VALUES ($1, $2, $3, $4, $5)",
     {"o", std::numeric_limits<int64_t>::min(), "Zoë \xF0\x9F\x90\x88", 0.1, Blob{bytes}});
  Do("INSERT INTO person (org_id, id, name, weight, photo) VALUES ($1, $2, $3, $4, $5)",
     {"o", std::numeric_limits<int64_t>::max(), "", 3.0, Blob{"12"}});
  Do("INSERT INTO person (org_id, id, name, active) VALUES ($1, $2, $3, $4)",
     {"o", 0, std::nullopt, false});
  const Rows rows = Get("SELECT id, name, weight, photo, active FROM person ORDER BY id");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].Int64("id"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(rows[0].Text("name"), "Zoë \xF0\x9F\x90\x88");
  EXPECT_EQ(rows[0].Double("weight"), 0.1);
  EXPECT_EQ(rows[0].Bytes("photo"), bytes);
  EXPECT_TRUE(rows[0].Bool("active"));
  EXPECT_EQ(rows[1].OptText("name"), std::nullopt);
  EXPECT_EQ(rows[1].OptDouble("weight"), std::nullopt);
  EXPECT_TRUE(rows[1].IsNull("photo"));
  EXPECT_FALSE(rows[1].Bool("active"));
  EXPECT_EQ(rows[2].Int64("id"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(rows[2].Text("name"), "");
  EXPECT_EQ(rows[2].Double("weight"), 3.0);
  EXPECT_EQ(rows[2].Bytes("photo"), "12");
}

TEST_P(DatabaseContract, TakesAParameterMoreThanOnceAndInAnyOrder) {
  Do("INSERT INTO person (org_id, id, name) VALUES ($2, $1, $2)", {7, "x"});
  const Rows rows =
      Get("SELECT id FROM person WHERE name = $1 AND org_id = $1 AND id < $2", {"x", 8});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].Int64(0), 7);
}

TEST_P(DatabaseContract, RefusesTextThatIsNotUtf8OrHoldsNul) {
  for (const std::string& bad : {std::string("a\0b", 3), std::string("\xff")}) {
    auto result =
        db_->Execute("INSERT INTO person (org_id, id, name) VALUES ($1, $2, $3)", {"o", 1, bad});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  }
}

TEST_P(DatabaseContract, NamesKindsOfErrors) {
  Do("INSERT INTO person (org_id, id) VALUES ($1, $2)", {"o", 1});
  Do("INSERT INTO pet (org_id, person_id, name) VALUES ($1, $2, $3)", {"o", 1, "Rex"});
  const auto code = [&](std::string_view sql, std::initializer_list<Value> params) {
    auto result = db_->Execute(sql, params);
    return result.ok() ? Code::kUnknown : result.error().code();
  };
  EXPECT_EQ(code("INSERT INTO person (org_id, id) VALUES ($1, $2)", {"o", 1}),
            Code::kAlreadyExists);
  EXPECT_EQ(code("INSERT INTO pet (org_id, person_id, name) VALUES ($1, $2, $3)", {"o", 1, "Rex"}),
            Code::kAlreadyExists);
  EXPECT_EQ(code("INSERT INTO pet (org_id, person_id, name) VALUES ($1, $2, $3)", {"o", 2, "Tom"}),
            Code::kFailedPrecondition);
  EXPECT_EQ(code("INSERT INTO person (org_id, id) VALUES ($1, $2)", {std::nullopt, 1}),
            Code::kFailedPrecondition);
  EXPECT_EQ(code("INSERT INTO nothing (a) VALUES ($1)", {1}), Code::kInternal);
  EXPECT_EQ(code("UPDATE person SET name = $1", {"a", "b"}), Code::kInternal);
  EXPECT_EQ(code("UPDATE person SET name = 'a'; DELETE FROM person", {}), Code::kInternal);
}

TEST_P(DatabaseContract, CountsChangedRowsAndReturnsThem) {
  for (int i = 0; i < 5; ++i)
    Do("INSERT INTO person (org_id, id, weight) VALUES ($1, $2, $3)", {"o", i, i * 1.5});
  EXPECT_EQ(Do("UPDATE person SET name = 'x' WHERE id >= $1", {2}), 3);
  EXPECT_EQ(
      Do("INSERT INTO person (org_id, id) VALUES ('o', 1) ON CONFLICT (org_id, id) DO NOTHING"), 0);
  auto returned = db_->Write([&](Transaction& t) {
    return t.Query(
        "INSERT INTO person (org_id, id, name) VALUES ('o', 1, 'new') ON CONFLICT (org_id, id) "
        "DO UPDATE SET name = excluded.name RETURNING id, name, weight");
  });
  ASSERT_TRUE(returned.ok()) << returned.error().message();
  EXPECT_EQ((*returned)[0].Text("name"), "new");
  EXPECT_EQ((*returned)[0].Double("weight"), 1.5);
  EXPECT_EQ(Do("DELETE FROM person WHERE id > $1", {100}), 0);
}

TEST_P(DatabaseContract, SpeaksTheDocumentedDialect) {
  for (int i = 0; i < 6; ++i)
    Do("INSERT INTO person (org_id, id, name, weight) VALUES ($1, $2, $3, $4)",
       {i < 3 ? "a" : "b", i, i == 4 ? Value() : Value("N" + std::to_string(i)), i});
  EXPECT_EQ(Get("SELECT id FROM person WHERE (org_id, id) < ($1, $2) ORDER BY org_id DESC, id DESC "
                "LIMIT $3 OFFSET $4",
                {"b", 4, 2, 1})[0]
                .Int64(0),
            2);
  EXPECT_EQ(Get("SELECT id FROM person ORDER BY name DESC NULLS LAST LIMIT 1")[0].Int64(0), 5);
  EXPECT_TRUE(Get("SELECT id FROM person WHERE name LIKE 'n%'").empty());
  EXPECT_EQ(Get("SELECT COUNT(*) FILTER (WHERE name IS NOT DISTINCT FROM $1) FROM person",
                {std::nullopt})[0]
                .Int64(0),
            1);
  EXPECT_EQ(Get("WITH heavy AS (SELECT * FROM person WHERE weight > 2) SELECT org_id || '-' || "
                "CAST(MAX(id) AS TEXT), 7 / 2 FROM heavy GROUP BY org_id ORDER BY org_id DESC")[0]
                .Text(0),
            "b-5");
  EXPECT_EQ(
      Get("SELECT id, ROW_NUMBER() OVER (PARTITION BY org_id ORDER BY id DESC) AS n FROM person "
          "ORDER BY n, id")[0]
          .Int64("id"),
      2);
  EXPECT_EQ(Get("SELECT COUNT(*) AS n FROM person WHERE CAST($1 AS TEXT) IS NULL OR name = $1",
                {std::nullopt})[0]
                .Int64("n"),
            6);
  EXPECT_EQ(Do("UPDATE person SET name = pet.name FROM pet WHERE pet.person_id = person.id"), 0);
}

TEST_P(DatabaseContract, CascadesDeletes) {
  Do("INSERT INTO person (org_id, id) VALUES ('o', 1)");
  Do("INSERT INTO pet (org_id, person_id, name) VALUES ('o', 1, 'Rex')");
  Do("DELETE FROM person");
  EXPECT_TRUE(Get("SELECT name FROM pet").empty());
}

TEST_P(DatabaseContract, RollsBackWhatWasNotCommitted) {
  {
    auto transaction = db_->Begin(Access::kReadWrite);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE((*transaction)->Execute("INSERT INTO person (org_id, id) VALUES ('o', 1)").ok());
  }
  EXPECT_EQ(Count(), 0);
  auto failed = db_->Write([](Transaction& t) -> Status {
    EXPANSE_CHECK_OK(t.Execute("INSERT INTO person (org_id, id) VALUES ('o', 1)"));
    return Error(Code::kAborted, "changed my mind");
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(Count(), 0);
}

TEST_P(DatabaseContract, GivesATransactionUpAtItsFirstError) {
  auto begun = db_->Begin(Access::kReadWrite);
  ASSERT_TRUE(begun.ok());
  Transaction& t = **begun;
  ASSERT_TRUE(t.Execute("INSERT INTO person (org_id, id) VALUES ('o', 1)").ok());
  ASSERT_FALSE(t.Execute("INSERT INTO person (org_id, id) VALUES ('o', 1)").ok());
  EXPECT_EQ(t.Query("SELECT 1").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(t.Commit().error().code(), Code::kFailedPrecondition);
  begun->reset();
  EXPECT_EQ(Count(), 0);
}

TEST_P(DatabaseContract, RefusesWritesInAReadOnlyTransaction) {
  auto begun = db_->Begin(Access::kReadOnly);
  ASSERT_TRUE(begun.ok());
  EXPECT_FALSE((*begun)->Execute("INSERT INTO person (org_id, id) VALUES ('o', 1)").ok());
}

TEST_P(DatabaseContract, ReadsOneSnapshotWhileOthersWrite) {
  auto reader = db_->Begin(Access::kReadOnly);
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ((*reader)->Query("SELECT COUNT(*) FROM person").value()[0].Int64(0), 0);
  Do("INSERT INTO person (org_id, id) VALUES ('o', 1)");
  EXPECT_EQ((*reader)->Query("SELECT COUNT(*) FROM person").value()[0].Int64(0), 0);
  EXPECT_EQ(Count(), 1);
}

TEST_P(DatabaseContract, LosesNoIncrementOfConcurrentWriters) {
  Do("INSERT INTO person (org_id, id, weight) VALUES ('o', 1, 0)");
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto status = db_->Write([](Transaction& t) -> Status {
          EXPANSE_TRY(const auto rows, t.Query("SELECT weight FROM person WHERE id = 1"));
          EXPANSE_CHECK_OK(t.Execute("UPDATE person SET weight = $1", {rows[0].Double(0) + 1}));
          return {};
        });
        if (!status.ok()) ++failures;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Get("SELECT weight FROM person")[0].Double(0), 100);
}

TEST_P(DatabaseContract, AppliesMigrationsOnceAndInOrder) {
  const Migration v1[] = {{"0001_a", "CREATE TABLE a (x BIGINT); CREATE INDEX a_x ON a (x);"}};
  ASSERT_TRUE(Migrate(*db_, v1).ok());
  ASSERT_TRUE(Migrate(*db_, v1).ok());
  Do("INSERT INTO a (x) VALUES (1)");
  const Migration v2[] = {v1[0],
                          {"0002_b", "ALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT '-'"}};
  ASSERT_TRUE(Migrate(*db_, v2).ok());
  EXPECT_EQ(Get("SELECT y FROM a")[0].Text(0), "-");
  // An older program on the newer database.
  const auto older = Migrate(*db_, v1);
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(older.error().message().find("0002_b"), std::string::npos);
  // The same name with another text.
  const Migration edited[] = {v1[0], {"0002_b", "ALTER TABLE a ADD COLUMN z TEXT"}};
  EXPECT_EQ(Migrate(*db_, edited).error().code(), Code::kFailedPrecondition);
  // One slipped in before what is applied.
  const Migration early[] = {v1[0], {"0001_z", "SELECT 1"}, v2[1]};
  EXPECT_EQ(Migrate(*db_, early).error().code(), Code::kFailedPrecondition);
}

TEST_P(DatabaseContract, LeavesNothingOfAMigrationThatFails) {
  const Migration bad[] = {{"0001_a", "CREATE TABLE a (x BIGINT); CREATE TABLE a (x BIGINT);"}};
  EXPECT_FALSE(Migrate(*db_, bad).ok());
  const Migration good[] = {{"0001_a", "CREATE TABLE a (x BIGINT)"}};
  EXPECT_TRUE(Migrate(*db_, good).ok());
}

TEST_P(DatabaseContract, AppliesTheMigrationsOfEveryPlane) {
  for (const auto migrations : {ControlMigrations(), DataMigrations(), IntelligenceMigrations()}) {
    const platform::TempDir directory;
    auto database = Database::Open(GetParam().url(directory));
    ASSERT_TRUE(database.ok());
    const auto status = Migrate(**database, migrations);
    EXPECT_TRUE(status.ok()) << status.error().message();
    EXPECT_TRUE((*database)->CheckIntegrity().ok());
  }
}

TEST_P(DatabaseContract, BacksUpWhileATransactionIsOpen) {
  Do("INSERT INTO person (org_id, id, name) VALUES ('o', 1, 'kept')");
  auto open = db_->Begin(Access::kReadWrite);
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE((*open)->Execute("INSERT INTO person (org_id, id) VALUES ('o', 2)").ok());
  const std::string copy = directory_.path() + "/backup.db";
  const auto status = db_->BackupTo(copy);
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(db_->BackupTo(copy).error().code(), Code::kAlreadyExists);
  auto restored = Database::Open("sqlite:" + copy);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ((*restored)->Query("SELECT name FROM person").value().size(), 1U);
  EXPECT_TRUE((*restored)->CheckIntegrity().ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, DatabaseContract, testing::ValuesIn(kBackends),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(DatabaseUrl, IsRefusedWithoutShowingAPassword) {
  const auto opened = Database::Open("mysql://root:secret@host/db");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(opened.error().message().find("secret"), std::string::npos);
  EXPECT_FALSE(Database::Open("sqlite:relative.db").ok());
}

}  // namespace
}  // namespace expanse::storage
