// SPDX-License-Identifier: Apache-2.0
// One column of one chunk, timestamps or values, to bytes and back, bit for bit. The bytes are laid
// out for an entropy coder: zstd over many columns follows in the sealed file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::storage {

/// No chunk has more samples: what a damaged count can make a reader allocate.
constexpr size_t kMaxChunkSamples = size_t{1} << 16;

/// Integers by the cheapest of four predictions (constant offset, slope, difference, difference of
/// differences); what is left over is zig-zagged and split into byte planes.
void EncodeIntegers(std::span<const int64_t> values, std::string& out);
/// Consumes one column of `count` integers from the front of `bytes`; kDataLoss when it is not one.
Result<std::vector<int64_t>> DecodeIntegers(std::string_view& bytes, size_t count);

/// Doubles. Those that are decimals (k / 10^d with d up to 9, integers among them) become integers
/// divided by their common step; others the XOR of neighbours in byte planes. NaN, infinities and
/// -0 come back bit for bit.
void EncodeDoubles(std::span<const double> values, std::string& out);
Result<std::vector<double>> DecodeDoubles(std::string_view& bytes, size_t count);

/// A double in few bytes when it is a decimal; for statistics in indexes.
void PutDecimal(std::string& out, double v);
class ByteReader;
double GetDecimal(ByteReader& reader);

}  // namespace expanse::storage
