// SPDX-License-Identifier: Apache-2.0
// Reads sacct. The text form is the main one: `sacct --json` of 22.05 has no DBIndex and no submit
// line, and prints return_code 0 for every job that was not killed by a signal. JSON is read when
// the text form is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// Which rows: every run that had a state in [from, to], or all rows of some ids. Ids are needed
/// for jobs that were cancelled before they were eligible: a window leaves them out.
struct SacctQuery {
  int64_t from = 0;  // epoch seconds
  int64_t to = 0;
  std::vector<int64_t> job_ids;  // when not empty: these ids, from `from` on
};

/// Arguments of the text form: parsable, duplicates (one row an attempt), bytes unconverted.
std::vector<std::string> SacctTextArguments(const SacctQuery& query, std::string_view mark);
/// Job rows with their steps, in sacct's order. kDataLoss: no header (nothing was answered), cut
/// off, or another set of columns than asked for.
Result<RecordBatch> ParseSacctText(std::string_view text, std::string_view mark);

std::vector<std::string> SacctJsonArguments(const SacctQuery& query);
/// Data parser of 22.05 (openapi/dbv0.0.38). Exit codes are named unknowns.
Result<RecordBatch> ParseSacctJson(std::string_view text);

}  // namespace expanse::collect::slurm
