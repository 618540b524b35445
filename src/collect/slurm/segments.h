// SPDX-License-Identifier: Apache-2.0
// A running job that is resized (fewer nodes; from 26.05 less memory) gets another row in
// accounting: the first is RESIZING and ends at the change, the next begins there with the change
// as its submit time, a new row index and SLUID. They are one run. The rows show the new request in
// the place of the old one, so that what was asked for has to be found elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// From 24.11 on a row index of accounting is a 64-bit number that no double and no int64 holds; a
/// SLUID ("s" and 13 characters of Crockford's base 32) spells the same number, and is how it is
/// kept. Smaller indexes are the row numbers of earlier versions.
inline constexpr uint64_t kLargestRowNumber = uint64_t{1} << 53;
std::string SluidOfIndex(uint64_t index);
/// Nothing for text that is no SLUID.
std::optional<uint64_t> IndexOfSluid(std::string_view sluid);
/// When the row of a SLUID was made, in ms since 1970 (bits 10 to 50); nothing when it is no SLUID.
std::optional<int64_t> SluidTimeMs(std::string_view sluid);
/// Reads sacct's DBIndex as what it is: a row number, or a SLUID.
void ReadDbIndex(std::string_view text, JobRecord* job);

/// Rows of sacct that are parts of one run become one record at the place of the first: ids, submit
/// and start of the first part, state, end and exit of the last, the steps of all, `segments` for
/// each, and in `requested` what was asked for at first (see OriginalRequest).
void MergeSegments(RecordBatch* batch);

/// True: the row is a later part of a resized run whose first part was not in the answer.
bool IsLaterPartAlone(const JobRecord& job);

/// Puts what a resized run was asked for at first in the place of what its record shows; what
/// cannot be told is absent and named ("requested.memory_bytes").
void ShowOriginalRequest(JobRecord* run);

/// What a resized run was asked for, from its submit line and the allocation of its first steps.
/// Only what is found is set.
Tres OriginalRequest(const JobRecord& job);

}  // namespace expanse::collect::slurm
