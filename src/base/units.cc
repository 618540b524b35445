// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

namespace expanse {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 22> kUnits{{
    {"", 1},
    {"B", 1},
    {"K", 1024.0},
    {"k", 1024.0},
    {"M", 1048576.0},
    {"m", 1048576.0},
    {"G", 1073741824.0},
    {"g", 1073741824.0},
    {"T", 1099511627776.0},
    {"t", 1099511627776.0},
    {"P", 1125899906842624.0},
    {"Ki", 1024.0},
    {"Mi", 1048576.0},
    {"Gi", 1073741824.0},
    {"Ti", 1099511627776.0},
    {"KiB", 1024.0},
    {"MiB", 1048576.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
}};

}  // namespace

Result<Bytes> ParseSize(std::string_view text) {
  const Error bad(Code::kInvalidArgument,
                  fmt::format("'{}' is not a size; write e.g. 16GiB, 512M or 4096", text));
  size_t n = 0;
  double number = 0;
  double scale = 0;
  size_t digits = 0;
  for (; n < text.size(); ++n) {
    const char c = text[n];
    if (c == '.' && scale == 0) {
      scale = 1;
    } else if (c >= '0' && c <= '9') {
      ++digits;
      if (scale != 0) {
        scale /= 10;
        number += (c - '0') * scale;
      } else {
        number = number * 10 + (c - '0');
      }
    } else {
      break;
    }
  }
  if (digits == 0) return bad;
  std::string_view unit = text.substr(n);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double factor = 0;
  for (const auto& u : kUnits)
    if (u.name == unit) factor = u.factor;
  if (unit == "TB") factor = 1e12;
  if (factor == 0) return bad;
  const double bytes = number * factor;
  if (bytes > static_cast<double>(std::numeric_limits<int64_t>::max()) / 2) return bad;
  return Bytes{static_cast<int64_t>(bytes + 0.5)};
}

std::string FormatGbRow(Bytes b) {
  const double gib = static_cast<double>(b.value) / static_cast<double>(kGiB);
  // Below 1 GiB one decimal would print small jobs as 0: two significant digits instead.
  if (gib > 0 && gib < 0.95) return fmt::format("{:.2g}", gib);
  std::string s = fmt::format("{:.1f}", gib);
  if (s.size() > 2 && s.ends_with(".0")) s.resize(s.size() - 2);
  return s;
}

std::string FormatGibProse(Bytes b) {
  return fmt::format("{:.1f} GiB", static_cast<double>(b.value) / static_cast<double>(kGiB));
}

std::string FormatSizeProse(Bytes b) {
  const double v = static_cast<double>(b.value);
  const double a = std::fabs(v);
  if (a >= static_cast<double>(kGiB))
    return fmt::format("{:.1f} GiB", v / static_cast<double>(kGiB));
  if (a >= static_cast<double>(kMiB))
    return fmt::format("{:.1f} MiB", v / static_cast<double>(kMiB));
  if (a >= static_cast<double>(kKiB))
    return fmt::format("{:.1f} KiB", v / static_cast<double>(kKiB));
  return fmt::format("{} B", b.value);
}

double RoundTo2(double v) {
  // By the C library's %.2f, so that JSON and text of one figure agree on ties.
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", v);
  return std::strtod(text, nullptr);
}

}  // namespace expanse
