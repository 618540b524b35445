// SPDX-License-Identifier: Apache-2.0
// The controller's own durable queue: what the reconciler found, until the data plane has it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "collect/core/spool.h"

namespace expanse::collect::uplink {

/// Thread-safe writer. A record that was taken survives kill -9.
class RecordQueue {
 public:
  static Result<std::unique_ptr<RecordQueue>> Open(SpoolOptions options,
                                                   const platform::Clock& clock,
                                                   platform::Random& random);
  /// Appends and writes through to the file system. After an error the caller brings it again.
  Status Append(const data::v1::Record& record);
  /// What was taken so far survives a power failure too. To be called before anything is noted as
  /// told.
  Status Sync();
  uint64_t dropped_records() const;
  int64_t bytes() const;

 private:
  explicit RecordQueue(std::unique_ptr<SpoolWriter> writer) : writer_(std::move(writer)) {}
  mutable std::mutex mutex_;
  std::unique_ptr<SpoolWriter> writer_;
};

}  // namespace expanse::collect::uplink
