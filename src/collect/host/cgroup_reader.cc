// SPDX-License-Identifier: Apache-2.0
#include "collect/host/cgroup_reader.h"

#include <algorithm>

#include "base/strings.h"
#include "collect/host/cgroup_parse.h"
#include "collect/host/cgroup_versions.h"

namespace expanse::collect::host {

std::optional<int64_t> ReadCount(const platform::Fs& fs, const std::string& path) {
  const std::string text = ReadText(fs, path);
  return text.empty() ? std::nullopt : ParseInt64(Trim(text));
}

std::string ReadText(const platform::Fs& fs, const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 10;
  return fs.Read(path, kMaxBytes).value_or(std::string());
}

std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return ParseInt64(Trim(line.substr(key.size() + 1)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

std::optional<int64_t> Reclaimable(std::optional<int64_t> lru, std::optional<int64_t> file,
                                   std::optional<int64_t> shmem) {
  if (lru) return lru;
  if (!file || !shmem) return std::nullopt;
  return std::max<int64_t>(0, *file - *shmem);
}

std::optional<int64_t> CountLines(const platform::Fs& fs, const std::string& path) {
  // Read() and not ReadText(): an empty cgroup.procs is zero processes, a missing one is unknown.
  constexpr size_t kMaxBytes = 4 << 20;
  const auto text = fs.Read(path, kMaxBytes);
  if (!text.ok()) return std::nullopt;
  return std::count(text->begin(), text->end(), '\n');
}

std::optional<std::string> DigitsAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto digits = name.substr(prefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::string(digits);
}

std::optional<int64_t> CgroupUsage::Need() const {
  if (!usage || !reclaimable) return std::nullopt;
  return std::max<int64_t>(0, *usage - *reclaimable);
}

Result<std::unique_ptr<CgroupReader>> CgroupReader::Detect(const platform::Fs& fs,
                                                           std::string node) {
  // cgroup.controllers at the mount is version 2 alone. A hybrid host has it below unified/ only,
  // and SLURM uses version 1 there (its v2 plugin refuses hybrid mode).
  if (fs.Exists("/sys/fs/cgroup/cgroup.controllers")) return NewCgroupV2Reader(fs, std::move(node));
  if (fs.Exists("/sys/fs/cgroup/memory") || fs.Exists("/sys/fs/cgroup/cpuacct"))
    return NewCgroupV1Reader(fs, std::move(node));
  return Error(Code::kNotFound,
               "no cgroup file system with a memory controller at /sys/fs/cgroup: job peaks are "
               "known from the hooks and the scheduler's accounting only");
}

}  // namespace expanse::collect::host
