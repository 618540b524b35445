// SPDX-License-Identifier: Apache-2.0
// Numbered schema migrations, embedded at build time from src/storage/migrations/<schema>/.
// To add one: write NNNN_name.sql (next number, the dialect of database.h) and append it to the
// list in src/storage/migrations/list.cmake. A released file is never edited: its checksum is
// stored.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "storage/relational/database.h"

namespace expanse::storage {

struct Migration {
  std::string_view name;  // "0001_initial"; the order is that of the names
  std::string_view sql;
};

std::span<const Migration> ControlMigrations();
std::span<const Migration> DataMigrations();
std::span<const Migration> IntelligenceMigrations();

/// Applies what is missing, each migration in one transaction with its row in schema_migration.
/// kFailedPrecondition, with nothing changed, when an applied migration has another checksum than
/// the one given here, or when the database holds one that this binary does not know (it is newer).
Status Migrate(Database& database, std::span<const Migration> migrations);

}  // namespace expanse::storage
