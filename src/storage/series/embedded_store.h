// SPDX-License-Identifier: Apache-2.0
// The embedded series store: write-ahead log, memory head, sealed chunk files.
// docs/design/series-store.md describes format, invariants and recovery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "platform/clock/clock.h"
#include "storage/series/series_store.h"

namespace expanse::storage {

struct EmbeddedStoreOptions {
  std::string directory;
  /// A head is sealed when it holds this many samples (16 bytes each in memory), …
  int64_t head_samples = 4'000'000;
  /// … or its log is this long, …
  int64_t wal_bytes = 128 * int64_t{1 << 20};
  /// … or its first sample came this long ago. Longer chunks compress better; a restart replays
  /// what is not sealed.
  Millis head_age = Millis(2 * 3'600'000);
  /// So many neighbouring files of one size become one; 0: never.
  size_t merge_files = 8;
  /// A file that would be larger is not made by merging, so that retention stays fine-grained.
  int64_t max_file_bytes = int64_t{1} << 31;
  Millis max_file_span = Millis(48 * 3'600'000LL);
  /// Null: the system's.
  const platform::Clock* clock = nullptr;
};

/// kFailedPrecondition when another process has the directory open.
Result<std::unique_ptr<SeriesStore>> OpenEmbeddedStore(EmbeddedStoreOptions options);

}  // namespace expanse::storage
