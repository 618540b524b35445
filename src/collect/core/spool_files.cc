// SPDX-License-Identifier: Apache-2.0
#include "collect/core/spool_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"

namespace expanse::collect {
namespace {

constexpr size_t kSequenceDigits = 20;
constexpr size_t kMaxSmallFile = 4096;

using Pairs = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kChecksum = "crc32c=";

std::string ChecksumLine(std::string_view text) {
  char line[24];
  std::snprintf(line, sizeof line, "crc32c=%08x\n", platform::Crc32c(text));
  return line;
}

std::string WithChecksum(std::string text) {
  text += ChecksumLine(text);
  return text;
}

// A flipped digit of a cursor would skip records for good, so that a wrong checksum is no file at
// all. Version 0.1 wrote none.
std::optional<Pairs> ParsePairs(std::string_view text) {
  if (text.size() > kMaxSmallFile) return std::nullopt;
  if (const size_t at = text.find(kChecksum); at != std::string_view::npos)
    if (text.substr(at) != ChecksumLine(text.substr(0, at))) return std::nullopt;
  Pairs pairs;
  for (auto line : Split(text, '\n')) {
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

template <typename T>
std::optional<T> ReadSmall(const std::string& path, std::optional<T> (*parse)(std::string_view)) {
  const auto bytes = platform::Fs().Read(path, kMaxSmallFile);
  if (!bytes.ok() && bytes.error().code() == Code::kNotFound) return std::nullopt;
  auto parsed = bytes.ok() ? parse(*bytes) : std::nullopt;
  if (!parsed)
    log::Warning("spool.file_damaged",
                 {{"file", path}, {"so", "it is made anew from the segments"}});
  return parsed;
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
    SegmentFile file{static_cast<uint64_t>(*first), 0, 0, open,
                     directory + "/" + std::string(name)};
    struct stat st {};
    // Gone already: the other side deleted or renamed it; the next listing has it right.
    if (::stat(file.path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    file.size = st.st_size;
    file.inode = st.st_ino;
    segments.push_back(std::move(file));
  }
  ::closedir(dir);
  std::sort(segments.begin(), segments.end(), [](const SegmentFile& a, const SegmentFile& b) {
    return a.first_sequence < b.first_sequence;
  });
  return segments;
}

std::optional<WriterState> ParseWriterState(std::string_view text) {
  const auto pairs = ParsePairs(text);
  if (!pairs) return std::nullopt;
  WriterState state{Text(*pairs, "source_id"),
                    std::max<uint64_t>(1, Number(*pairs, "next_sequence")),
                    Number(*pairs, "dropped_records")};
  if (!IsUuid(state.source_id)) return std::nullopt;
  return state;
}

std::string EncodeWriterState(const WriterState& state) {
  return WithChecksum("source_id=" + state.source_id +
                      "\nnext_sequence=" + std::to_string(state.next_sequence) +
                      "\ndropped_records=" + std::to_string(state.dropped_records) + "\n");
}

std::optional<WriterState> ReadWriterState(const std::string& directory) {
  return ReadSmall(directory + "/state", ParseWriterState);
}

Status WriteWriterState(const std::string& directory, const WriterState& state) {
  return platform::Fs().WriteAtomic(directory + "/state", EncodeWriterState(state), 0640);
}

std::optional<ReaderCursor> ParseCursor(std::string_view text) {
  const auto pairs = ParsePairs(text);
  if (!pairs) return std::nullopt;
  ReaderCursor cursor{Text(*pairs, "source_id"), Number(*pairs, "acknowledged")};
  if (!IsUuid(cursor.source_id)) return std::nullopt;
  return cursor;
}

std::string EncodeCursor(const ReaderCursor& cursor) {
  return WithChecksum("source_id=" + cursor.source_id +
                      "\nacknowledged=" + std::to_string(cursor.acknowledged) + "\n");
}

std::optional<ReaderCursor> ReadCursor(const std::string& directory) {
  return ReadSmall(directory + "/cursor", ParseCursor);
}

Status WriteCursor(const std::string& directory, const ReaderCursor& cursor) {
  return platform::Fs().WriteAtomic(directory + "/cursor", EncodeCursor(cursor), 0640);
}

Status SyncSpoolDirectory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("open spool directory", directory, errno);
  // Some network file systems have no fsync of directories: their renames are durable by
  // themselves.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    return ErrnoError("sync spool directory", directory, errno);
  return {};
}

}  // namespace expanse::collect
