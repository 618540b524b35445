// SPDX-License-Identifier: Apache-2.0
#include "platform/fs/fs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace expanse::platform {
namespace {

Code CodeOfErrno(int e) {
  switch (e) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return Code::kResourceExhausted;
    case ELOOP:
    case EISDIR:
    case ENAMETOOLONG:
      return Code::kFailedPrecondition;
    case EEXIST:
      return Code::kAlreadyExists;
    case EIO:
      return Code::kDataLoss;
    default:
      return Code::kUnknown;
  }
}

Error SystemError(std::string_view what, std::string_view path, int e) {
  return Error(CodeOfErrno(e), fmt::format("{} {}: {}", what, path, std::strerror(e)));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  int Close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

/// Never blocks on a FIFO or a device, and refuses what is not a regular file.
Result<int> OpenRegular(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return SystemError("reading", path, errno);
  struct stat st {};
  if (::fstat(fd, &st) != 0) {
    const int e = errno;
    ::close(fd);
    return SystemError("reading", path, e);
  }
  if (!S_ISREG(st.st_mode)) {
    ::close(fd);
    return Error(Code::kFailedPrecondition, fmt::format("reading {}: not a regular file", path));
  }
  return fd;
}

Result<FileInfo> ToInfo(const std::string& path, int rc, const struct stat& st) {
  if (rc != 0) return SystemError("looking at", path, errno);
  FileInfo info;
  info.inode = st.st_ino;
  info.size = st.st_size;
  info.mode = st.st_mode;
  info.uid = st.st_uid;
  info.gid = st.st_gid;
  info.mtime_ms = int64_t{st.st_mtim.tv_sec} * 1000 + st.st_mtim.tv_nsec / 1'000'000;
  info.is_directory = S_ISDIR(st.st_mode);
  info.is_regular = S_ISREG(st.st_mode);
  info.is_symlink = S_ISLNK(st.st_mode);
  return info;
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("writing", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status SyncDirectory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError("opening directory", directory, errno);
  if (::fsync(fd.get()) != 0) return SystemError("syncing directory", directory, errno);
  return {};
}

}  // namespace

Result<std::string> Fs::Read(const std::string& path, size_t max_bytes) const {
  EXPANSE_TRY(const int raw, OpenRegular(Host(path)));
  const FileDescriptor fd(raw);
  std::string out;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("reading", Host(path), errno);
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > max_bytes)
      return Error(
          Code::kResourceExhausted,
          fmt::format("reading {}: larger than the {} bytes allowed", Host(path), max_bytes));
    out.append(buffer, static_cast<size_t>(n));
  }
}

Result<Fs::Tail> Fs::ReadTail(const std::string& path, size_t max_bytes) const {
  EXPANSE_TRY(const int raw, OpenRegular(Host(path)));
  const FileDescriptor fd(raw);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return SystemError("reading", Host(path), errno);
  Tail tail;
  tail.total = st.st_size;
  tail.offset = std::max<int64_t>(0, st.st_size - static_cast<int64_t>(max_bytes));
  tail.bytes.resize(static_cast<size_t>(tail.total - tail.offset));
  size_t done = 0;
  while (done < tail.bytes.size()) {
    const ssize_t n = ::pread(fd.get(), tail.bytes.data() + done, tail.bytes.size() - done,
                              tail.offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("reading", Host(path), errno);
    if (n == 0) break;  // truncated meanwhile
    done += static_cast<size_t>(n);
  }
  tail.bytes.resize(done);
  return tail;
}

Result<std::vector<std::string>> Fs::List(const std::string& path) const {
  DIR* dir = ::opendir(Host(path).c_str());
  if (dir == nullptr) return SystemError("listing", Host(path), errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int e = errno;
  ::closedir(dir);
  if (e != 0) return SystemError("listing", Host(path), e);
  std::sort(names.begin(), names.end());
  return names;
}

Result<FileInfo> Fs::Stat(const std::string& path) const {
  struct stat st {};
  const int rc = ::stat(Host(path).c_str(), &st);
  return ToInfo(Host(path), rc, st);
}

Result<FileInfo> Fs::LStat(const std::string& path) const {
  struct stat st {};
  const int rc = ::lstat(Host(path).c_str(), &st);
  return ToInfo(Host(path), rc, st);
}

Result<std::string> Fs::RealPath(const std::string& path) const {
  char* resolved = ::realpath(Host(path).c_str(), nullptr);
  if (resolved == nullptr) return SystemError("resolving", Host(path), errno);
  std::string out(resolved);
  std::free(resolved);
  if (!root_.empty()) {
    char* root = ::realpath(root_.c_str(), nullptr);
    if (root == nullptr) return SystemError("resolving", root_, errno);
    const std::string real_root(root);
    std::free(root);
    if (out.compare(0, real_root.size(), real_root) != 0)
      return Error(Code::kPermissionDenied,
                   fmt::format("resolving {}: leaves the root", Host(path)));
    out.erase(0, real_root.size());
    if (out.empty()) out = "/";
  }
  return out;
}

Status Fs::WriteAtomic(const std::string& path, std::string_view bytes, mode_t mode,
                       bool keep_attributes) const {
  const std::string target = Host(path);
  std::string temporary = target + ".XXXXXX";
  struct stat old {};
  const bool had_old = keep_attributes && ::stat(target.c_str(), &old) == 0;
  const int raw = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (raw < 0) return SystemError("creating a temporary file beside", target, errno);
  FileDescriptor fd(raw);
  const auto fail = [&](Error error) {
    ::unlink(temporary.c_str());
    return error;
  };
  if (auto status = WriteAll(fd.get(), bytes, temporary); !status.ok()) return fail(status.error());
  if (::fchmod(fd.get(), had_old ? old.st_mode & 07777 : mode) != 0)
    return fail(SystemError("setting the mode of", temporary, errno));
  // An unprivileged writer cannot give files away; then the owner stays the writer, as an editor's
  // rename would leave it.
  if (had_old && (old.st_uid != ::geteuid() || old.st_gid != ::getegid()) &&
      ::fchown(fd.get(), old.st_uid, old.st_gid) != 0 && ::geteuid() == 0)
    return fail(SystemError("setting the owner of", temporary, errno));
  if (::fsync(fd.get()) != 0) return fail(SystemError("syncing", temporary, errno));
  if (fd.Close() != 0) return fail(SystemError("closing", temporary, errno));
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return fail(SystemError("renaming to", target, errno));
  return SyncDirectory(DirName(target));
}

Status Fs::MakeDirs(const std::string& path, mode_t mode) const {
  const std::string host = Host(path);
  for (size_t at = 1; at != std::string::npos && at <= host.size();) {
    at = host.find('/', at);
    const std::string part = host.substr(0, at);
    if (!part.empty() && ::mkdir(part.c_str(), mode) != 0 && errno != EEXIST)
      return SystemError("creating directory", part, errno);
    if (at != std::string::npos) ++at;
  }
  struct stat st {};
  if (::stat(host.c_str(), &st) != 0) return SystemError("creating directory", host, errno);
  if (!S_ISDIR(st.st_mode))
    return Error(Code::kFailedPrecondition,
                 fmt::format("creating directory {}: a file of that name is there", host));
  return {};
}

Status Fs::Remove(const std::string& path) const {
  if (::unlink(Host(path).c_str()) != 0 && errno != ENOENT)
    return SystemError("removing", Host(path), errno);
  return {};
}

Status Fs::RemoveTree(const std::string& path) const {
  std::error_code ec;
  std::filesystem::remove_all(Host(path), ec);
  if (ec) return SystemError("removing", Host(path), ec.value());
  return {};
}

Status Fs::Rename(const std::string& from, const std::string& to) const {
  if (::rename(Host(from).c_str(), Host(to).c_str()) != 0)
    return SystemError("renaming", Host(from) + " to " + Host(to), errno);
  return {};
}

Status Fs::Chmod(const std::string& path, mode_t mode) const {
  if (::chmod(Host(path).c_str(), mode) != 0)
    return SystemError("setting the mode of", Host(path), errno);
  return {};
}

Status Fs::Chown(const std::string& path, uid_t uid, gid_t gid) const {
  if (::chown(Host(path).c_str(), uid, gid) != 0)
    return SystemError("setting the owner of", Host(path), errno);
  return {};
}

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  if (b.front() == '/') return std::string(b);
  return a.back() == '/' ? std::string(a) + std::string(b) : fmt::format("{}/{}", a, b);
}

std::string BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t at = path.rfind('/');
  return std::string(at == std::string_view::npos || path.size() == 1 ? path : path.substr(at + 1));
}

std::string DirName(std::string_view path) {
  const size_t at = path.rfind('/');
  if (at == std::string_view::npos) return ".";
  return at == 0 ? "/" : std::string(path.substr(0, at));
}

std::string NormalizePath(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().string();
}

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = fmt::format("{}/expanse.XXXXXX", base != nullptr ? base : "/tmp");
  EXPANSE_CHECK(::mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

}  // namespace expanse::platform
