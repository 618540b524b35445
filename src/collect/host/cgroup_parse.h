// SPDX-License-Identifier: Apache-2.0
// Small files of the kernel, as numbers. Nothing here fails: what is not there or malformed is
// absent.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// A text that is one number; nothing for "max", another text, or an empty one.
std::optional<int64_t> CountOf(std::string_view text);
/// A file that holds one number.
std::optional<int64_t> ReadCount(const platform::Fs& fs, const std::string& path);
/// A small file's text; empty when it is not there.
std::string ReadText(const platform::Fs& fs, const std::string& path);

/// Where to put the number behind "key " at the start of a line.
struct KeyedField {
  std::string_view key;
  std::optional<int64_t>* out;
};
/// "key number" lines (memory.stat, memory.events, cpu.stat) in one pass.
void ReadKeyed(std::string_view text, std::initializer_list<KeyedField> fields);
/// One of them.
std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key);

/// a + b when both are there.
std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b);
/// a * factor when a is there.
std::optional<int64_t> Times(std::optional<int64_t> a, int64_t factor);
/// Page cache that the kernel would give back: the file LRU lists; without them (a kernel or a
/// recording that shows fewer lines) all page cache but shmem, which is counted in it.
std::optional<int64_t> Reclaimable(std::optional<int64_t> lru, std::optional<int64_t> file,
                                   std::optional<int64_t> shmem);

/// Microseconds of "some ... total=" and "full ... total=" (Documentation/accounting/psi.rst).
struct Pressure {
  std::optional<int64_t> some_us;
  std::optional<int64_t> full_us;  // absent for the CPU of old kernels
};
Pressure ParsePressure(std::string_view text);

/// Bytes over all devices.
struct IoBytes {
  std::optional<int64_t> read;
  std::optional<int64_t> written;
};
/// v2 io.stat: "8:0 rbytes=1 wbytes=2 rios=... ". An empty file is no I/O yet: zeros.
IoBytes ParseIoStat(std::string_view text);
/// v1 blkio.throttle.io_service_bytes: "8:0 Read 1", "8:0 Write 2", ..., "Total 3".
IoBytes ParseBlkio(std::string_view text);

/// The numbers of a list of process ids, one a line.
std::vector<int32_t> ParsePids(std::string_view text);

/// "job_17" with prefix "job_" is "17"; nothing when the rest is not all digits.
std::optional<std::string> DigitsAfter(std::string_view name, std::string_view prefix);
/// "s" and 13 characters of Crockford base32 (SLURM 26.05 names job directories so).
bool IsSluid(std::string_view name);

/// The next line of text, which is cut off its front; without the line feed.
std::string_view TakeLine(std::string_view* text);

}  // namespace expanse::collect::host
