// SPDX-License-Identifier: Apache-2.0
#include "collect/core/spool_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/strings.h"
#include "platform/fs/fs.h"

namespace expanse::collect {
namespace {

constexpr size_t kSequenceDigits = 20;
constexpr size_t kMaxSmallFile = 4096;

using Pairs = std::map<std::string, std::string, std::less<>>;

std::optional<Pairs> ReadPairs(const std::string& path) {
  auto bytes = platform::Fs().Read(path, kMaxSmallFile);
  if (!bytes.ok()) return std::nullopt;
  Pairs pairs;
  for (auto line : Split(*bytes, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    pairs[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
  }
  return pairs;
}

uint64_t Number(const Pairs& pairs, std::string_view key) {
  const auto it = pairs.find(key);
  if (it == pairs.end()) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(0, ParseInt64(it->second).value_or(0)));
}

std::string Text(const Pairs& pairs, std::string_view key) {
  const auto it = pairs.find(key);
  return it == pairs.end() ? std::string() : it->second;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Reset(other.fd_);
    other.fd_ = -1;
  }
  return *this;
}

void FileDescriptor::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Error ErrnoError(const std::string& what, const std::string& path, int error) {
  Code code = Code::kInternal;
  if (error == ENOENT) code = Code::kNotFound;
  if (error == EACCES || error == EPERM || error == EROFS) code = Code::kPermissionDenied;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) code = Code::kResourceExhausted;
  return Error(code, what + " " + path + ": " + std::strerror(error));
}

std::string SegmentName(uint64_t first_sequence, bool open) {
  char name[40];
  std::snprintf(name, sizeof name, "%020llu.%s", static_cast<unsigned long long>(first_sequence),
                open ? "open" : "seg");
  return name;
}

Result<std::vector<SegmentFile>> ListSegments(const std::string& directory) {
  std::vector<SegmentFile> segments;
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) {
    if (errno == ENOENT) return segments;
    return ErrnoError("read spool directory", directory, errno);
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    const bool open = name.ends_with(".open");
    if (!open && !name.ends_with(".seg")) continue;
    const auto digits = name.substr(0, name.find('.'));
    const auto first = ParseInt64(digits);
    if (digits.size() != kSequenceDigits || !first || *first <= 0) continue;
    SegmentFile file{static_cast<uint64_t>(*first), 0, open, directory + "/" + std::string(name)};
    struct stat st {};
    // Gone already: the other side deleted or renamed it; the next listing has it right.
    if (::stat(file.path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    file.size = st.st_size;
    segments.push_back(std::move(file));
  }
  ::closedir(dir);
  std::sort(segments.begin(), segments.end(), [](const SegmentFile& a, const SegmentFile& b) {
    return a.first_sequence < b.first_sequence;
  });
  return segments;
}

std::optional<WriterState> ReadWriterState(const std::string& directory) {
  const auto pairs = ReadPairs(directory + "/state");
  if (!pairs) return std::nullopt;
  WriterState state{Text(*pairs, "source_id"),
                    std::max<uint64_t>(1, Number(*pairs, "next_sequence")),
                    Number(*pairs, "dropped_records")};
  if (!IsUuid(state.source_id)) return std::nullopt;
  return state;
}

Status WriteWriterState(const std::string& directory, const WriterState& state) {
  return platform::Fs().WriteAtomic(
      directory + "/state",
      "source_id=" + state.source_id + "\nnext_sequence=" + std::to_string(state.next_sequence) +
          "\ndropped_records=" + std::to_string(state.dropped_records) + "\n",
      0640);
}

std::optional<ReaderCursor> ReadCursor(const std::string& directory) {
  const auto pairs = ReadPairs(directory + "/cursor");
  if (!pairs) return std::nullopt;
  ReaderCursor cursor{Text(*pairs, "source_id"), Number(*pairs, "acknowledged")};
  if (!IsUuid(cursor.source_id)) return std::nullopt;
  return cursor;
}

Status WriteCursor(const std::string& directory, const ReaderCursor& cursor) {
  return platform::Fs().WriteAtomic(directory + "/cursor",
                                    "source_id=" + cursor.source_id + "\nacknowledged=" +
                                        std::to_string(cursor.acknowledged) + "\n",
                                    0640);
}

}  // namespace expanse::collect
