// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/slurm_text.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse::collect::slurm {
namespace {

constexpr int kOutOfMemorySignal = 125;
/// Largest real-time signal of Linux; a shell's 128 + n is a signal only up to here.
constexpr int kMaxSignal = 64;
constexpr double kCentury = 36525.0 * 86'400;

bool IsDigits(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (c < '0' || c > '9') return false;
  return true;
}

/// One bracket's ranges ("1-3,07") appended to every prefix.
bool ExpandRanges(std::string_view ranges, const std::vector<std::string>& prefixes,
                  size_t max_hosts, std::vector<std::string>* out) {
  for (const auto& prefix : prefixes) {
    for (std::string_view range : Split(ranges, ',')) {
      const size_t dash = range.find('-');
      const std::string_view low = range.substr(0, dash);
      const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
      if (!IsDigits(low) || !IsDigits(high)) return false;
      const auto first = ParseInt64(low), last = ParseInt64(high);
      if (!first || !last || *last < *first) return false;
      if (static_cast<uint64_t>(*last - *first) >= max_hosts) return false;
      for (int64_t n = *first; n <= *last; ++n) {
        std::string number = std::to_string(n);
        if (number.size() < low.size()) number.insert(0, low.size() - number.size(), '0');
        if (out->size() >= max_hosts) return false;
        out->push_back(prefix + number);
      }
    }
  }
  return true;
}

bool ExpandOne(std::string_view text, size_t max_hosts, std::vector<std::string>* out) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const size_t open = text.find('[');
    for (auto& name : names) name += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> expanded;
    if (!ExpandRanges(text.substr(open + 1, close - open - 1), names, max_hosts, &expanded))
      return false;
    names = std::move(expanded);
    text.remove_prefix(close + 1);
  }
  for (auto& name : names) {
    if (name.empty() || name.find(']') != std::string::npos || out->size() >= max_hosts)
      return false;
    out->push_back(std::move(name));
  }
  return true;
}

/// "a:b" with two decimal numbers.
std::optional<std::pair<int, int>> ParsePair(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto a = ParseInt64(text.substr(0, colon)), b = ParseInt64(text.substr(colon + 1));
  if (!a || !b || *a < 0 || *b < 0 || *a > 255 || *b > 255) return std::nullopt;
  return std::pair<int, int>(static_cast<int>(*a), static_cast<int>(*b));
}

ExitStatus Normalise(int code, int signal) {
  ExitStatus out;
  if (signal == kOutOfMemorySignal) {
    out.out_of_memory = true;
  } else if (signal != 0) {
    out.signal = signal;
  } else if (code > 128 && code <= 128 + kMaxSignal) {
    out.code = code;
    out.signal = code - 128;
  } else {
    out.code = code;
  }
  return out;
}

void AddGpu(std::string_view key, std::string_view value, Tres* out, bool* typed) {
  const auto count = ParseInt64(value);
  if (!count) return;
  const size_t colon = key.find(':');
  if (colon == std::string_view::npos) {  // the untyped line counts every type
    out->gpus = *count;
    return;
  }
  const std::string type(key.substr(colon + 1));
  if (!out->gpus) out->gpus = *count;
  out->gpu_type = (!*typed || out->gpu_type == type) ? type : "";
  *typed = true;
}

}  // namespace

std::optional<int64_t> ParseSlurmSize(std::string_view text, int64_t bare_unit) {
  if (!text.empty() && (text.back() == 'n' || text.back() == 'c')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  double unit = static_cast<double>(bare_unit);
  switch (text.back()) {
    case 'K':
      unit = static_cast<double>(kKiB);
      break;
    case 'M':
      unit = static_cast<double>(kMiB);
      break;
    case 'G':
      unit = static_cast<double>(kGiB);
      break;
    case 'T':
      unit = static_cast<double>(kTiB);
      break;
    case 'P':
      unit = static_cast<double>(kTiB) * 1024;
      break;
    default:
      break;
  }
  if (text.back() > '9') text.remove_suffix(1);
  const auto number = ParseDouble(text);
  if (!number || !(*number >= 0) || *number * unit >= 9e18) return std::nullopt;
  return static_cast<int64_t>(std::llround(*number * unit));
}

std::optional<double> ParseSlurmDuration(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto parsed = ParseInt64(text.substr(0, dash));
    if (!parsed || *parsed < 0) return std::nullopt;
    days = *parsed;
    text.remove_prefix(dash + 1);
  }
  const auto parts = Split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  double total = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!IsDigits(parts[i])) return std::nullopt;
    const auto part = ParseInt64(parts[i]);
    if (!part) return std::nullopt;
    total = (total + static_cast<double>(*part)) * 60;
  }
  const auto seconds = ParseDouble(parts.back());
  if (!seconds || !(*seconds >= 0)) return std::nullopt;
  total += static_cast<double>(days) * 86'400 + *seconds;
  if (total > kCentury) return std::nullopt;
  return total;
}

std::optional<int64_t> ParseSlurmTime(std::string_view text) {
  if (IsDigits(text)) {
    const auto seconds = ParseInt64(text);
    if (!seconds || *seconds <= 0 || *seconds >= kSlurmNotSet) return std::nullopt;
    return *seconds;
  }
  // Without SLURM_TIME_FORMAT (recorded outputs): "2026-11-30T21:16:07".
  if (text.size() != 19) return std::nullopt;
  const auto parsed = ParseRfc3339(std::string(text) + "Z");
  if (!parsed.ok()) return std::nullopt;
  return ToUnixMillis(*parsed) / 1000;
}

std::optional<int64_t> ParseSlurmCount(std::string_view text) {
  const auto count = ParseInt64(text);
  if (!count || *count <= 0) return std::nullopt;
  return count;
}

Tres ParseTres(std::string_view text, int64_t memory_unit) {
  Tres out;
  bool typed = false;
  for (std::string_view item : Split(text, ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
    out.empty = false;
    if (key == "cpu") {
      if (value.find(':') != std::string_view::npos)
        out.cpu_seconds = ParseSlurmDuration(value);
      else
        out.cpus = ParseSlurmCount(value);
    } else if (key == "mem") {
      out.memory_bytes = ParseSlurmSize(value, memory_unit);
    } else if (key == "node") {
      out.nodes = ParseSlurmCount(value);
    } else if (key == "gres/gpu" || key.starts_with("gres/gpu:")) {
      AddGpu(key, value, &out, &typed);
    }
  }
  return out;
}

std::optional<std::vector<std::string>> ExpandHostList(std::string_view text, size_t max_hosts) {
  std::vector<std::string> out;
  if (IsSlurmNull(text)) return out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (!ExpandOne(text.substr(start, i - start), max_hosts, &out)) return std::nullopt;
    start = i + 1;
  }
  if (depth != 0) return std::nullopt;
  return out;
}

ExitStatus FromWaitStatus(int64_t wait_status) {
  const int signal = static_cast<int>(wait_status & 0x7f);
  return Normalise(static_cast<int>((wait_status >> 8) & 0xff), signal);
}

std::optional<ExitStatus> ParseScontrolExit(std::string_view text) {
  const auto pair = ParsePair(text);
  if (!pair) return std::nullopt;
  return Normalise(pair->first, pair->second);
}

std::optional<ExitStatus> ParseSacctExit(std::string_view text) {
  const auto pair = ParsePair(text);
  if (!pair) return std::nullopt;
  ExitStatus out = Normalise(pair->first, pair->second);
  if (pair->second != 0 || pair->first == 0 || pair->first > kMaxSignal) return out;
  const int n = pair->first;
  // KILL, SEGV and TERM are by far commoner ends than exit codes 9, 11 and 15; ILL, ABRT, BUS and
  // FPE are not commoner than 4, 6, 7 and 8.
  constexpr std::array<int, 3> kSignals = {9, 11, 15};
  constexpr std::array<int, 4> kCodes = {4, 6, 7, 8};
  const auto is = [n](const auto& set) {
    for (int v : set)
      if (v == n) return true;
    return false;
  };
  char why[160];
  if (is(kSignals)) {
    out.code = 128 + n;
    out.signal = n;
    std::snprintf(why, sizeof why,
                  "sacct prints exit codes from 128 on less 128: %d:0 may also be "
                  "exit code %d",
                  n, n);
    out.ambiguity = why;
  } else if (is(kCodes)) {
    std::snprintf(why, sizeof why,
                  "sacct prints exit codes from 128 on less 128: %d:0 may also be "
                  "signal %d",
                  n, n);
    out.ambiguity = why;
  }
  return out;
}

bool IsSlurmNull(std::string_view text) {
  return text.empty() || text == "(null)" || text == "None" || text == "N/A" || text == "Unknown" ||
         text == "None assigned" || text == "Not Set";
}

}  // namespace expanse::collect::slurm
