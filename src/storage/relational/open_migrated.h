// SPDX-License-Identifier: Apache-2.0
// A plane's database: opened, repaired when it is damaged, migrated.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "storage/relational/database.h"
#include "storage/relational/migrate.h"

namespace expanse::storage {

/// The SQLite file at the absolute path. Damage that is found when it opens (files up to 256 MiB
/// are checked whole), by CheckIntegrity() or by a statement that runs into it, is repaired: every
/// readable row goes into a new file that takes the place of the old one, which stays beside it as
/// `<path>.damaged-<time>`; what was lost is logged. A running program repairs at the first
/// transaction after the last open one ended; until then transactions answer kUnavailable.
/// kDataLoss: nothing can be read any more; restore a backup.
Result<std::unique_ptr<Database>> OpenMigrated(const std::string& path,
                                               std::span<const Migration> migrations);

}  // namespace expanse::storage
