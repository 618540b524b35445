// SPDX-License-Identifier: Apache-2.0
// Backup of a plane's directory while the plane runs, from another process, and restore into an
// empty one. docs/design/durability.md says why the order makes the copy consistent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace expanse::storage {

/// What belongs to a plane, relative to its directory. A database must be there, the rest may be
/// absent.
struct BackupLayout {
  std::vector<std::string> databases;  // "data.db"
  std::vector<std::string> files;      // small ones that are replaced whole: keys, caches
  std::string series;                  // directory of an embedded series store; "": none
  std::string blobs;                   // directory of a blob store; "": none
};

struct BackupReport {
  int64_t files = 0;
  int64_t bytes = 0;   // of all files
  int64_t linked = 0;  // files that share their space with the plane's (same file system)
};

/// Copies into `to`, which must be absent or empty: it holds everything that was acknowledged
/// before the call, and perhaps some of what came during it. Immutable files (sealed series, blobs)
/// are hard-linked where the file system allows. `backup.manifest` is written last: a directory
/// without it is no backup.
/// kNotFound: no database; kAlreadyExists: `to` is not empty; kResourceExhausted: its disk is full.
Result<BackupReport> Backup(const std::string& directory, const BackupLayout& layout,
                            const std::string& to);

/// Copies a backup into `directory`, which must be absent or empty, and checks every file against
/// the manifest and every database. Files get the owner of `directory` when root runs it.
/// kDataLoss: the backup is damaged or not complete (its finding is named).
Result<BackupReport> Restore(const std::string& from, const BackupLayout& layout,
                             const std::string& directory);

/// kAlreadyExists, with the advice, unless the directory is absent or empty.
Status RefuseFilled(const std::string& directory, const std::string& advice);
/// kFailedPrecondition when a restore into the directory did not come to its end.
Status RefuseHalfRestored(const std::string& directory);

}  // namespace expanse::storage
