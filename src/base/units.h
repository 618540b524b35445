// SPDX-License-Identifier: Apache-2.0
// Quantities with their unit in the type, and the one place that reads and prints them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse {

/// A count of bytes.
struct Bytes {
  int64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTiB = int64_t{1} << 40;

/// Human sizes: "16GiB", "512M", "1.5G", "4096". K, M, G, T, P and their iB forms are powers of
/// 1024, as schedulers use them; kB, MB, GB, TB (SI, upper-case B) are powers of 1000.
Result<Bytes> ParseSize(std::string_view text);

/// Text rows named *_gb: GiB with one decimal, a trailing ".0" dropped ("79.6", "15"); below 1 GiB
/// two significant digits ("0.12", "0.0078"), so that a small job does not read as 0.
std::string FormatGbRow(Bytes b);
/// GiB in prose: one decimal always ("24.0 GiB").
std::string FormatGibProse(Bytes b);
/// Prose for any size: the largest binary unit that keeps the number at 1 or above ("96.4 MiB").
std::string FormatSizeProse(Bytes b);

/// The shortest decimal that rounds to two places: 0.9, 1, 0.12 (JSON form of a distribution).
double RoundTo2(double v);

}  // namespace expanse
