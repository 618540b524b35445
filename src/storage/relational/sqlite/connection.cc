// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/sqlite/connection.h"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/strings.h"
#include "platform/fs/fs.h"
#include "storage/file.h"

namespace expanse::storage::sqlite {
namespace {

// Enough for every statement of a plane; a program with more builds SQL text from data.
constexpr size_t kMaxStatements = 256;
constexpr int kBusyTimeoutMs = 10'000;

Code CodeOf(int extended) {
  switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return Code::kAlreadyExists;
    default:
      break;
  }
  switch (extended & 0xff) {
    case SQLITE_CONSTRAINT:
      return Code::kFailedPrecondition;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
      return Code::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return Code::kResourceExhausted;
    case SQLITE_TOOBIG:  // of the value, not of the disk: it is as large next time
      return Code::kOutOfRange;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::kPermissionDenied;
    case SQLITE_INTERRUPT:
      return Code::kCanceled;
    default:
      return Code::kInternal;
  }
}

std::string Excerpt(std::string_view sql) {
  constexpr size_t kMax = 100;
  std::string out(sql.substr(0, kMax));
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  if (sql.size() > kMax) out += "…";
  return out;
}

Value ReadCell(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return Value(int64_t{sqlite3_column_int64(statement, column)});
    case SQLITE_FLOAT:
      return Value(sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const int size = sqlite3_column_bytes(statement, column);
      return Value(std::string(text, static_cast<size_t>(size)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      const int size = sqlite3_column_bytes(statement, column);
      return Value(Blob{size == 0 ? std::string() : std::string(bytes, static_cast<size_t>(size))});
    }
    default:
      return Value();
  }
}

// SQLITE_STATIC: the caller's parameters outlive the statement's run.
int BindOne(sqlite3_stmt* statement, int index, const Value& value) {
  const auto& v = value.variant();
  if (const auto* i = std::get_if<int64_t>(&v)) return sqlite3_bind_int64(statement, index, *i);
  if (const auto* d = std::get_if<double>(&v)) return sqlite3_bind_double(statement, index, *d);
  if (const auto* s = std::get_if<std::string>(&v))
    return sqlite3_bind_text64(statement, index, s->data(), s->size(), SQLITE_STATIC, SQLITE_UTF8);
  if (const auto* b = std::get_if<Blob>(&v)) {
    if (b->bytes.empty()) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob64(statement, index, b->bytes.data(), b->bytes.size(), SQLITE_STATIC);
  }
  return sqlite3_bind_null(statement, index);
}

// Ends a run of a cached statement, so that it holds no lock and no pointer into parameters.
class Run {
 public:
  explicit Run(sqlite3_stmt* statement) : statement_(statement) {}
  ~Run() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  sqlite3_stmt* statement_;
};

// SQLite would create the file with mode 0644.
Status CreatePrivate(const std::string& path) {
  const bool is_new = access(path.c_str(), F_OK) != 0;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    const Code code = error == EACCES || error == EPERM || error == EROFS ? Code::kPermissionDenied
                      : error == ENOSPC || error == EDQUOT                ? Code::kResourceExhausted
                                                                          : Code::kUnavailable;
    return Error(
        code, "cannot open the database " + path + ": " + std::generic_category().message(error));
  }
  close(fd);
  // SQLite syncs the names of its logs, but takes this file for one that was there.
  return is_new ? SyncDirectory(platform::DirName(path)) : Status();
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path,
                                                     Durability durability) {
  EXPANSE_CHECK_OK(CreatePrivate(path));
  std::unique_ptr<Connection> connection(new Connection(path));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int rc = sqlite3_open_v2(path.c_str(), &connection->db_, flags, nullptr);
  if (rc != SQLITE_OK) return connection->LastError("open", rc);
  EXPANSE_CHECK_OK(connection->Configure(durability));
  return connection;
}

Status Connection::Configure(Durability durability) {
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  EXPANSE_CHECK_OK(Script("PRAGMA journal_mode=WAL"));
  EXPANSE_CHECK_OK(Script(durability == Durability::kFsyncEachCommit ? "PRAGMA synchronous=FULL"
                                                                     : "PRAGMA synchronous=OFF"));
  // LIKE as in PostgreSQL; 16 MiB of page cache a connection; checkpoints leave a bounded log file.
  return Script(
      "PRAGMA foreign_keys=ON; PRAGMA case_sensitive_like=ON; PRAGMA trusted_schema=OFF;"
      "PRAGMA cell_size_check=ON; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY;"
      "PRAGMA journal_size_limit=67108864");
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Error Connection::LastError(std::string_view sql, int rc) const {
  const int extended = db_ != nullptr ? sqlite3_extended_errcode(db_) : rc;
  const std::string said = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(rc);
  return Error(CodeOf(extended), path_ + ": " + Excerpt(sql) + ": " + ToUtf8(said));
}

Result<sqlite3_stmt*> Connection::Prepare(std::string_view sql) {
  std::string text(sql);
  if (const auto found = statements_.find(text); found != statements_.end()) return found->second;
  if (statements_.size() >= kMaxStatements) {
    for (auto& [old, statement] : statements_) sqlite3_finalize(statement);
    statements_.clear();
  }
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int rc = sqlite3_prepare_v3(db_, text.c_str(), static_cast<int>(text.size()) + 1,
                                    SQLITE_PREPARE_PERSISTENT, &statement, &rest);
  if (rc != SQLITE_OK) return LastError(sql, rc);
  if (statement == nullptr || !Trim(rest).empty()) {
    sqlite3_finalize(statement);
    return Error(Code::kInternal, path_ + ": not exactly one SQL statement: " + Excerpt(sql));
  }
  statements_.emplace(std::move(text), statement);
  return statement;
}

Status Connection::Bind(sqlite3_stmt* statement, std::string_view sql,
                        std::span<const Value> params) {
  const auto refuse = [&](Code code, const std::string& why) {
    return Error(code, path_ + ": " + Excerpt(sql) + ": " + why);
  };
  if (static_cast<size_t>(sqlite3_bind_parameter_count(statement)) != params.size())
    return refuse(Code::kInternal, "takes " +
                                       std::to_string(sqlite3_bind_parameter_count(statement)) +
                                       " parameters, given " + std::to_string(params.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = "$" + std::to_string(i + 1);
    const int index = sqlite3_bind_parameter_index(statement, name.c_str());
    if (index == 0) return refuse(Code::kInternal, "does not use parameter " + name);
    if (const auto* s = std::get_if<std::string>(&params[i].variant());
        s != nullptr && (s->find('\0') != std::string::npos || !IsUtf8(*s)))
      return refuse(Code::kInvalidArgument, "parameter " + name + " is not UTF-8 text without NUL");
    if (const int rc = BindOne(statement, index, params[i]); rc != SQLITE_OK)
      return LastError(sql, rc);
  }
  return {};
}

Result<Rows> Connection::Query(std::string_view sql, std::span<const Value> params) {
  EXPANSE_TRY(sqlite3_stmt * statement, Prepare(sql));
  const Run run(statement);
  EXPANSE_CHECK_OK(Bind(statement, sql, params));
  const int count = sqlite3_column_count(statement);
  std::vector<std::string> columns;
  for (int i = 0; i < count; ++i) columns.emplace_back(sqlite3_column_name(statement, i));
  Rows rows(std::move(columns));
  while (true) {
    const int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) return rows;
    if (rc != SQLITE_ROW) return LastError(sql, rc);
    for (int i = 0; i < count; ++i) rows.Append(ReadCell(statement, i));
  }
}

Result<int64_t> Connection::Execute(std::string_view sql, std::span<const Value> params) {
  EXPANSE_TRY(sqlite3_stmt * statement, Prepare(sql));
  const Run run(statement);
  EXPANSE_CHECK_OK(Bind(statement, sql, params));
  int rc = SQLITE_ROW;
  while (rc == SQLITE_ROW) rc = sqlite3_step(statement);
  if (rc != SQLITE_DONE) return LastError(sql, rc);
  return sqlite3_stmt_readonly(statement) != 0 ? int64_t{0} : int64_t{sqlite3_changes64(db_)};
}

Status Connection::Script(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return LastError(sql, rc);
  return {};
}

Status Connection::CopyTo(const std::string& path) {
  EXPANSE_CHECK_OK(CreatePrivate(path));
  sqlite3* target = nullptr;
  int rc = sqlite3_open_v2(path.c_str(), &target, SQLITE_OPEN_READWRITE, nullptr);
  std::string said;
  if (rc == SQLITE_OK) {
    sqlite3_backup* backup = sqlite3_backup_init(target, "main", db_, "main");
    rc = backup != nullptr ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(target);
    if (backup != nullptr) sqlite3_backup_finish(backup);
    if (rc == SQLITE_DONE) rc = SQLITE_OK;
  }
  if (rc != SQLITE_OK) said = sqlite3_errmsg(target);
  sqlite3_close_v2(target);
  if (rc == SQLITE_OK) return {};
  return Error(CodeOf(rc), path_ + ": copy to " + path + ": " + ToUtf8(said));
}

bool Connection::InTransaction() const { return sqlite3_get_autocommit(db_) == 0; }

}  // namespace expanse::storage::sqlite
