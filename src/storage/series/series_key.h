// SPDX-License-Identifier: Apache-2.0
// Series keys in bytes, and which keys a selector means.
#pragma once

#include <cstddef>
#include <string>

#include "storage/series/byte_io.h"
#include "storage/series/series_store.h"

namespace expanse::storage {

void PutKey(std::string& out, const SeriesKey& key);
/// The reader is not ok() afterwards when the bytes are no key.
SeriesKey GetKey(ByteReader& reader);

struct SeriesKeyHash {
  size_t operator()(const SeriesKey& key) const;
};

/// All members of the selector but the execution, which the caller resolves (adoption).
bool MatchesButExecution(const SeriesSelector& selector, const SeriesKey& key);

}  // namespace expanse::storage
