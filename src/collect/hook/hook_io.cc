// SPDX-License-Identifier: Apache-2.0
#include "collect/hook/hook_io.h"

#include <fcntl.h>

#include "collect/hook/hook_sys.h"

namespace expanse::collect::hook {
namespace {

constexpr char kEnd[] = "end=1";

}  // namespace

EventBuffer::EventBuffer() {
  memcpy(bytes_, kEventMagic, sizeof kEventMagic);
  size_ = sizeof kEventMagic;
}

void EventBuffer::Put(const char* prefix, const char* key, const char* value) {
  const size_t prefix_size = strlen(prefix);
  const size_t key_size = strlen(key);
  const size_t value_size = strlen(value);
  const size_t need = prefix_size + key_size + 1 + value_size + 1;
  if (value_size > kMaxValueBytes || size_ + need + sizeof kEnd > sizeof bytes_) return;
  memcpy(bytes_ + size_, prefix, prefix_size);
  size_ += prefix_size;
  memcpy(bytes_ + size_, key, key_size);
  size_ += key_size;
  bytes_[size_++] = '=';
  memcpy(bytes_ + size_, value, value_size + 1);
  size_ += value_size + 1;
}

void EventBuffer::PutNumber(const char* prefix, const char* key, int64_t value) {
  char text[24];
  FormatNumber(value, 0, text);
  Put(prefix, key, text);
}

void EventBuffer::Finish() {
  memcpy(bytes_ + size_, kEnd, sizeof kEnd);
  size_ += sizeof kEnd;
}

bool ReadSmall(const char* path, char* out, size_t size) {
  const int fd = static_cast<int>(sys::Open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd < 0) return false;
  size_t at = 0;
  while (at + 1 < size) {
    const long n = sys::Read(fd, out + at, size - 1 - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  sys::Close(fd);
  out[at] = '\0';
  return at > 0;
}

bool WriteEventFile(const char* directory, const char* kind, int64_t time_ns,
                    const EventBuffer& event) {
  char time_text[24];
  char pid_text[24];
  FormatNumber(time_ns, 20, time_text);  // names sort by time
  FormatNumber(sys::ProcessId(), 0, pid_text);
  char temporary[4096];
  char final_path[4096];
  const char* temporary_parts[] = {directory, "/.tmp-", time_text, "-", pid_text, "-", kind};
  const char* final_parts[] = {directory, "/", time_text, "-", pid_text, "-", kind};
  if (!Concat(temporary, sizeof temporary, temporary_parts, 7) ||
      !Concat(final_path, sizeof final_path, final_parts, 7))
    return false;
  const int fd = static_cast<int>(
      sys::Open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (fd < 0) return false;
  // The reader is not the job's user, whose umask may be 077.
  bool ok = sys::ChangeMode(fd, 0644) == 0;
  size_t done = 0;
  while (ok && done < event.size()) {
    const long n = sys::Write(fd, event.data() + done, event.size() - done);
    if (n <= 0) ok = false;
    if (n > 0) done += static_cast<size_t>(n);
  }
  // No fsync: an event lost in a power failure costs precision only; the reconciler is complete.
  if (sys::Close(fd) != 0) ok = false;
  if (ok && sys::Rename(temporary, final_path) != 0) ok = false;
  if (!ok) sys::Unlink(temporary);
  return ok;
}

}  // namespace expanse::collect::hook
