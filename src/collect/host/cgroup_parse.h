// SPDX-License-Identifier: Apache-2.0
// Small files of a cgroup, as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// A file that holds one number; nothing for "max", another text, or no file.
std::optional<int64_t> ReadCount(const platform::Fs& fs, const std::string& path);
/// A small file's text; empty when it is not there.
std::string ReadText(const platform::Fs& fs, const std::string& path);
/// The number behind "key " at the start of a line.
std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key);
/// a + b when both are there.
std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b);
/// Page cache that the kernel would give back: the file LRU lists; without them (a kernel or a
/// recording that shows fewer lines) all page cache but shmem, which is counted in it.
std::optional<int64_t> Reclaimable(std::optional<int64_t> lru, std::optional<int64_t> file,
                                   std::optional<int64_t> shmem);
/// Lines of a file (processes in cgroup.procs).
std::optional<int64_t> CountLines(const platform::Fs& fs, const std::string& path);

/// "job_17" with prefix "job_" is "17"; nothing when the rest is not all digits.
std::optional<std::string> DigitsAfter(std::string_view name, std::string_view prefix);

}  // namespace expanse::collect::host
