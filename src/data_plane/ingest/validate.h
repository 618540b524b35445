// SPDX-License-Identifier: Apache-2.0
// Bounds of what collectors may send. A record outside them is refused with a reason and counts as
// delivered: sent again it would be refused again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::data_plane {

inline constexpr int kMaxRecordsInBatch = 10'000;
inline constexpr size_t kMaxRecordBytes = 16 << 20;
inline constexpr size_t kMaxNameBytes = 256;       // node, step, stream
inline constexpr size_t kMaxTextBytes = 64 << 10;  // any other text of a fact
inline constexpr int kMaxSeriesInRecord = 10'000;
inline constexpr int kMaxSamplesInSeries = 100'000;
inline constexpr size_t kMaxLogTailBytes = 64 << 10;  // collectors cut and filter before sending
inline constexpr int kMaxBundleFiles = 2'000;
inline constexpr size_t kMaxBundleFileBytes = 1 << 20;
inline constexpr size_t kMaxBundleBytes = 10 << 20;
/// A sender's clock may be ahead of ours by this; a later time counts as this.
inline constexpr int64_t kMaxClockAheadMs = 5 * 60'000;

/// The request as a whole; an error here refuses all of it, nothing is acknowledged.
Status ValidateRequest(const data::v1::PushRequest& request);

/// kInvalidArgument with the reason.
Status ValidateRecord(const data::v1::Record& record);

}  // namespace expanse::data_plane
