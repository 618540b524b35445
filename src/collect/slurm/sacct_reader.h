// SPDX-License-Identifier: Apache-2.0
// Reads sacct. The text form is the main one in every version: `sacct --json` of 22.05 has no row
// index and no submit line, and prints return_code 0 for every job that was not killed by a signal;
// that of 24.11 has no SLUID; and it is twenty times as long. JSON is read when the text form is
// refused. Columns are found by the header, never by their place.
#pragma once

#include <cstdint>
#include <set>
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

/// Names of the fields that this sacct has, in lower case; empty: not asked.
using SacctFields = std::set<std::string, std::less<>>;
/// The answer to `sacct --helpformat`: names in columns.
SacctFields ParseSacctFields(std::string_view helpformat);

/// How this version of sacct speaks; see slurm_version.h.
struct SacctDialect {
  bool exact_exit_codes = false;
  MaxRssKind max_rss_kind = MaxRssKind::kUnknown;
};

/// Arguments of the text form: parsable, duplicates (one row an attempt), bytes unconverted. Only
/// fields that are offered, or those that every version has when that is not known.
std::vector<std::string> SacctTextArguments(const SacctQuery& query, std::string_view mark,
                                            const SacctFields& offered = {});
/// Job rows with their steps, in sacct's order, parts of a resized run as one. kDataLoss: no header
/// (nothing was answered), cut off, or a header without JobIDRaw, State or Submit.
Result<RecordBatch> ParseSacctText(std::string_view text, std::string_view mark,
                                   const SacctDialect& dialect = {});

std::vector<std::string> SacctJsonArguments(const SacctQuery& query);
/// Every serializer from openapi/dbv0.0.38 (22.05, whose exit codes are named unknowns) to
/// data_parser v0.0.45. max_rss_kind is not set.
Result<RecordBatch> ParseSacctJson(std::string_view text);

}  // namespace expanse::collect::slurm
