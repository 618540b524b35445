// SPDX-License-Identifier: Apache-2.0
// The embedded backend: one file in WAL mode, one writer, any number of readers.
#pragma once

#include <memory>
#include <string>

#include "storage/relational/database.h"

namespace expanse::storage::sqlite {

/// An absolute path, or ":memory:" for a private database that is removed at the end (not durable).
Result<std::unique_ptr<Database>> OpenDatabase(const std::string& path);

}  // namespace expanse::storage::sqlite
