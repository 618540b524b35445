// SPDX-License-Identifier: Apache-2.0
// One SQLite connection with its prepared statements. The only place that knows sqlite3.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "storage/relational/value.h"

struct sqlite3;
struct sqlite3_stmt;

namespace expanse::storage::sqlite {

enum class Durability { kFsyncEachCommit, kNone };

/// Used by one thread at a time.
class Connection {
 public:
  /// Opens, or creates with mode 0600, in WAL mode.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, Durability durability);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Rows> Query(std::string_view sql, std::span<const Value> params);
  Result<int64_t> Execute(std::string_view sql, std::span<const Value> params);
  Status Script(const std::string& sql);
  Status CopyTo(const std::string& path);
  /// True between BEGIN and the end of the transaction; SQLite ends it itself on some errors.
  bool InTransaction() const;

 private:
  explicit Connection(std::string path) : path_(std::move(path)) {}
  Status Configure(Durability durability);
  Result<sqlite3_stmt*> Prepare(std::string_view sql);
  Status Bind(sqlite3_stmt* statement, std::string_view sql, std::span<const Value> params);
  Error LastError(std::string_view sql, int rc) const;

  std::string path_;
  sqlite3* db_ = nullptr;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace expanse::storage::sqlite
