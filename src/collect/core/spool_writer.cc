// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "collect/core/spool.h"
#include "collect/core/spool_files.h"
#include "collect/core/spool_format.h"
#include "platform/fs/fs.h"

namespace expanse::collect {
namespace {

constexpr mode_t kSegmentMode = 0640;
constexpr size_t kProbeBytes = 64 << 10;

/// Writes all bytes at the file's end; on failure takes back what was written.
int WriteAll(int fd, std::string_view bytes, int64_t size_before) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n == 0 ? ENOSPC : errno;
      if (::ftruncate(fd, size_before) != 0) return error;  // the reader skips a cut frame anyway
      return error;
    }
    done += static_cast<size_t>(n);
  }
  return 0;
}

}  // namespace

struct SpoolWriter::Impl {
  SpoolOptions options;
  const platform::Clock* clock = nullptr;
  WriterState state;  // next_sequence here is the next to give out
  FileDescriptor lock;
  FileDescriptor segment;  // of the open segment; invalid: none yet
  uint64_t segment_first = 0;
  int64_t segment_size = 0;
  int64_t sealed_bytes = 0;  // of the other segments, as last listed
  std::string buffer;
  uint64_t buffered = 0;  // records in it
  uint64_t kept = 0;      // of them: their writers bring them again
  bool failing = false;   // the last write or sync failed
  MonoTime last_sync{};
  bool unsynced = false;
  bool state_unsaved = false;   // the count of dropped records
  bool names_unsynced = false;  // segments were made or renamed since the last Sync

  std::string OpenPath() const {
    return options.directory + "/" + SegmentName(segment_first, true);
  }
  Status Lock();
  Status Recover(platform::Random& random);
  Status RecoverSegment(const SegmentFile& file);
  Status StartSegment(uint64_t first);
  void Seal();
  void ApplyCap();
  void DropSegment(const SegmentFile& file, uint64_t after);
  void DropBuffer(const Error& why);
  Status Probe() const;
  Result<uint64_t> Append(const data::v1::Record& record);
  void Relist();
  void SyncWhenDue();
  Status SyncNow();
  Status Write();
};

Status SpoolWriter::Impl::Lock() {
  const std::string path = options.directory + "/writer.lock";
  lock.Reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!lock.valid()) return ErrnoError("open spool lock", path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK)
    return Error(Code::kFailedPrecondition,
                 "spool " + options.directory + " is being written by another process");
  // File systems without locks (some NFS mounts): one writer is then the operator's promise.
  log::Warning("spool.no_lock", {{"path", path}, {"error", std::strerror(errno)}});
  return {};
}

Status SpoolWriter::Impl::RecoverSegment(const SegmentFile& file) {
  // A segment may exceed segment_bytes by one buffer; anything larger is not ours.
  auto bytes = platform::Fs().Read(file.path, size_t{1} << 30);
  if (!bytes.ok()) return bytes.error();
  const auto header = ParseSegmentHeader(*bytes);
  if (header && state.source_id.empty()) state.source_id = header->source_id;
  if (!header) log::Warning("spool.bad_segment_header", {{"path", file.path}});
  const uint64_t first = header ? header->first_sequence : file.first_sequence;
  SegmentEnd end;
  if (bytes->size() > kSegmentHeaderBytes)
    end = FindSegmentEnd(std::string_view(*bytes).substr(kSegmentHeaderBytes), first);
  if (end.end == 0) {
    // Kept, it would hide the next segment, which may get the same number. Bytes that are no whole
    // record were at least one: its sequence stays a gap.
    const bool had_bytes = bytes->size() > kSegmentHeaderBytes;
    if (had_bytes) log::Warning("spool.no_whole_record", {{"path", file.path}});
    state.next_sequence = std::max(state.next_sequence, first + (had_bytes ? 1 : 0));
    return platform::Fs().Remove(file.path);
  }
  state.next_sequence = std::max(state.next_sequence, end.last_sequence + 1);
  const auto keep = static_cast<off_t>(kSegmentHeaderBytes + end.end);
  if (file.open && keep < file.size) {
    log::Warning("spool.cut_frame", {{"path", file.path}, {"bytes", file.size - keep}});
    if (::truncate(file.path.c_str(), keep) != 0) return ErrnoError("truncate", file.path, errno);
  }
  if (!file.open) return {};
  return platform::Fs().Rename(file.path,
                               options.directory + "/" + SegmentName(file.first_sequence, false));
}

Status SpoolWriter::Impl::Recover(platform::Random& random) {
  if (auto saved = ReadWriterState(options.directory)) state = *saved;
  EXPANSE_TRY(const auto segments, ListSegments(options.directory));
  for (const auto& file : segments) {
    // The last one may be sealed with an old state file beside it: look where it really ends.
    const bool is_last = &file == &segments.back();
    if (file.open || is_last || file.size <= static_cast<int64_t>(kSegmentHeaderBytes))
      EXPANSE_CHECK_OK(RecoverSegment(file));
    state.next_sequence = std::max(state.next_sequence, file.first_sequence);
  }
  if (const auto cursor = ReadCursor(options.directory)) {
    if (cursor->source_id == state.source_id)
      state.next_sequence = std::max(state.next_sequence, cursor->acknowledged + 1);
  }
  if (state.source_id.empty()) state.source_id = platform::NewUuid(*clock, random);
  Relist();
  return WriteWriterState(options.directory, state);
}

Status SpoolWriter::Impl::StartSegment(uint64_t first) {
  segment_first = first;
  segment.Reset(
      ::open(OpenPath().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kSegmentMode));
  if (!segment.valid()) return ErrnoError("create spool segment", OpenPath(), errno);
  const std::string header = EncodeSegmentHeader({state.source_id, first});
  if (const int error = WriteAll(segment.get(), header, 0); error != 0) {
    segment.Reset();
    ::unlink(OpenPath().c_str());
    return ErrnoError("write spool segment", OpenPath(), error);
  }
  segment_size = static_cast<int64_t>(header.size());
  names_unsynced = true;
  return {};
}

void SpoolWriter::Impl::Seal() {
  if (!segment.valid()) return;
  if (::fdatasync(segment.get()) == 0)
    unsynced = false;
  else
    log::Error("spool.sync_failed", {{"path", OpenPath()}, {"error", std::strerror(errno)}});
  segment.Reset();
  names_unsynced = true;
  const std::string sealed = options.directory + "/" + SegmentName(segment_first, false);
  if (auto renamed = platform::Fs().Rename(OpenPath(), sealed); !renamed.ok())
    log::Warning("spool.seal_failed", {{"error", renamed.error().message()}});
  sealed_bytes += segment_size;
  segment_size = 0;
  if (auto saved = WriteWriterState(options.directory, state); !saved.ok())
    log::Warning("spool.state_not_saved", {{"error", saved.error().message()}});
}

void SpoolWriter::Impl::Relist() {
  sealed_bytes = 0;
  const auto segments = ListSegments(options.directory);
  if (!segments.ok()) return;
  for (const auto& file : *segments)
    if (!segment.valid() || file.first_sequence != segment_first) sealed_bytes += file.size;
}

void SpoolWriter::Impl::DropSegment(const SegmentFile& file, uint64_t after) {
  // Only what the reader had not delivered is a loss.
  uint64_t from = file.first_sequence;
  if (const auto cursor = ReadCursor(options.directory);
      cursor && cursor->source_id == state.source_id)
    from = std::max(from, cursor->acknowledged + 1);
  if (::unlink(file.path.c_str()) != 0) return;
  if (after > from) state.dropped_records += after - from;
  log::Warning("spool.segment_dropped",
               {{"path", file.path}, {"records", after > from ? after - from : uint64_t{0}}});
}

void SpoolWriter::Impl::ApplyCap() {
  if (sealed_bytes + segment_size <= options.max_bytes) return;
  Relist();  // the reader deletes segments too
  if (sealed_bytes + segment_size <= options.max_bytes) return;
  const auto segments = ListSegments(options.directory);
  if (!segments.ok()) return;
  int64_t total = 0;
  for (const auto& file : *segments) total += file.size;
  for (size_t i = 0; i + 1 < segments->size() && total > options.max_bytes; ++i) {
    DropSegment((*segments)[i], (*segments)[i + 1].first_sequence);
    total -= (*segments)[i].size;
  }
  Relist();
  if (auto saved = WriteWriterState(options.directory, state); !saved.ok())
    log::Warning("spool.state_not_saved", {{"error", saved.error().message()}});
}

void SpoolWriter::Impl::DropBuffer(const Error& why) {
  const uint64_t lost = buffered - kept;
  state.dropped_records += lost;
  log::Warning("spool.records_dropped",
               {{"records", lost}, {"kept", kept}, {"error", why.message()}});
  // On a full disk this may fail as well; it is written with the next records then.
  if (lost > 0) state_unsaved = !WriteWriterState(options.directory, state).ok();
}

/// Whether records could be written and made durable now.
Status SpoolWriter::Impl::Probe() const {
  const std::string path = options.directory + "/probe";
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kSegmentMode));
  if (!fd.valid()) return ErrnoError("write spool probe", path, errno);
  int error = WriteAll(fd.get(), std::string(kProbeBytes, '\0'), 0);
  if (error == 0 && ::fdatasync(fd.get()) != 0) error = errno;
  ::unlink(path.c_str());
  if (error != 0) return ErrnoError("write spool probe", path, error);
  return SyncSpoolDirectory(options.directory);
}

void SpoolWriter::Impl::SyncWhenDue() {
  if (!unsynced || clock->Mono() - last_sync < options.sync_interval) return;
  (void)SyncNow();
}

Status SpoolWriter::Impl::SyncNow() {
  last_sync = clock->Mono();
  if (unsynced && segment.valid() && ::fdatasync(segment.get()) != 0) {
    // The kernel may have dropped the pages and will not say so again: go on in a new segment.
    const Error failed = ErrnoError("sync spool segment", OpenPath(), errno);
    log::Error("spool.sync_failed", {{"error", failed.message()}});
    Seal();
    unsynced = false;
    failing = true;
    return failed;
  }
  if (unsynced && !segment.valid()) {
    unsynced = false;
    failing = true;
    return Error(Code::kUnavailable, options.directory + ": a segment could not be synced");
  }
  unsynced = false;
  if (names_unsynced) {
    const Status synced = SyncSpoolDirectory(options.directory);
    failing = !synced.ok();
    EXPANSE_CHECK_OK(synced);
  }
  names_unsynced = false;
  return {};
}

Status SpoolWriter::Impl::Write() {
  const uint64_t first = state.next_sequence - buffered;
  // Renamed or deleted behind our back (an operator's rm): go on in a new file.
  struct stat st {};
  if (segment.valid() && (::fstat(segment.get(), &st) != 0 || st.st_nlink == 0)) segment.Reset();
  if (!segment.valid()) EXPANSE_CHECK_OK(StartSegment(first));
  if (const int error = WriteAll(segment.get(), buffer, segment_size); error != 0) {
    const Error failed = ErrnoError("write spool segment", OpenPath(), error);
    Seal();  // a new segment shows the reader that the gap is not damage
    return failed;
  }
  segment_size += static_cast<int64_t>(buffer.size());
  unsynced = true;
  return {};
}

SpoolWriter::SpoolWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SpoolWriter::~SpoolWriter() {
  (void)Flush();
  (void)impl_->SyncNow();
}

Result<std::unique_ptr<SpoolWriter>> SpoolWriter::Open(SpoolOptions options,
                                                       const platform::Clock& clock,
                                                       platform::Random& random) {
  auto impl = std::make_unique<Impl>();
  // At least four segments, so that the cap never has to drop the one being written.
  options.segment_bytes = std::min(options.segment_bytes, options.max_bytes / 4);
  impl->options = std::move(options);
  impl->clock = &clock;
  impl->last_sync = clock.Mono();
  EXPANSE_CHECK_OK(platform::Fs().MakeDirs(impl->options.directory, 0750));
  EXPANSE_CHECK_OK(impl->Lock());
  EXPANSE_CHECK_OK(impl->Recover(random));
  return std::unique_ptr<SpoolWriter>(new SpoolWriter(std::move(impl)));
}

Result<uint64_t> SpoolWriter::Impl::Append(const data::v1::Record& record) {
  std::string payload;
  if (!record.SerializeToString(&payload))
    return Error(Code::kInvalidArgument, "record cannot be serialized");
  if (payload.size() > kMaxPayloadBytes)
    return Error(Code::kInvalidArgument,
                 "record of " + std::to_string(payload.size()) + " bytes is larger than a frame");
  const uint64_t sequence = state.next_sequence++;
  AppendFrame(sequence, payload, &buffer);
  ++buffered;
  return sequence;
}

Result<uint64_t> SpoolWriter::Append(const data::v1::Record& record) {
  return impl_->Append(record);
}

Result<uint64_t> SpoolWriter::AppendKept(const data::v1::Record& record) {
  if (impl_->failing) EXPANSE_CHECK_OK(impl_->Probe());
  impl_->failing = false;
  auto sequence = impl_->Append(record);
  if (sequence.ok()) ++impl_->kept;
  return sequence;
}

Status SpoolWriter::Flush() {
  Impl& s = *impl_;
  if (s.buffered > 0) {
    const Status written = s.Write();
    s.failing = !written.ok();
    if (!written.ok()) s.DropBuffer(written.error());
    s.buffer.clear();
    s.buffered = 0;
    s.kept = 0;
    if (!written.ok()) return written.error();
    if (s.state_unsaved) s.state_unsaved = !WriteWriterState(s.options.directory, s.state).ok();
    if (s.segment_size >= s.options.segment_bytes) s.Seal();
    s.ApplyCap();
  }
  s.SyncWhenDue();
  return {};
}

Status SpoolWriter::Sync() {
  EXPANSE_CHECK_OK(Flush());
  return impl_->SyncNow();
}

const std::string& SpoolWriter::source_id() const { return impl_->state.source_id; }
uint64_t SpoolWriter::next_sequence() const { return impl_->state.next_sequence; }
uint64_t SpoolWriter::dropped_records() const { return impl_->state.dropped_records; }
int64_t SpoolWriter::bytes() const { return impl_->sealed_bytes + impl_->segment_size; }

}  // namespace expanse::collect
