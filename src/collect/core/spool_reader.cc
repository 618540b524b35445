// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "collect/core/spool.h"
#include "collect/core/spool_files.h"
#include "collect/core/spool_format.h"
#include "platform/fs/fs.h"

namespace expanse::collect {
namespace {

/// Makes durable what of the file can be read; also what another process wrote.
Status SyncFile(int fd) {
  // A few file systems have no such thing: what can be read there is as durable as it gets.
  if (::fdatasync(fd) == 0 || errno == EINVAL || errno == EROFS) return {};
  return ErrnoError("sync before delivery", "of a spool segment", errno);
}

/// Up to length bytes at offset; fewer at the end of the file.
Result<std::string> ReadAt(int fd, const std::string& path, int64_t offset, size_t length) {
  std::string bytes(length, '\0');
  size_t done = 0;
  while (done < length) {
    const ssize_t n = ::pread(fd, bytes.data() + done, length - done,
                              static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("read spool segment", path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

// Bytes of an open segment that do not parse are looked at again so often (the uplink asks once a
// second) before they count as damage: a shared file system may show a page late.
constexpr int kPatience = 30;

enum class StepResult {
  kProgress,  // look again
  kStop,      // the batch is complete, or there is nothing more now
};

}  // namespace

struct SpoolReader::Impl {
  std::string directory;
  SpoolSync sync;
  ReaderCursor cursor;    // durable
  std::string source_id;  // of what is being read
  uint64_t expected = 1;  // next sequence
  uint64_t returned = 0;  // last sequence given out; nothing beyond it can be acknowledged
  uint64_t counted = 0;   // losses up to here are in stats already (Rewind reads twice)
  std::string counted_source;
  SpoolReaderStats stats;

  SegmentFile file;  // being read
  bool reading = false;
  FileDescriptor fd;  // stays valid when the file is renamed
  int64_t offset = 0;
  int64_t durable_to = 0;  // offset; what of the segment was given out and synced

  uint64_t stuck_segment = 0;  // where reading did not go on in the last call
  int64_t stuck_offset = 0;
  int stuck_calls = 0;

  std::string window;  // bytes of the segment from offset on
  size_t window_at = 0;

  Result<StepResult> Step(size_t max_records, size_t max_bytes, SpoolBatch* batch, size_t* bytes);
  Result<StepResult> EnterSegment(SpoolBatch* batch);
  Result<StepResult> AtEnd(bool damaged, const Frame& frame, const SpoolBatch& batch);
  bool IsGone(const std::vector<SegmentFile>& segments, bool* unlinked) const;
  bool IsOfSource(const SegmentFile& segment) const;
  Status SyncTaken(const SpoolBatch& batch);
  Result<bool> SkipDamage(const Frame& frame, uint64_t next_segment);
  bool StaysStuck(uint64_t segment, int64_t at);
  std::optional<SegmentHeader> GuessHeader(const SegmentFile& segment) const;
  Result<FrameStatus> PeekFrame(Frame* frame);
  StepResult Take(const Frame& frame, SpoolBatch* batch, size_t* bytes);
  void CountLoss(uint64_t from, uint64_t to);
  void LeaveSegment() {
    reading = false;
    fd.Reset();
    window.clear();
    window_at = 0;
  }
};

void SpoolReader::Impl::CountLoss(uint64_t from, uint64_t to) {
  from = std::max(from, counted);
  if (to > from) stats.lost_records += to - from;
  counted = std::max(counted, to);
}

/// Whether the segment may hold sequences of the source being read. The header of the lowest ones
/// decides: a spool that was removed and made again counts from 1.
bool SpoolReader::Impl::IsOfSource(const SegmentFile& segment) const {
  const FileDescriptor opened(::open(segment.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.valid()) return true;
  const auto head = ReadAt(opened.get(), segment.path, 0, kSegmentHeaderBytes);
  const auto header = head.ok() ? ParseSegmentHeader(*head) : std::nullopt;
  return !header || header->source_id == source_id;
}

/// Whether the segment being read is no longer the one in the directory.
bool SpoolReader::Impl::IsGone(const std::vector<SegmentFile>& segments, bool* unlinked) const {
  struct stat st {};
  *unlinked = ::fstat(fd.get(), &st) != 0 || st.st_nlink == 0;
  return *unlinked || std::none_of(segments.begin(), segments.end(), [&](const SegmentFile& s) {
    return s.first_sequence == file.first_sequence && s.inode == st.st_ino;
  });
}

/// What is given out may be acknowledged by the data plane. If a power failure took it back here,
/// its sequences would be given to other records, which the data plane would then take for
/// duplicates: so it is made durable first.
Status SpoolReader::Impl::SyncTaken(const SpoolBatch& batch) {
  if (batch.empty() || offset <= durable_to) return {};
  EXPANSE_CHECK_OK(sync(fd.get()));
  if (durable_to == 0) EXPANSE_CHECK_OK(SyncSpoolDirectory(directory));
  durable_to = offset;
  return {};
}

/// Chooses the segment that holds `expected`, or the next one after it.
Result<StepResult> SpoolReader::Impl::EnterSegment(SpoolBatch* batch) {
  EXPANSE_TRY(const auto segments, ListSegments(directory));
  stats.waiting_bytes = 0;
  for (const auto& s : segments) stats.waiting_bytes += s.size;
  const SegmentFile* chosen = nullptr;
  for (const auto& s : segments) {
    // Already read through: `file` is the last one that was entered and left.
    if (file.first_sequence != 0 && s.first_sequence <= file.first_sequence) continue;
    if (chosen != nullptr && (s.first_sequence > expected || !IsOfSource(*chosen))) break;
    chosen = &s;
  }
  if (chosen == nullptr) {
    // The last one was left because it had a successor: the spool was emptied or made again.
    if (file.first_sequence == 0 || segments.empty()) return StepResult::kStop;
    file = SegmentFile{};
    return StepResult::kProgress;
  }
  FileDescriptor opened(::open(chosen->path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.valid()) {
    // Renamed or dropped between listing and opening: list again, but not for ever.
    if (errno == ENOENT) return StepResult::kStop;
    return ErrnoError("open spool segment", chosen->path, errno);
  }
  EXPANSE_TRY(const auto head, ReadAt(opened.get(), chosen->path, 0, kSegmentHeaderBytes));
  auto header = ParseSegmentHeader(head);
  const bool last = chosen->first_sequence == segments.back().first_sequence;
  if (!header) {
    const bool in_creation = chosen->size <= static_cast<int64_t>(kSegmentHeaderBytes);
    if (last && (in_creation || !StaysStuck(chosen->first_sequence, 0))) return StepResult::kStop;
    ++stats.damaged_frames;
    log::Warning("spool.damaged_header", {{"segment", chosen->path}});
    header = GuessHeader(*chosen);
    if (!header) {
      file = *chosen;
      return StepResult::kProgress;
    }
  }
  if (header->source_id != source_id) {
    if (!batch->empty()) return StepResult::kStop;
    source_id = header->source_id;
    batch->source_id = source_id;
    expected = cursor.source_id == source_id ? cursor.acknowledged + 1 : header->first_sequence;
    if (counted_source != source_id) counted = expected;  // else after Rewind: counted before
    counted_source = source_id;
    returned = expected - 1;
  }
  file = *chosen;
  fd = std::move(opened);
  reading = true;
  durable_to = 0;
  offset = kSegmentHeaderBytes;
  window.clear();
  window_at = 0;
  return StepResult::kProgress;
}

/// Whether reading stopped at the same place in so many calls that it will not go on by itself.
bool SpoolReader::Impl::StaysStuck(uint64_t segment, int64_t at) {
  if (stuck_segment != segment || stuck_offset != at) stuck_calls = 0;
  stuck_segment = segment;
  stuck_offset = at;
  return ++stuck_calls > kPatience;
}

/// What a damaged header said: the name has the sequence, and a spool has one source.
std::optional<SegmentHeader> SpoolReader::Impl::GuessHeader(const SegmentFile& segment) const {
  SegmentHeader header{source_id, segment.first_sequence};
  if (header.source_id.empty())
    if (const auto state = ReadWriterState(directory)) header.source_id = state->source_id;
  if (header.source_id.empty()) return std::nullopt;
  return header;
}

/// Goes to the next whole frame after the damage at offset. False: there is none.
Result<bool> SpoolReader::Impl::SkipDamage(const Frame& frame, uint64_t next_segment) {
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoError("look at spool segment", file.path, errno);
  const int64_t left = std::max<int64_t>(0, st.st_size - offset);
  EXPANSE_TRY(const auto bytes, ReadAt(fd.get(), file.path, offset, static_cast<size_t>(left)));
  // Bytes inside a payload that only look like a frame cannot claim more than fits.
  const uint64_t below =
      next_segment != 0 ? next_segment : expected + bytes.size() / kFrameHeaderBytes + 1;
  const auto found = FindNextFrame(bytes, frame.size, expected, below);
  if (!found) return false;
  log::Warning("spool.damaged_frame",
               {{"segment", file.path}, {"offset", offset}, {"bytes", *found}});
  ++stats.damaged_frames;
  offset += static_cast<int64_t>(*found);
  window.clear();
  window_at = 0;
  return true;
}

/// Nothing more can be read here now. Moves on when a later segment exists.
Result<StepResult> SpoolReader::Impl::AtEnd(bool damaged, const Frame& frame,
                                            const SpoolBatch& batch) {
  EXPANSE_TRY(const auto segments, ListSegments(directory));
  const bool has_successor =
      !segments.empty() && segments.back().first_sequence > file.first_sequence;
  bool unlinked = false;
  const bool is_gone = IsGone(segments, &unlinked);
  if (!has_successor && !is_gone) {
    if (damaged && StaysStuck(file.first_sequence, offset)) {
      EXPANSE_TRY(const bool skipped, SkipDamage(frame, 0));
      if (skipped) return StepResult::kProgress;
    }
    window.clear();  // read the end afresh next time; a shared file system may show old bytes
    window_at = 0;
    return StepResult::kStop;
  }
  // The writer may have written more and rotated since the window was read.
  struct stat st {};
  if (::fstat(fd.get(), &st) == 0 &&
      st.st_size > offset + static_cast<int64_t>(window.size() - window_at)) {
    window.clear();
    window_at = 0;
    return StepResult::kProgress;
  }
  if (damaged) {
    const auto next = std::find_if(segments.begin(), segments.end(), [this](const auto& s) {
      return s.first_sequence > file.first_sequence;
    });
    EXPANSE_TRY(const bool skipped,
                SkipDamage(frame, next == segments.end() ? 0 : next->first_sequence));
    if (skipped) return StepResult::kProgress;
    ++stats.damaged_frames;
    log::Warning("spool.damaged_frame", {{"segment", file.path}, {"offset", offset}});
  }
  EXPANSE_CHECK_OK(SyncTaken(batch));
  LeaveSegment();
  if (!is_gone) return StepResult::kProgress;
  // Dropped, or the spool was removed or moved away: what is there now need not come after it.
  file = SegmentFile{};
  // A file system whose inode numbers change must not keep us here for ever.
  return unlinked ? StepResult::kProgress : StepResult::kStop;
}

/// Parses at the current offset, reading as much of the file as the frame needs.
Result<FrameStatus> SpoolReader::Impl::PeekFrame(Frame* frame) {
  constexpr size_t kChunk = 256 << 10;
  size_t want = kFrameHeaderBytes;
  for (;;) {
    const std::string_view have = std::string_view(window).substr(window_at);
    if (have.size() >= want) {
      const FrameStatus status = ParseFrame(have, frame);
      if (status != FrameStatus::kIncomplete) return status;
      want = std::max(want, frame->size);
    }
    if (have.size() >= want) return FrameStatus::kIncomplete;
    EXPANSE_TRY(auto more, ReadAt(fd.get(), file.path, offset + static_cast<int64_t>(have.size()),
                                  std::max(kChunk, want - have.size())));
    if (more.empty()) {
      if (have.empty()) return FrameStatus::kIncomplete;
      const FrameStatus status = ParseFrame(have, frame);
      return status;
    }
    window.erase(0, window_at);
    window_at = 0;
    window += more;
  }
}

StepResult SpoolReader::Impl::Take(const Frame& frame, SpoolBatch* batch, size_t* bytes) {
  const auto advance = [&] {
    offset += static_cast<int64_t>(frame.size);
    window_at += frame.size;
  };
  if (frame.sequence < expected) {  // before the cursor
    advance();
    return StepResult::kProgress;
  }
  if (frame.sequence > expected) {
    if (!batch->empty()) return StepResult::kStop;  // a batch has no holes
    CountLoss(expected, frame.sequence);
    expected = frame.sequence;
  }
  data::v1::Record record;
  if (!record.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()))) {
    if (!batch->empty()) return StepResult::kStop;
    if (expected >= counted) ++stats.unparsable_records;
    CountLoss(expected, expected + 1);
    ++expected;
    advance();
    return StepResult::kProgress;
  }
  if (batch->empty()) batch->first_sequence = frame.sequence;
  batch->records.push_back(std::move(record));
  *bytes += frame.payload.size();
  returned = frame.sequence;
  ++expected;
  advance();
  return StepResult::kProgress;
}

Result<StepResult> SpoolReader::Impl::Step(size_t max_records, size_t max_bytes, SpoolBatch* batch,
                                           size_t* bytes) {
  if (batch->records.size() >= max_records) return StepResult::kStop;
  if (!reading) return EnterSegment(batch);
  Frame frame;
  EXPANSE_TRY(const FrameStatus status, PeekFrame(&frame));
  if (status == FrameStatus::kWhole) {
    if (!batch->empty() && *bytes + frame.payload.size() > max_bytes) return StepResult::kStop;
    return Take(frame, batch, bytes);
  }
  const bool clean_end = status == FrameStatus::kIncomplete && window.size() == window_at;
  return AtEnd(!clean_end, frame, *batch);
}

SpoolReader::SpoolReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SpoolReader::~SpoolReader() = default;

Result<std::unique_ptr<SpoolReader>> SpoolReader::Open(std::string directory, SpoolSync sync) {
  auto impl = std::make_unique<Impl>();
  impl->sync = sync != nullptr ? std::move(sync) : SyncFile;
  impl->directory = std::move(directory);
  if (auto cursor = ReadCursor(impl->directory)) impl->cursor = *cursor;
  auto reader = std::unique_ptr<SpoolReader>(new SpoolReader(std::move(impl)));
  reader->Rewind();
  return reader;
}

Result<SpoolBatch> SpoolReader::Next(size_t max_records, size_t max_bytes) {
  SpoolBatch batch;
  batch.source_id = impl_->source_id;
  size_t bytes = 0;
  for (;;) {
    auto step = impl_->Step(max_records, max_bytes, &batch, &bytes);
    if (step.ok() && *step == StepResult::kStop)
      if (const Status synced = impl_->reading ? impl_->SyncTaken(batch) : Status(); !synced.ok())
        step = synced.error();
    if (!step.ok()) {
      Rewind();  // what was read so far is not given out: it comes again
      return step.error();
    }
    if (*step == StepResult::kStop) break;
  }
  if (!batch.empty()) {
    const auto state = ReadWriterState(impl_->directory);
    if (state && state->source_id == batch.source_id)
      batch.dropped_records = state->dropped_records;
  }
  return batch;
}

Status SpoolReader::Acknowledge(const std::string& source_id, uint64_t through) {
  Impl& s = *impl_;
  if (source_id != s.source_id)
    return Error(Code::kInvalidArgument, "acknowledgement of source " + source_id +
                                             " while reading " + s.source_id + " in " +
                                             s.directory);
  if (through > s.returned)
    return Error(Code::kInvalidArgument, "acknowledgement through " + std::to_string(through) +
                                             " in " + s.directory + ", but only " +
                                             std::to_string(s.returned) + " was read");
  if (s.cursor.source_id == source_id && through <= s.cursor.acknowledged) return {};
  const ReaderCursor cursor{source_id, through};
  EXPANSE_CHECK_OK(WriteCursor(s.directory, cursor));
  s.cursor = cursor;
  EXPANSE_TRY(const auto segments, ListSegments(s.directory));
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    if (segments[i + 1].first_sequence > through + 1 || !s.IsOfSource(segments[i])) break;
    EXPANSE_CHECK_OK(platform::Fs().Remove(segments[i].path));
  }
  return {};
}

void SpoolReader::Rewind() {
  Impl& s = *impl_;
  s.LeaveSegment();
  s.file = SegmentFile{};
  if (s.source_id.empty() || s.cursor.source_id == s.source_id) {
    s.source_id = s.cursor.source_id;
    s.expected = s.cursor.acknowledged + 1;
  } else {
    s.source_id.clear();  // nothing of this source is acknowledged: start at its beginning
    s.expected = 1;
  }
  s.returned = s.expected - 1;
}

uint64_t SpoolReader::acknowledged() const { return impl_->cursor.acknowledged; }
const SpoolReaderStats& SpoolReader::stats() const { return impl_->stats; }

}  // namespace expanse::collect
