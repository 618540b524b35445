// SPDX-License-Identifier: Apache-2.0
// The list of a backup's files, with its own checksum. Text, one file a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::storage {

struct ManifestEntry {
  int64_t size = 0;
  std::optional<uint32_t> crc32c;  // absent: the file checks itself (sealed series, blobs)
  std::string path;                // relative; no "..", no leading '/', no line feed
};

std::string EncodeManifest(const std::vector<ManifestEntry>& entries);
/// kDataLoss on anything that is not a whole manifest with safe paths.
Result<std::vector<ManifestEntry>> ParseManifest(std::string_view text);

}  // namespace expanse::storage
