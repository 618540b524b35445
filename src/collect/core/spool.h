// SPDX-License-Identifier: Apache-2.0
// Crash-safe queue of records between two processes that share a directory: one writer (a node's
// sampler, or the controller's uplink), one reader (the aggregator, or the sender).
//
// A spool is a directory of append-only segments. `<first sequence>.open` is being written and is
// renamed to `<first sequence>.seg` when it is full. The format is in core/spool_format.h.
// Sequences start at 1, never repeat and have no holes except where records were lost; they are
// only meaningful together with the source id, a UUID minted when the spool is created.
//
// fsync policy: write(2) is called at Flush(), so kill -9 loses nothing that was flushed;
// fdatasync(2) runs at rotation and at most once in sync_interval, so a power failure loses at most
// that much of one node. The reader makes durable what it gives out, so that no sequence that the
// data plane has seen can come again after a power failure. Whoever forgets where a record came
// from (a hook's file, the mark that a job was told of) calls Sync() before: then the record is as
// durable as that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"

namespace expanse::collect {

struct SpoolOptions {
  std::string directory;                 // created when missing (0750)
  int64_t segment_bytes = 4 << 20;       // rotation
  int64_t max_bytes = int64_t{1} << 30;  // of all segments; the oldest is dropped beyond it
  Millis sync_interval{5'000};
};

/// The only writer of a spool; holds a lock on it. Not thread-safe.
class SpoolWriter {
 public:
  /// Creates the spool or recovers one: the end of the last segment is searched for the last whole
  /// record, and writing goes on in a new segment. kFailedPrecondition: another writer is alive.
  static Result<std::unique_ptr<SpoolWriter>> Open(SpoolOptions options,
                                                   const platform::Clock& clock,
                                                   platform::Random& random);
  ~SpoolWriter();  // flushes
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  /// Takes a record into the buffer and gives it its sequence. kInvalidArgument: larger than a
  /// frame may be. Buffered records are not yet in the spool: see Flush.
  Result<uint64_t> Append(const data::v1::Record& record);
  /// The same for a record that the caller keeps until Sync was ok and brings again otherwise: when
  /// its write fails nothing is lost, so it is not counted as dropped. While writes fail it is not
  /// even taken (the error is that of a probe), so that it does not use up a sequence each time.
  Result<uint64_t> AppendKept(const data::v1::Record& record);
  /// Writes the buffer, rotates and applies the byte cap. When the disk is full (or the write fails
  /// otherwise) the buffered records are dropped and, but for kept ones, counted; the error is
  /// returned; the spool stays usable and later records go in when there is room again.
  Status Flush();
  /// Flush, and what was flushed so far survives a power failure. After an error nothing is known
  /// about what was flushed since the last Sync.
  Status Sync();

  const std::string& source_id() const;
  uint64_t next_sequence() const;
  /// Records dropped since the spool was created: byte cap and failed writes. Persisted.
  uint64_t dropped_records() const;
  /// Bytes in segments now.
  int64_t bytes() const;

 private:
  struct Impl;
  explicit SpoolWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Records with consecutive sequences, as PushRequest wants them.
struct SpoolBatch {
  std::string source_id;
  uint64_t first_sequence = 0;  // of records[0]
  std::vector<data::v1::Record> records;
  uint64_t dropped_records = 0;  // by the writer, since the spool was created

  bool empty() const { return records.empty(); }
  uint64_t last_sequence() const { return first_sequence + records.size() - 1; }
};

struct SpoolReaderStats {
  uint64_t damaged_frames = 0;      // places where a frame or a segment's header was damaged
  uint64_t lost_records = 0;        // sequences that will never come: dropped, damaged, unreadable
  uint64_t unparsable_records = 0;  // whole frames that hold no record
  int64_t waiting_bytes = 0;        // in segments, not yet acknowledged (upper bound)
};

/// Makes durable what can be read of an open file.
using SpoolSync = std::function<Status(int fd)>;

/// The only reader of a spool. Not thread-safe.
class SpoolReader {
 public:
  /// A directory that does not exist yet is an empty spool. sync: how a segment is made durable
  /// before its records are given out; empty: fdatasync(2).
  static Result<std::unique_ptr<SpoolReader>> Open(std::string directory, SpoolSync sync = nullptr);
  ~SpoolReader();
  SpoolReader(const SpoolReader&) = delete;
  SpoolReader& operator=(const SpoolReader&) = delete;

  /// The next records after those already returned, at most this many and (but for a single larger
  /// one) this many bytes. Empty: nothing new yet. A half-written frame at the end of the open
  /// segment is waited for; the same thing in a segment that has a successor, or followed by whole
  /// frames for kPatience calls, is damage, counted, and reading goes on at the next whole frame.
  /// A spool that was removed and made again is read from its beginning. After an error what was
  /// read since the last acknowledgement comes again.
  Result<SpoolBatch> Next(size_t max_records, size_t max_bytes);
  /// Durably marks everything up to this sequence of this source as delivered and deletes the
  /// segments that hold nothing else.
  Status Acknowledge(const std::string& source_id, uint64_t through);
  /// Next() starts again after the last acknowledged record (a push failed).
  void Rewind();

  uint64_t acknowledged() const;
  const SpoolReaderStats& stats() const;

 private:
  struct Impl;
  explicit SpoolReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::collect
