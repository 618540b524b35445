// SPDX-License-Identifier: Apache-2.0
#include "collect/uplink/record_queue.h"

namespace expanse::collect::uplink {

Result<std::unique_ptr<RecordQueue>> RecordQueue::Open(SpoolOptions options,
                                                       const platform::Clock& clock,
                                                       platform::Random& random) {
  EXPANSE_TRY(auto writer, SpoolWriter::Open(std::move(options), clock, random));
  return std::unique_ptr<RecordQueue>(new RecordQueue(std::move(writer)));
}

Status RecordQueue::Append(const data::v1::Record& record) {
  const std::lock_guard lock(mutex_);
  EXPANSE_TRY([[maybe_unused]] const uint64_t sequence, writer_->AppendKept(record));
  return writer_->Flush();
}

Status RecordQueue::Sync() {
  const std::lock_guard lock(mutex_);
  return writer_->Sync();
}

uint64_t RecordQueue::dropped_records() const {
  const std::lock_guard lock(mutex_);
  return writer_->dropped_records();
}

int64_t RecordQueue::bytes() const {
  const std::lock_guard lock(mutex_);
  return writer_->bytes();
}

}  // namespace expanse::collect::uplink
