// SPDX-License-Identifier: Apache-2.0
// The first input byte chooses: a backup's manifest, or the log of a SQLite file.
#include <cstdint>
#include <cstdlib>

#include "storage/backup/manifest.h"
#include "storage/relational/sqlite/repair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace storage = expanse::storage;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    if (const auto entries = storage::ParseManifest(bytes); entries.ok())
      for (const auto& entry : *entries)
        if (entry.path.empty() || entry.path[0] == '/') std::abort();
    return 0;
  }
  const auto found = storage::sqlite::InspectLog(bytes);
  if (found.whole_frames < 0 || found.lost_frames < 0) std::abort();
  return 0;
}
