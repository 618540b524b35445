// SPDX-License-Identifier: Apache-2.0
// Reads what slurmctld knows of jobs: `squeue --json` and `scontrol show job --json` of every
// serializer from 22.05 (openapi v0.0.38) to 26.05 (data_parser v0.0.45), and a text form of squeue
// for installations without a serializer. With --states=all ended jobs are listed too, for
// MinJobAge seconds; 22.05 lists them always.
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
/// The same list of fields, from scontrol: its names are quoted, unlike those of the text form.
Result<RecordBatch> ParseScontrolJson(std::string_view text);

/// squeue arguments of the text form. Every field is followed by the mark, which must be a word
/// that no field can hold (random for each call); a field may then hold anything.
std::vector<std::string> SqueueTextArguments(std::string_view mark);
/// kDataLoss: the last record is not whole.
Result<RecordBatch> ParseSqueueText(std::string_view text, std::string_view mark);

}  // namespace expanse::collect::slurm
