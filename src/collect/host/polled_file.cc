// SPDX-License-Identifier: Apache-2.0
#include "collect/host/polled_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collect/host/cgroup_parse.h"

namespace expanse::collect::host {
namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr int kMaxMisses = 5;

size_t HalfOfAllowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 512;
  return static_cast<size_t>(limit.rlim_cur / 2);
}

}  // namespace

PolledFile& PolledFile::operator=(PolledFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  pool_ = std::exchange(other.pool_, nullptr);
  fd_ = std::exchange(other.fd_, -1);
  misses_ = other.misses_;
  return *this;
}

void PolledFile::Close() {
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  if (pool_ != nullptr) --pool_->open_;
}

FilePool::FilePool(const platform::Fs& fs, size_t max_open)
    : fs_(fs), max_open_(max_open == 0 ? HalfOfAllowed() : max_open), buffer_(kMaxBytes, '\0') {}

std::optional<std::string_view> FilePool::Read(PolledFile* file, const std::string& directory,
                                               const char* name) {
  if (file->misses_ >= kMaxMisses) return std::nullopt;
  const bool was_open = file->fd_ >= 0;
  if (!was_open) {
    path_.assign(fs_.root()).append(directory).append("/").append(name);
    file->fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file->fd_ < 0) {
      if (errno == ENOENT || errno == ENODEV || errno == EACCES) ++file->misses_;
      return std::nullopt;
    }
    file->pool_ = this;
    ++open_;
  }
  // One call: the kernel gives a file of one record, as all these are, in one piece.
  const ssize_t n = ::pread(file->fd_, buffer_.data(), buffer_.size(), 0);
  if (n < 0) {
    // EOPNOTSUPP: a file that cannot be read in this state (pressure accounting switched off).
    if (errno == ENODEV) gone_ = true;
    if (errno == EOPNOTSUPP) file->misses_ = kMaxMisses;
    file->Close();
    return std::nullopt;
  }
  if (!was_open && open_ > max_open_) file->Close();
  return std::string_view(buffer_.data(), static_cast<size_t>(n));
}

std::optional<int64_t> FilePool::ReadCount(PolledFile* file, const std::string& directory,
                                           const char* name) {
  const auto text = Read(file, directory, name);
  return text ? CountOf(*text) : std::nullopt;
}

bool FilePool::TakeGone() { return std::exchange(gone_, false); }

}  // namespace expanse::collect::host
