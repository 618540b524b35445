// SPDX-License-Identifier: Apache-2.0
// Reads squeue: `squeue --json` of 22.05 (which lists ended jobs too, for MinJobAge seconds), and a
// text form for installations without the JSON serializer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// kDataLoss: nothing, cut off, or an answer that lists errors. An answer with no jobs is an empty
/// batch; whether that is believed is the caller's question.
Result<RecordBatch> ParseSqueueJson(std::string_view text);

/// squeue arguments of the text form. Every field is followed by the mark, which must be a word
/// that no field can hold (random for each call); a field may then hold anything.
std::vector<std::string> SqueueTextArguments(std::string_view mark);
/// kDataLoss: the last record is not whole.
Result<RecordBatch> ParseSqueueText(std::string_view text, std::string_view mark);

}  // namespace expanse::collect::slurm
