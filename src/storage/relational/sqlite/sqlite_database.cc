// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/sqlite/sqlite_database.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "platform/fs/fs.h"
#include "storage/file.h"
#include "storage/relational/sqlite/connection.h"

namespace expanse::storage::sqlite {
namespace {

constexpr auto kWriterWait = std::chrono::seconds(10);
constexpr size_t kMaxIdleReaders = 16;

class SqliteDatabase;

class SqliteTransaction final : public Transaction {
 public:
  SqliteTransaction(SqliteDatabase& database, std::unique_ptr<Connection> connection, Access access)
      : database_(database), connection_(std::move(connection)), access_(access) {}
  ~SqliteTransaction() override;

  Result<Rows> Query(std::string_view sql, std::span<const Value> params) override {
    return Watch([&] { return connection_->Query(sql, params); });
  }
  Result<int64_t> Execute(std::string_view sql, std::span<const Value> params) override {
    return Watch([&] { return connection_->Execute(sql, params); });
  }
  Status ExecuteScript(std::string_view sql) override {
    return Watch([&] { return connection_->Script(std::string(sql)); });
  }
  Status Commit() override {
    auto status = Watch([&] { return connection_->Script("COMMIT"); });
    done_ = done_ || status.ok();
    return status;
  }

 private:
  // PostgreSQL gives a transaction up at its first error; SQLite would go on with what it has.
  template <typename Step>
  auto Watch(Step step) -> decltype(step()) {
    if (done_ || failed_.has_value())
      return Error(Code::kFailedPrecondition,
                   done_ ? "the transaction is over" : "the transaction failed: " + *failed_);
    auto result = step();
    if (!result.ok()) failed_ = result.error().message();
    return result;
  }

  SqliteDatabase& database_;
  std::unique_ptr<Connection> connection_;
  Access access_;
  bool done_ = false;
  std::optional<std::string> failed_;
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, Durability durability)
      : path_(std::move(path)), durability_(durability) {}

  Status OpenFile() {
    EXPANSE_TRY(writer_, Connection::Open(path_, durability_));
    return {};
  }
  /// The database is a temporary one: its directory goes with it.
  void Keep(std::unique_ptr<platform::TempDir> directory) { directory_ = std::move(directory); }

  Result<std::unique_ptr<Transaction>> Begin(Access access) override {
    EXPANSE_TRY(auto connection, access == Access::kReadWrite ? TakeWriter() : TakeReader());
    auto begun =
        connection->Script(access == Access::kReadWrite ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED");
    if (!begun.ok()) {
      GiveBack(std::move(connection), access);
      return begun.error();
    }
    return std::unique_ptr<Transaction>(
        std::make_unique<SqliteTransaction>(*this, std::move(connection), access));
  }

  Status BackupTo(const std::string& path) override {
    const platform::Fs fs;
    if (fs.Exists(path))
      return Error(Code::kAlreadyExists, path + " exists already; name a new file for the backup");
    const std::string partial = path + ".partial";
    EXPANSE_CHECK_OK(fs.Remove(partial));
    EXPANSE_TRY(auto connection, TakeReader());
    auto copied = connection->CopyTo(partial);
    GiveBack(std::move(connection), Access::kReadOnly);
    EXPANSE_CHECK_OK(copied);
    return PublishFile(partial, path);
  }

  Status CheckIntegrity() override {
    EXPANSE_TRY(auto connection, TakeReader());
    auto rows = connection->Query("PRAGMA integrity_check(10)", {});
    GiveBack(std::move(connection), Access::kReadOnly);
    if (!rows.ok()) return rows.error();
    std::string findings;
    for (const Row row : *rows)
      if (row.Text(0) != "ok") findings += (findings.empty() ? "" : "; ") + row.Text(0);
    if (findings.empty()) return {};
    return Error(Code::kDataLoss, path_ + " is damaged: " + findings);
  }

  std::string Name() const override { return "sqlite:" + path_; }

  void GiveBack(std::unique_ptr<Connection> connection, Access access) {
    const std::lock_guard lock(mutex_);
    if (access == Access::kReadWrite) {
      writer_ = std::move(connection);
      writer_free_.notify_one();
    } else if (idle_.size() < kMaxIdleReaders) {
      idle_.push_back(std::move(connection));
    }
  }

 private:
  // Writers of this process queue here, in place of polling SQLite's lock.
  Result<std::unique_ptr<Connection>> TakeWriter() {
    std::unique_lock lock(mutex_);
    if (!writer_free_.wait_for(lock, kWriterWait, [&] { return writer_ != nullptr; }))
      return Error(Code::kUnavailable, path_ + ": another transaction has been writing for " +
                                           std::to_string(kWriterWait.count()) + " s; try again");
    return std::move(writer_);
  }

  Result<std::unique_ptr<Connection>> TakeReader() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    EXPANSE_TRY(auto connection, Connection::Open(path_, durability_));
    EXPANSE_CHECK_OK(connection->Script("PRAGMA query_only=ON"));
    return connection;
  }

  std::string path_;
  Durability durability_;
  std::unique_ptr<platform::TempDir> directory_;
  std::mutex mutex_;
  std::condition_variable writer_free_;
  std::unique_ptr<Connection> writer_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

SqliteTransaction::~SqliteTransaction() {
  // A failed ROLLBACK means that SQLite has rolled back itself.
  if (connection_->InTransaction()) (void)connection_->Script("ROLLBACK");
  database_.GiveBack(std::move(connection_), access_);
}

}  // namespace

Result<std::unique_ptr<Database>> OpenDatabase(const std::string& path) {
  std::unique_ptr<SqliteDatabase> database;
  if (path == ":memory:") {
    auto directory = std::make_unique<platform::TempDir>();
    database =
        std::make_unique<SqliteDatabase>(directory->path() + "/memory.db", Durability::kNone);
    database->Keep(std::move(directory));
  } else if (path.starts_with('/')) {
    database = std::make_unique<SqliteDatabase>(path, Durability::kFsyncEachCommit);
  } else {
    return Error(Code::kInvalidArgument, "sqlite:" + path + ": give an absolute path");
  }
  EXPANSE_CHECK_OK(database->OpenFile());
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace expanse::storage::sqlite
