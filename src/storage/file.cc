// SPDX-License-Identifier: Apache-2.0
#include "storage/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/fs/fs.h"

namespace expanse::storage {

Error FileError(std::string_view doing, const std::string& path, int error) {
  Code code = Code::kUnavailable;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EEXIST:
      code = Code::kAlreadyExists;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = Code::kResourceExhausted;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    default:
      break;
  }
  return Error(code,
               std::string(doing) + " " + path + ": " + std::generic_category().message(error));
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Result<File> File::OpenToRead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("cannot open", path, errno);
  return File(path, fd);
}

Result<File> File::CreateNew(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return FileError("cannot create", path, errno);
  return File(path, fd);
}

Status File::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("cannot write to", path_, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> File::ReadAt(int64_t offset, int64_t size) const {
  std::string out(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        pread(fd_, out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("cannot read", path_, errno);
    if (n == 0)
      return Error(Code::kDataLoss, path_ + " ends at " +
                                        std::to_string(offset + static_cast<int64_t>(done)) +
                                        " where " + std::to_string(size) + " bytes from " +
                                        std::to_string(offset) + " are expected");
    done += static_cast<size_t>(n);
  }
  return out;
}

Result<int64_t> File::Size() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return FileError("cannot look at", path_, errno);
  return int64_t{info.st_size};
}

Status File::Truncate(int64_t size) {
  if (ftruncate(fd_, size) != 0) return FileError("cannot shorten", path_, errno);
  return {};
}

Status File::Sync() {
  if (fdatasync(fd_) != 0) return FileError("cannot sync", path_, errno);
  return {};
}

Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError("cannot open directory", path, errno);
  const int error = fsync(fd) != 0 ? errno : 0;
  close(fd);
  if (error != 0) return FileError("cannot sync directory", path, error);
  return {};
}

Status MakeDirectories(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return SyncDirectory(platform::DirName(path));
  const int error = errno;
  if (error == EEXIST) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return FileError("cannot create directory", path, ENOTDIR);
  }
  const std::string parent = platform::DirName(path);
  if (error != ENOENT || parent == path || parent == ".")
    return FileError("cannot create directory", path, error);
  EXPANSE_CHECK_OK(MakeDirectories(parent));
  return MakeDirectories(path);
}

Status PublishFile(const std::string& temporary, const std::string& target) {
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return FileError("cannot rename " + temporary + " to", target, errno);
  return SyncDirectory(platform::DirName(target));
}

Status CopyFile(const std::string& from, const std::string& to) {
  constexpr int64_t kStep = int64_t{1} << 20;
  EXPANSE_TRY(const auto source, File::OpenToRead(from));
  EXPANSE_TRY(const int64_t size, source.Size());
  EXPANSE_TRY(auto target, File::CreateNew(to));
  for (int64_t at = 0; at < size; at += kStep) {
    EXPANSE_TRY(const auto bytes, source.ReadAt(at, std::min(kStep, size - at)));
    EXPANSE_CHECK_OK(target.Append(bytes));
  }
  return target.Sync();
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return FileError("cannot remove", path, errno);
  return {};
}

}  // namespace expanse::storage
