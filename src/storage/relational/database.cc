// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/database.h"

#include "storage/relational/sqlite/sqlite_database.h"

namespace expanse::storage {

Result<std::unique_ptr<Database>> Database::Open(std::string_view url) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with(kSqlite))
    return sqlite::OpenDatabase(std::string(url.substr(kSqlite.size())));
  // The rest of an unknown URL can hold a password.
  return Error(Code::kInvalidArgument, "unknown database URL scheme '" +
                                           std::string(url.substr(0, url.find(':'))) +
                                           "'; use sqlite:/absolute/path.db");
}

Result<Rows> Database::Query(std::string_view sql, std::initializer_list<Value> params) {
  return Query(sql, std::span(params.begin(), params.size()));
}

Result<Rows> Database::Query(std::string_view sql, std::span<const Value> params) {
  return Read([&](Transaction& transaction) { return transaction.Query(sql, params); });
}

Result<int64_t> Database::Execute(std::string_view sql, std::initializer_list<Value> params) {
  return Execute(sql, std::span(params.begin(), params.size()));
}

Result<int64_t> Database::Execute(std::string_view sql, std::span<const Value> params) {
  return Write([&](Transaction& transaction) { return transaction.Execute(sql, params); });
}

}  // namespace expanse::storage
