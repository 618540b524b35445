// SPDX-License-Identifier: Apache-2.0
// Blobs as files: <directory>/<org>/<kind>/<first 2 digits>/<sha256>.zst, each one zstd frame that
// `zstd -d` reads. Written below <directory>/tmp, fsynced, then renamed.
#pragma once

#include <memory>
#include <string>

#include "storage/blob/blob_store.h"

namespace expanse::storage {

/// Creates the directory when absent; removes what a crash left in tmp/ more than an hour ago.
Result<std::unique_ptr<BlobStore>> OpenFsBlobStore(const std::string& directory);

}  // namespace expanse::storage
