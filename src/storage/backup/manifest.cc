// SPDX-License-Identifier: Apache-2.0
#include "storage/backup/manifest.h"

#include <charconv>

#include <fmt/format.h>

#include "base/strings.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"

namespace expanse::storage {
namespace {

constexpr std::string_view kFirstLine = "expanse-backup 1\n";
constexpr std::string_view kEnd = "end ";

std::string EndLine(std::string_view text) {
  return fmt::format("{}{:08x}\n", kEnd, platform::Crc32c(text));
}

Error Bad(const std::string& why) {
  return Error(Code::kDataLoss, "backup.manifest is damaged: " + why);
}

bool IsSafe(std::string_view path) {
  return !path.empty() && path.front() != '/' && platform::NormalizePath(path) == path &&
         path != ".." && !path.starts_with("../");
}

}  // namespace

std::string EncodeManifest(const std::vector<ManifestEntry>& entries) {
  std::string out(kFirstLine);
  for (const auto& entry : entries)
    out += fmt::format("{} {} {}\n", entry.size,
                       entry.crc32c.has_value() ? fmt::format("{:08x}", *entry.crc32c) : "-",
                       entry.path);
  return out + EndLine(out);
}

Result<std::vector<ManifestEntry>> ParseManifest(std::string_view text) {
  if (!text.starts_with(kFirstLine)) return Bad("it does not begin as one");
  const size_t end = text.rfind("\n" + std::string(kEnd));
  if (end == std::string_view::npos || text.substr(end + 1) != EndLine(text.substr(0, end + 1)))
    return Bad("cut off or changed");
  std::vector<ManifestEntry> entries;
  for (const auto line : Split(text.substr(kFirstLine.size(), end + 1 - kFirstLine.size()), '\n')) {
    if (line.empty()) continue;
    const size_t first = line.find(' ');
    const size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
    if (second == line.npos) return Bad("a line without three fields");
    ManifestEntry entry;
    const auto size = ParseInt64(line.substr(0, first));
    const auto crc = line.substr(first + 1, second - first - 1);
    entry.path = std::string(line.substr(second + 1));
    if (!size || *size < 0) return Bad("a size");
    entry.size = *size;
    if (crc != "-") {
      uint32_t value = 0;
      const auto [at, error] = std::from_chars(crc.data(), crc.data() + crc.size(), value, 16);
      if (error != std::errc() || at != crc.data() + crc.size()) return Bad("a checksum");
      entry.crc32c = value;
    }
    if (!IsSafe(entry.path)) return Bad("the path " + EscapeForTerminal(entry.path));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace expanse::storage
