// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/sqlite/repair.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <sqlite3.h>

#include "base/log.h"

namespace expanse::storage::sqlite {
namespace {

constexpr int kBatch = 500;

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Result<Db> OpenRaw(const std::string& path, const char* pragmas) {
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  Db db(raw);
  if (rc != SQLITE_OK)
    return Error(Code::kDataLoss, path + " cannot be opened: " + sqlite3_errstr(rc));
  sqlite3_exec(raw, pragmas, nullptr, nullptr, nullptr);
  return db;
}

Statement Prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr);
  return Statement(statement);
}

std::vector<std::string> Texts(sqlite3* db, const std::string& sql) {
  std::vector<std::string> out;
  const Statement statement = Prepare(db, sql);
  while (statement != nullptr && sqlite3_step(statement.get()) == SQLITE_ROW)
    if (const auto* text = sqlite3_column_text(statement.get(), 0); text != nullptr)
      out.emplace_back(reinterpret_cast<const char*>(text));
  return out;
}

// Copies one table. Rows come in the order of their rowid; where reading fails, the next readable
// row is looked for in growing steps, and from there backwards to the damage.
class TableCopy {
 public:
  TableCopy(sqlite3* from, sqlite3* to, std::string table)
      : from_(from), to_(to), table_(std::move(table)) {}

  Status Run(RowsCopied* out) {
    std::string columns, marks;
    for (const auto& name : Texts(to_, "SELECT name FROM pragma_table_info('" + table_ + "')")) {
      columns += (columns.empty() ? "" : ",") + ("\"" + name + "\"");
      marks += marks.empty() ? "?" : ",?";
    }
    insert_ = Prepare(
        to_, "INSERT OR IGNORE INTO \"" + table_ + "\"(" + columns + ") VALUES(" + marks + ")");
    const std::string select = "SELECT rowid," + columns + " FROM \"" + table_ + "\" NOT INDEXED ";
    const std::string limit = " LIMIT " + std::to_string(kBatch);
    forward_ = Prepare(from_, select + "WHERE rowid > ?1 ORDER BY rowid" + limit);
    backward_ =
        Prepare(from_, select + "WHERE rowid < ?1 AND rowid > ?2 ORDER BY rowid DESC" + limit);
    if (insert_ == nullptr) return Error(Code::kInternal, "no table " + table_ + " to repair into");
    if (forward_ == nullptr || backward_ == nullptr) {
      ++out->damaged_places;
      out->tables += (out->tables.empty() ? "" : ", ") + table_;
      return {};
    }
    EXPANSE_CHECK_OK(CopyAll());
    out->rows += copied_;
    out->damaged_places += places_;
    const int64_t named = NamedByAnIndex();
    if (named > copied_) out->lost += named - copied_;
    if (places_ > 0 || named > copied_) out->tables += (out->tables.empty() ? "" : ", ") + table_;
    return {};
  }

 private:
  enum class Read { kEnd, kMore, kDamage, kTargetFailed };

  Status CopyAll() {
    int64_t last = -1;  // copied up to here
    for (;;) {
      const Read read = Forward(&last);
      if (read == Read::kEnd) return {};
      if (read == Read::kTargetFailed) return TargetError();
      if (read == Read::kMore) continue;
      ++places_;
      const int64_t found = NextReadable(last);
      if (found < 0) return {};
      int64_t below = found;
      while (Backward(&below, last) == Read::kMore) {
      }
      last = found - 1;  // the found row itself is read by Forward
    }
  }

  Read Forward(int64_t* last) {
    sqlite3_reset(forward_.get());
    sqlite3_bind_int64(forward_.get(), 1, *last);
    return Take(forward_.get(), last);
  }
  Read Backward(int64_t* below, int64_t above) {
    sqlite3_reset(backward_.get());
    sqlite3_bind_int64(backward_.get(), 1, *below);
    sqlite3_bind_int64(backward_.get(), 2, above);
    return Take(backward_.get(), below);
  }
  Read Take(sqlite3_stmt* statement, int64_t* at) {
    bool any = false;
    for (;;) {
      const int rc = sqlite3_step(statement);
      if (rc == SQLITE_DONE) return any ? Read::kMore : Read::kEnd;
      if (rc != SQLITE_ROW) return Read::kDamage;
      any = true;
      if (!Insert(statement)) return Read::kTargetFailed;
      *at = sqlite3_column_int64(statement, 0);
    }
  }
  bool Insert(sqlite3_stmt* row) {
    sqlite3_reset(insert_.get());
    for (int i = 1; i < sqlite3_column_count(row); ++i)
      sqlite3_bind_value(insert_.get(), i, sqlite3_column_value(row, i));
    const int rc = sqlite3_step(insert_.get());
    if (rc == SQLITE_DONE) copied_ += sqlite3_changes(to_);
    // A row whose bytes break a rule of its table is itself damaged.
    if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_CONSTRAINT) return false;
    return true;
  }
  Error TargetError() const {
    const int code = sqlite3_errcode(to_) & 0xff;
    return Error(code == SQLITE_FULL ? Code::kResourceExhausted : Code::kUnavailable,
                 "writing the repaired table " + table_ + ": " + sqlite3_errmsg(to_));
  }
  /// The first readable rowid behind the damage after `last`; -1: none.
  int64_t NextReadable(int64_t last) {
    const Statement probe =
        Prepare(from_, "SELECT rowid FROM \"" + table_ +
                           "\" NOT INDEXED WHERE rowid > ?1 ORDER BY rowid LIMIT 1");
    for (int64_t step = 1; probe != nullptr && step < (int64_t{1} << 40); step *= 2) {
      sqlite3_reset(probe.get());
      sqlite3_bind_int64(probe.get(), 1, last + step);
      const int rc = sqlite3_step(probe.get());
      if (rc == SQLITE_ROW) return sqlite3_column_int64(probe.get(), 0);
      if (rc == SQLITE_DONE) return -1;
    }
    return -1;
  }
  int64_t NamedByAnIndex() {
    int64_t most = 0;
    for (const auto& index : Texts(to_,
                                   "SELECT name FROM sqlite_schema WHERE type='index' AND "
                                   "tbl_name='" +
                                       table_ + "'")) {
      const Statement count =
          Prepare(from_, "SELECT COUNT(*) FROM \"" + table_ + "\" INDEXED BY \"" + index + "\"");
      if (count != nullptr && sqlite3_step(count.get()) == SQLITE_ROW)
        most = std::max(most, static_cast<int64_t>(sqlite3_column_int64(count.get(), 0)));
    }
    return most;
  }

  sqlite3* from_;
  sqlite3* to_;
  std::string table_;
  Statement insert_, forward_, backward_;
  int64_t copied_ = 0;
  int64_t places_ = 0;
};

uint32_t Big(std::string_view bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<uint8_t>(bytes[at + i]);
  return v;
}
uint32_t Little(std::string_view bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 4; i > 0; --i) v = v << 8 | static_cast<uint8_t>(bytes[at + i - 1]);
  return v;
}

// https://www.sqlite.org/fileformat2.html, "Checksum Algorithm".
struct LogChecksum {
  uint32_t a = 0;
  uint32_t b = 0;
  bool big = false;
  void Add(std::string_view bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      a += (big ? Big(bytes, at) : Little(bytes, at)) + b;
      b += (big ? Big(bytes, at + 4) : Little(bytes, at + 4)) + a;
    }
  }
};

}  // namespace

Result<RowsCopied> CopyReadableRows(const std::string& damaged, const std::string& target) {
  EXPANSE_TRY(const Db from, OpenRaw(damaged, "PRAGMA query_only=ON; PRAGMA cell_size_check=ON"));
  EXPANSE_TRY(const Db to, OpenRaw(target,
                                   "PRAGMA foreign_keys=OFF; PRAGMA journal_mode=OFF; "
                                   "PRAGMA synchronous=OFF"));
  if (Texts(from.get(), "SELECT name FROM sqlite_schema").empty())
    return Error(Code::kDataLoss, damaged + ": its schema cannot be read");
  RowsCopied copied;
  if (sqlite3_exec(to.get(), "BEGIN", nullptr, nullptr, nullptr) != SQLITE_OK)
    return Error(Code::kUnavailable, target + ": " + sqlite3_errmsg(to.get()));
  for (const auto& table :
       Texts(to.get(),
             "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE "
             "'sqlite_%' AND name <> 'schema_migration'"))
    EXPANSE_CHECK_OK(TableCopy(from.get(), to.get(), table).Run(&copied));
  if (sqlite3_exec(to.get(), "COMMIT; PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return Error(Code::kUnavailable, target + ": " + sqlite3_errmsg(to.get()));
  return copied;
}

LogDamage InspectLog(std::string_view wal) {
  constexpr size_t kHeader = 32, kFrameHeader = 24;
  LogDamage found;
  if (wal.size() < kHeader || (Big(wal, 0) & ~1u) != 0x377f0682) return found;
  const uint32_t page = Big(wal, 8);
  if (page < 512 || page > 65536 || (page & (page - 1)) != 0) return found;
  LogChecksum sum{0, 0, (Big(wal, 0) & 1) != 0};
  sum.Add(wal.substr(0, 24));
  bool broken = sum.a != Big(wal, 24) || sum.b != Big(wal, 28);
  for (size_t at = kHeader; at + kFrameHeader + page <= wal.size(); at += kFrameHeader + page) {
    const auto header = wal.substr(at, kFrameHeader);
    const bool current = header.substr(8, 8) == wal.substr(16, 8);
    if (!broken) {
      sum.Add(header.substr(0, 8));
      sum.Add(wal.substr(at + kFrameHeader, page));
      if (current && sum.a == Big(header, 16) && sum.b == Big(header, 20)) {
        ++found.whole_frames;
        continue;
      }
      if (!current) {
        // The end of what was written since the log began anew, or a flipped salt.
        const size_t next = at + kFrameHeader + page;
        const bool goes_on =
            next + kFrameHeader <= wal.size() && wal.substr(next + 8, 8) == wal.substr(16, 8);
        if (!goes_on) return found;
      }
      broken = true;
    }
    if (current) ++found.lost_frames;
  }
  // A last frame alone is a write that a crash cut off: it was never acknowledged.
  if (found.lost_frames == 1) found.lost_frames = 0;
  return found;
}

}  // namespace expanse::storage::sqlite
