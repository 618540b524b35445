// SPDX-License-Identifier: Apache-2.0
// zstd with errors as values. Used inside storage/ only.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::storage {

std::string ZstdCompress(std::string_view bytes, int level);
/// kResourceExhausted when the frame says, or turns out, to hold more than max_bytes; kDataLoss
/// when it is not exactly one whole frame.
Result<std::string> ZstdDecompress(std::string_view frame, size_t max_bytes);
/// The size of the content by the first bytes of a frame (18 are enough); kDataLoss when unknown.
Result<int64_t> ZstdContentSize(std::string_view start);

}  // namespace expanse::storage
