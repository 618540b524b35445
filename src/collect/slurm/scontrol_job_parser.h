// SPDX-License-Identifier: Apache-2.0
// Reads `scontrol show job -dd` (several records) and its one-line form. The text has no quoting:
// JobName, Command, WorkDir, Comment and the paths are printed raw and may hold blanks, '=', quotes
// and line breaks, up to a whole forged record. Fields are therefore found by the fixed order of
// keys, and names are checked against what another tool said (squeue --json quotes them).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// Exact job names by raw job id.
using KnownNames = std::map<int64_t, std::string>;

/// known: when given, a record of a job that is not in it, or whose name differs, is a problem
/// instead of a record. When null, a record that could be read in two ways is a problem.
RecordBatch ParseScontrolJobs(std::string_view text, const KnownNames* known);

}  // namespace expanse::collect::slurm
