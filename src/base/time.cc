// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <array>
#include <cctype>
#include <limits>

#include <fmt/format.h>

namespace expanse {
namespace {

bool TakeNumber(std::string_view& in, size_t digits, int& out) {
  if (in.size() < digits) return false;
  out = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (in[i] < '0' || in[i] > '9') return false;
    out = out * 10 + (in[i] - '0');
  }
  in.remove_prefix(digits);
  return true;
}

bool TakeChar(std::string_view& in, char c) {
  if (in.empty() || in.front() != c) return false;
  in.remove_prefix(1);
  return true;
}

Error BadTime(std::string_view text) {
  return Error(Code::kInvalidArgument,
               fmt::format("'{}' is not an RFC 3339 time; write e.g. 2026-11-30T21:16:07Z", text));
}

}  // namespace

std::string FormatRfc3339(WallTime t) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  const auto day = floor<days>(t);
  const year_month_day ymd(day);
  const hh_mm_ss<Millis> hms(t - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(ymd.year()),
                     static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                     hms.hours().count(), hms.minutes().count(), hms.seconds().count(),
                     hms.subseconds().count());
}

Result<WallTime> ParseRfc3339(std::string_view text) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  std::string_view in = text;
  int year_n = 0, month_n = 0, day_n = 0, hour = 0, minute = 0, second = 0;
  if (!TakeNumber(in, 4, year_n) || !TakeChar(in, '-') || !TakeNumber(in, 2, month_n) ||
      !TakeChar(in, '-') || !TakeNumber(in, 2, day_n))
    return BadTime(text);
  if (in.empty() || (in.front() != 'T' && in.front() != 't' && in.front() != ' '))
    return BadTime(text);
  in.remove_prefix(1);
  if (!TakeNumber(in, 2, hour) || !TakeChar(in, ':') || !TakeNumber(in, 2, minute) ||
      !TakeChar(in, ':') || !TakeNumber(in, 2, second))
    return BadTime(text);
  int64_t millis = 0;
  if (TakeChar(in, '.')) {
    int scale = 100;
    size_t digits = 0;
    while (!in.empty() && in.front() >= '0' && in.front() <= '9') {
      millis += (in.front() - '0') * scale;
      scale /= 10;
      in.remove_prefix(1);
      ++digits;
    }
    if (digits == 0 || digits > 9) return BadTime(text);
  }
  int offset_minutes = 0;
  if (in.empty()) return BadTime(text);
  const char zone = in.front();
  in.remove_prefix(1);
  if (zone == '+' || zone == '-') {
    int oh = 0, om = 0;
    if (!TakeNumber(in, 2, oh) || !TakeChar(in, ':') || !TakeNumber(in, 2, om))
      return BadTime(text);
    offset_minutes = (zone == '-' ? -1 : 1) * (oh * 60 + om);
  } else if (zone != 'Z' && zone != 'z') {
    return BadTime(text);
  }
  const year_month_day ymd{year(year_n), month(static_cast<unsigned>(month_n)),
                           day(static_cast<unsigned>(day_n))};
  if (!in.empty() || !ymd.ok() || hour > 23 || minute > 59 || second > 60) return BadTime(text);
  return WallTime(sys_days(ymd).time_since_epoch() + hours(hour) +
                  minutes(minute - offset_minutes) + seconds(second) + Millis(millis));
}

Result<Millis> ParseDuration(std::string_view text) {
  const Error bad(Code::kInvalidArgument,
                  fmt::format("'{}' is not a duration; write e.g. 90s, 5m, 1h30m", text));
  std::string_view in = text;
  if (in.empty()) return bad;
  if (in == "0") return Millis(0);
  double total = 0;
  while (!in.empty()) {
    size_t n = 0;
    double number = 0;
    double scale = 0;
    while (n < in.size() && ((in[n] >= '0' && in[n] <= '9') || in[n] == '.')) {
      if (in[n] == '.') {
        if (scale != 0) return bad;
        scale = 1;
      } else if (scale != 0) {
        scale /= 10;
        number += (in[n] - '0') * scale;
      } else {
        number = number * 10 + (in[n] - '0');
      }
      ++n;
    }
    if (n == 0) return bad;
    in.remove_prefix(n);
    struct Unit {
      std::string_view name;
      double millis;
    };
    constexpr std::array<Unit, 5> kUnits{
        {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
    bool found = false;
    for (const auto& u : kUnits) {
      if (in.substr(0, u.name.size()) != u.name) continue;
      total += number * u.millis;
      in.remove_prefix(u.name.size());
      found = true;
      break;
    }
    if (!found) return bad;
  }
  if (total > static_cast<double>(std::numeric_limits<int64_t>::max()) / 4) return bad;
  return Millis(static_cast<int64_t>(total + 0.5));
}

std::string FormatDuration(Millis d) {
  int64_t ms = d.count();
  if (ms == 0) return "0s";
  std::string out = ms < 0 ? "-" : "";
  if (ms < 0) ms = -ms;
  if (ms >= 3'600'000) out += fmt::format("{}h", ms / 3'600'000);
  if (ms / 60'000 % 60 != 0) out += fmt::format("{}m", ms / 60'000 % 60);
  if (ms / 1000 % 60 != 0) out += fmt::format("{}s", ms / 1000 % 60);
  if (ms % 1000 != 0) out += fmt::format("{}ms", ms % 1000);
  return out;
}

}  // namespace expanse
