// SPDX-License-Identifier: Apache-2.0
#include "collect/host/cgroup_parse.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace expanse::collect::host {

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::optional<int64_t> CountOf(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadCount(const platform::Fs& fs, const std::string& path) {
  return CountOf(ReadText(fs, path));
}

std::string ReadText(const platform::Fs& fs, const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 10;
  return fs.Read(path, kMaxBytes).value_or(std::string());
}

void ReadKeyed(std::string_view text, std::initializer_list<KeyedField> fields) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, space);
    for (const KeyedField& field : fields)
      if (field.key == key) *field.out = CountOf(line.substr(space + 1));
  }
}

std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key) {
  std::optional<int64_t> value;
  ReadKeyed(text, {{key, &value}});
  return value;
}

std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

std::optional<int64_t> Times(std::optional<int64_t> a, int64_t factor) {
  int64_t product = 0;
  if (!a || __builtin_mul_overflow(*a, factor, &product)) return std::nullopt;
  return product;
}

std::optional<int64_t> Reclaimable(std::optional<int64_t> lru, std::optional<int64_t> file,
                                   std::optional<int64_t> shmem) {
  if (lru) return lru;
  if (!file || !shmem) return std::nullopt;
  return std::max<int64_t>(0, *file - *shmem);
}

Pressure ParsePressure(std::string_view text) {
  Pressure pressure;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    const size_t at = line.find("total=");
    if (at == std::string_view::npos) continue;
    const auto total = CountOf(line.substr(at + 6));
    if (line.starts_with("some ")) pressure.some_us = total;
    if (line.starts_with("full ")) pressure.full_us = total;
  }
  return pressure;
}

IoBytes ParseIoStat(std::string_view text) {
  IoBytes bytes{0, 0};
  while (!text.empty()) {
    for (const std::string_view word : Split(TakeLine(&text), ' ')) {
      if (word.starts_with("rbytes=")) bytes.read = Sum(bytes.read, CountOf(word.substr(7)));
      if (word.starts_with("wbytes=")) bytes.written = Sum(bytes.written, CountOf(word.substr(7)));
    }
  }
  return bytes;
}

IoBytes ParseBlkio(std::string_view text) {
  IoBytes bytes{0, 0};
  while (!text.empty()) {
    const auto words = Split(TakeLine(&text), ' ');
    if (words.size() != 3) continue;
    if (words[1] == "Read") bytes.read = Sum(bytes.read, CountOf(words[2]));
    if (words[1] == "Write") bytes.written = Sum(bytes.written, CountOf(words[2]));
  }
  return bytes;
}

std::vector<int32_t> ParsePids(std::string_view text) {
  std::vector<int32_t> pids;
  while (!text.empty()) {
    // 0: a process of another pid namespace, which has no number here.
    const auto pid = CountOf(TakeLine(&text));
    if (pid && *pid > 0 && *pid <= INT32_MAX) pids.push_back(static_cast<int32_t>(*pid));
  }
  return pids;
}

std::optional<std::string> DigitsAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto digits = name.substr(prefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::string(digits);
}

bool IsSluid(std::string_view name) {
  if (name.size() != 14 || name[0] != 's') return false;
  return name.substr(1).find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ") ==
         std::string_view::npos;
}

}  // namespace expanse::collect::host
