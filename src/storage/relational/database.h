// SPDX-License-Identifier: Apache-2.0
// The relational store: one SQL dialect that SQLite and PostgreSQL both take, so that a repository
// is written once.
//
// The dialect:
//  * Parameters are $1..$n, each may be used more than once; nothing is pasted into SQL text.
//  * Column types: BIGINT (integers, booleans as 0/1, times as unix milliseconds), DOUBLE
//  PRECISION,
//    TEXT (UTF-8 without NUL; ToUtf8() before it), BYTEA (bind Blob). No BOOLEAN, SERIAL,
//    TIMESTAMP, JSON, ENUM, AUTOINCREMENT: ids are minted by the program, JSON is TEXT that SQL
//    never looks into.
//  * PRIMARY KEY (several columns, named in the order of the lookups), UNIQUE, NOT NULL, CHECK,
//    REFERENCES … ON DELETE CASCADE (enforced), CREATE INDEX [IF NOT EXISTS] … [WHERE …],
//    DROP INDEX.
//    ALTER TABLE: ADD COLUMN, RENAME TO, RENAME COLUMN, one change a statement.
//  * INSERT … ON CONFLICT (columns) DO NOTHING | DO UPDATE SET x = excluded.x [WHERE …]; RETURNING;
//    WITH; UPDATE … FROM; CASE; COALESCE; row values ((a, b) < ($1, $2)); IS [NOT] DISTINCT FROM;
//    aggregates with FILTER; window functions; LIMIT $1 OFFSET $2; || for text. No INSERT OR
//    REPLACE.
//  * Order is by bytes: text compares as in COLLATE "C", LIKE minds case. NULLs sort differently in
//    the two: say NULLS FIRST or NULLS LAST wherever a sorted column can be NULL (not inside an
//    index).
//  * Strings in '…', identifiers bare and lower-case. Integer division truncates in both; CAST(x AS
//    BIGINT | DOUBLE PRECISION | TEXT). No date functions, no rowid, no typeof, no PRAGMA, no ctid.
//  * A parameter whose type cannot be seen from its place is cast: CAST($1 AS BIGINT) IS NULL OR x
//  = $1.
//
// Errors: a UNIQUE or PRIMARY KEY conflict is kAlreadyExists; any other constraint is
// kFailedPrecondition; a store that stays locked is kUnavailable; a full disk is
// kResourceExhausted; a damaged file is kDataLoss; SQL that the engine refuses is kInternal.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "storage/relational/value.h"

namespace expanse::storage {

enum class Access { kReadOnly, kReadWrite };

/// One transaction on one connection; for one thread at a time. Destroyed without Commit() it is
/// rolled back. Read-only: one snapshot, never waits for a writer. Read-write: the writer's turn is
/// taken at Begin, so that what was read stays true until Commit (SQLite: one writer; PostgreSQL:
/// SERIALIZABLE, which may answer kAborted at any statement: see Database::Write).
class Transaction {
 public:
  virtual ~Transaction() = default;

  /// SELECT, or a change with RETURNING (read-write only).
  virtual Result<Rows> Query(std::string_view sql, std::span<const Value> params) = 0;
  /// A change; the number of rows changed.
  virtual Result<int64_t> Execute(std::string_view sql, std::span<const Value> params) = 0;
  /// Several statements without parameters (migrations).
  virtual Status ExecuteScript(std::string_view sql) = 0;
  /// Durable on return (the log is fsynced). After an error nothing of the transaction is kept.
  virtual Status Commit() = 0;

  Result<Rows> Query(std::string_view sql, std::initializer_list<Value> params = {}) {
    return Query(sql, std::span(params.begin(), params.size()));
  }
  Result<int64_t> Execute(std::string_view sql, std::initializer_list<Value> params = {}) {
    return Execute(sql, std::span(params.begin(), params.size()));
  }
};

/// A database; safe for any number of threads. Connections are pooled behind it.
class Database {
 public:
  virtual ~Database() = default;

  /// "sqlite:/absolute/path.db" (created when absent, mode 0600) or "sqlite::memory:" (tests).
  static Result<std::unique_ptr<Database>> Open(std::string_view url);

  /// Do not Begin a read-write transaction while the same thread holds one: it would wait for
  /// itself (kUnavailable after the busy time).
  virtual Result<std::unique_ptr<Transaction>> Begin(Access access) = 0;

  /// A consistent copy of the whole database into a new file, taken while the program runs.
  virtual Status BackupTo(const std::string& path) = 0;
  /// Reads every page and index; kDataLoss with the first findings when the file is damaged.
  virtual Status CheckIntegrity() = 0;
  /// The URL without credentials, for messages.
  virtual std::string Name() const = 0;

  /// One SELECT in its own read-only transaction.
  Result<Rows> Query(std::string_view sql, std::initializer_list<Value> params = {});
  Result<Rows> Query(std::string_view sql, std::span<const Value> params);
  /// One change in its own transaction, durable on return; the number of rows changed.
  Result<int64_t> Execute(std::string_view sql, std::initializer_list<Value> params = {});
  Result<int64_t> Execute(std::string_view sql, std::span<const Value> params);

  /// Runs body(Transaction&) -> Status or Result<T> in a read-write transaction and commits when it
  /// is ok. On kAborted (serialisation conflict) all of it is run again, at most 10 times: the body
  /// must have no effect beside the transaction.
  template <typename Body>
  auto Write(Body body) -> decltype(body(std::declval<Transaction&>())) {
    for (int attempt = 1;; ++attempt) {
      auto result = WriteOnce(body);
      if (result.ok() || result.error().code() != Code::kAborted || attempt == 10) return result;
    }
  }
  /// Runs body(Transaction&) on one read-only snapshot.
  template <typename Body>
  auto Read(Body body) -> decltype(body(std::declval<Transaction&>())) {
    EXPANSE_TRY(auto transaction, Begin(Access::kReadOnly));
    return body(*transaction);
  }

 private:
  template <typename Body>
  auto WriteOnce(Body& body) -> decltype(body(std::declval<Transaction&>())) {
    EXPANSE_TRY(auto transaction, Begin(Access::kReadWrite));
    auto result = body(*transaction);
    if (!result.ok()) return result;
    EXPANSE_CHECK_OK(transaction->Commit());
    return result;
  }
};

}  // namespace expanse::storage
