// SPDX-License-Identifier: Apache-2.0
#include "storage/relational/migrate.h"

#include <string>

#include "base/log.h"
#include "platform/crypto/crypto.h"

namespace expanse::storage {
namespace {

constexpr std::string_view kCreate =
    "CREATE TABLE IF NOT EXISTS schema_migration ("
    " name TEXT NOT NULL PRIMARY KEY, sha256 TEXT NOT NULL)";

// How many of the migrations are applied already; refuses any history but a prefix of them.
Result<size_t> CountApplied(Transaction& transaction, const std::string& database,
                            std::span<const Migration> migrations) {
  EXPANSE_TRY(const auto rows,
              transaction.Query("SELECT name, sha256 FROM schema_migration ORDER BY name"));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& name = rows[i].Text(0);
    if (i >= migrations.size() || name > migrations[i].name)
      return Error(Code::kFailedPrecondition,
                   database + " has migration " + name +
                       ", which this program does not know: it was written by a newer version; "
                       "start that version, or restore the backup made before the upgrade");
    if (name != migrations[i].name)
      return Error(Code::kFailedPrecondition, database + " has migration " + name + " where " +
                                                  std::string(migrations[i].name) + " is expected");
    if (rows[i].Text(1) != platform::Sha256Hex(migrations[i].sql))
      return Error(Code::kFailedPrecondition,
                   database + ": migration " + name +
                       " was applied with another text than this program has; the database belongs "
                       "to a different build");
  }
  return rows.size();
}

}  // namespace

Status Migrate(Database& database, std::span<const Migration> migrations) {
  for (size_t i = 1; i < migrations.size(); ++i)
    EXPANSE_CHECK(migrations[i - 1].name < migrations[i].name);
  EXPANSE_CHECK_OK(database.Execute(kCreate));
  while (true) {
    // Another process may be migrating too: what is next is asked anew in each transaction.
    EXPANSE_TRY(auto transaction, database.Begin(Access::kReadWrite));
    EXPANSE_TRY(const size_t applied, CountApplied(*transaction, database.Name(), migrations));
    if (applied == migrations.size()) return {};
    const Migration& next = migrations[applied];
    auto done = transaction->ExecuteScript(next.sql);
    if (!done.ok()) return done.error().WithContext("migration " + std::string(next.name));
    EXPANSE_CHECK_OK(
        transaction->Execute("INSERT INTO schema_migration (name, sha256) VALUES ($1, $2)",
                             {next.name, platform::Sha256Hex(next.sql)}));
    EXPANSE_CHECK_OK(transaction->Commit());
    log::Info("storage.migration_applied", {{"database", database.Name()}, {"name", next.name}});
  }
}

}  // namespace expanse::storage
