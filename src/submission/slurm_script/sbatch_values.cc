// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_values.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/strings.h"

namespace expanse::submission {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Shown(std::string_view text) { return EscapeForTerminal(ToUtf8(text.substr(0, 100))); }

Error Bad(std::string_view text, std::string_view what) {
  return Error(Code::kInvalidArgument, fmt::format("'{}' {}", Shown(text), what));
}

/// Leading white space and a '+', which strtol skips.
std::string_view SkipStrtolPrefix(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  if (text.size() > 1 && text.front() == '+' && IsDigit(text[1])) text.remove_prefix(1);
  return text;
}

/// Digits at the start; nothing when there is none or the number passes `most`.
std::optional<int64_t> TakeNumber(std::string_view* text, int64_t most) {
  size_t n = 0;
  int64_t value = 0;
  while (n < text->size() && IsDigit((*text)[n])) {
    value = value * 10 + ((*text)[n] - '0');
    if (value > most) return std::nullopt;
    ++n;
  }
  if (n == 0) return std::nullopt;
  text->remove_prefix(n);
  return value;
}

constexpr int64_t kMostMinutes = std::numeric_limits<int32_t>::max() - 1;

}  // namespace

Result<Bytes> ParseSbatchMemory(std::string_view text) {
  constexpr std::string_view kWhat =
      "is not a memory size for sbatch: a whole number with K, M, G or T (MiB without)";
  std::string_view rest = SkipStrtolPrefix(text);
  const auto number = TakeNumber(&rest, int64_t{1} << 40);
  if (!number) return Bad(text, kWhat);
  if (rest.size() == 2 && (rest[1] == 'B' || rest[1] == 'b')) rest.remove_suffix(1);
  if (rest.size() > 1) return Bad(text, kWhat);
  const char unit = rest.empty() ? 'M' : rest[0];
  int64_t factor = 0;
  switch (unit) {
    case 'K':
    case 'k':
      return Bytes{(*number + 1023) / 1024 * kMiB};
    case 'M':
    case 'm':
      factor = kMiB;
      break;
    case 'G':
    case 'g':
      factor = kGiB;
      break;
    case 'T':
    case 't':
      factor = kTiB;
      break;
    default:
      return Bad(text, kWhat);
  }
  if (*number > std::numeric_limits<int64_t>::max() / factor) return Bad(text, "is too large");
  return Bytes{*number * factor};
}

Result<SbatchTime> ParseSbatchTime(std::string_view text) {
  constexpr std::string_view kWhat =
      "is not a time limit for sbatch: minutes, m:s, h:m:s, d-h, d-h:m or d-h:m:s";
  const std::string lower = ToLower(text);
  if (lower == "-1" || lower == "infinite" || lower == "unlimited") return SbatchTime{};
  std::string_view rest = text;
  int64_t days = 0;
  const bool has_days = rest.find('-') != std::string_view::npos;
  if (has_days) {
    const auto d = TakeNumber(&rest, kMostMinutes);
    if (!d || rest.empty() || rest[0] != '-') return Bad(text, kWhat);
    days = *d;
    rest.remove_prefix(1);
  }
  std::vector<int64_t> parts;
  while (!(has_days && rest.empty() && parts.empty())) {
    const auto part = TakeNumber(&rest, kMostMinutes);
    if (!part) return Bad(text, kWhat);
    parts.push_back(*part);
    if (rest.empty()) break;
    if (rest[0] != ':' || parts.size() == 3) return Bad(text, kWhat);
    rest.remove_prefix(1);
  }
  parts.resize(3, -1);
  int64_t hours = 0;
  int64_t minutes = 0;
  int64_t seconds = 0;
  const auto or_zero = [](int64_t v) { return std::max<int64_t>(v, 0); };
  if (has_days) {
    hours = or_zero(parts[0]);
    minutes = or_zero(parts[1]);
    seconds = or_zero(parts[2]);
  } else if (parts[2] >= 0) {
    hours = parts[0];
    minutes = parts[1];
    seconds = parts[2];
  } else {
    minutes = parts[0];
    seconds = or_zero(parts[1]);
  }
  if (days > kMostMinutes / 1440 || hours > kMostMinutes / 60) return Bad(text, "is too long");
  const int64_t total = days * 1440 + hours * 60 + minutes + (seconds + 59) / 60;
  if (total > kMostMinutes) return Bad(text, "is too long");
  if (total == 0) return SbatchTime{};
  return SbatchTime{Seconds(total * 60)};
}

Result<int32_t> ParseSbatchCount(std::string_view text, std::string_view option, int32_t least) {
  std::string_view rest = SkipStrtolPrefix(text);
  const auto number = TakeNumber(&rest, std::numeric_limits<int32_t>::max());
  if (!number || !rest.empty() || *number < least) {
    return Bad(text, fmt::format("is not a whole number of at least {} for --{}", least, option));
  }
  return static_cast<int32_t>(*number);
}

Result<SbatchNodes> ParseSbatchNodes(std::string_view text) {
  constexpr std::string_view kWhat = "is not a node count: N or MIN-MAX";
  const auto take = [](std::string_view part) -> std::optional<int32_t> {
    part = SkipStrtolPrefix(part);
    auto number = TakeNumber(&part, std::numeric_limits<int32_t>::max());
    if (!number) return std::nullopt;
    if (part == "k" || part == "K") {
      *number *= 1024;
    } else if (part == "m" || part == "M") {
      *number *= 1024 * 1024;
    } else if (!part.empty()) {
      return std::nullopt;
    }
    if (*number > std::numeric_limits<int32_t>::max()) return std::nullopt;
    return static_cast<int32_t>(*number);
  };
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto n = take(text);
    if (!n) return Bad(text, kWhat);
    return SbatchNodes{*n, *n};
  }
  const auto min = dash == 0 ? std::optional<int32_t>(1) : take(text.substr(0, dash));
  const auto max = take(text.substr(dash + 1));
  if (!min || !max) return Bad(text, kWhat);
  if (*max < *min) return Bad(text, "has a maximum below its minimum");
  return SbatchNodes{*min, *max};
}

namespace {

/// "[type:]count", "type" or "" of one entry that begins at `base` of the whole text.
Result<SbatchGres> ParseGresTail(std::string_view tail, size_t base, std::string_view whole) {
  SbatchGres gres;
  gres.count_offset = std::string_view::npos;
  const size_t separator = tail.find_first_of(":=");
  std::string_view count = tail;
  size_t count_at = base;
  const bool typed = !tail.empty() && !IsDigit(tail[0]);
  if (typed) {
    gres.type = std::string(tail.substr(0, separator));
    if (separator == std::string_view::npos) return gres;
    count = tail.substr(separator + 1);
    count_at = base + separator + 1;
  }
  std::string_view rest = count;
  const auto number = TakeNumber(&rest, int64_t{1} << 40);
  if (!number) return Bad(whole, "has a count that is no number");
  int64_t factor = 1;
  if (rest == "k" || rest == "K") {
    factor = 1024;
  } else if (rest == "m" || rest == "M") {
    factor = kMiB;
  } else if (rest == "g" || rest == "G") {
    factor = kGiB;
  } else if (!rest.empty()) {
    return Bad(whole, "has a count that is no number");
  }
  gres.count = *number * factor;
  gres.count_offset = count_at;
  gres.count_length = count.size();
  return gres;
}

}  // namespace

Result<std::vector<SbatchGres>> ParseSbatchGres(std::string_view text) {
  std::vector<SbatchGres> list;
  if (ToLower(text) == "none") return list;
  size_t base = 0;
  for (const auto entry : Split(text, ',')) {
    std::string_view name = entry;
    size_t at = base;
    base += entry.size() + 1;
    if (name.substr(0, 5) == "gres:") {
      name.remove_prefix(5);
      at += 5;
    }
    const size_t colon = name.find(':');
    if (name.empty() || colon == 0) return Bad(text, "is not a list of generic resources");
    SbatchGres gres;
    gres.count_offset = std::string_view::npos;
    if (colon != std::string_view::npos) {
      if (colon + 1 == name.size()) return Bad(text, "is not a list of generic resources");
      EXPANSE_TRY(gres, ParseGresTail(name.substr(colon + 1), at + colon + 1, text));
    }
    gres.name = std::string(name.substr(0, colon));
    list.push_back(std::move(gres));
  }
  return list;
}

Result<std::vector<SbatchGres>> ParseSbatchGpus(std::string_view text, std::string_view option) {
  std::vector<SbatchGres> list;
  if (text.empty()) return list;
  size_t base = 0;
  for (const auto entry : Split(text, ',')) {
    if (entry.empty()) return Bad(text, fmt::format("is not [type:]number for --{}", option));
    EXPANSE_TRY(auto gres, ParseGresTail(entry, base, text));
    gres.name = "gpu";
    base += entry.size() + 1;
    list.push_back(std::move(gres));
  }
  return list;
}

Result<SbatchArrayShape> ParseSbatchArray(std::string_view text) {
  SbatchArrayShape shape;
  std::string_view list = text;
  const size_t percent = list.find('%');
  if (percent != std::string_view::npos) {
    std::string_view rest = list.substr(percent + 1);
    const auto at_once = TakeNumber(&rest, std::numeric_limits<int32_t>::max());
    if (at_once && *at_once > 0) shape.at_once = at_once;
    list = list.substr(0, percent);
  }
  if (list.size() >= 2 && list.front() == '[' && list.back() == ']') {
    list = list.substr(1, list.size() - 2);
  }
  constexpr std::string_view kWhat = "is not a list of array tasks, e.g. 0-15, 1,3,5 or 1-9:2%4";
  // Ranges may overlap; tasks are a set. The scheduler's MaxArraySize bounds it at 4,000,001.
  constexpr int64_t kMostTask = 4'000'000;
  std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> ranges;
  for (auto part : Split(list, ',')) {
    if (part.empty()) continue;
    const auto first = TakeNumber(&part, kMostTask);
    if (!first) return Bad(text, kWhat);
    int64_t last = *first;
    int64_t step = 1;
    if (!part.empty() && part[0] == '-') {
      part.remove_prefix(1);
      const auto to = TakeNumber(&part, kMostTask);
      if (!to || *to < *first) return Bad(text, kWhat);
      last = *to;
      if (!part.empty() && part[0] == ':') {
        part.remove_prefix(1);
        const auto by = TakeNumber(&part, kMostTask);
        if (!by || *by == 0) return Bad(text, kWhat);
        step = *by;
      }
    }
    if (!part.empty()) return Bad(text, kWhat);
    ranges.push_back({*first, {last, step}});
  }
  if (ranges.empty()) {
    shape.tasks = 1;  // sbatch takes "%3" as task 0
    return shape;
  }
  if (ranges.size() == 1) {
    const auto& [first, rest] = ranges[0];
    shape.tasks = (rest.first - first) / rest.second + 1;
    return shape;
  }
  std::vector<bool> seen(static_cast<size_t>(kMostTask) + 1);
  for (const auto& [first, rest] : ranges)
    for (int64_t i = first; i <= rest.first; i += rest.second) seen[static_cast<size_t>(i)] = true;
  shape.tasks = std::count(seen.begin(), seen.end(), true);
  return shape;
}

}  // namespace expanse::submission
