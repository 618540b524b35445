// SPDX-License-Identifier: Apache-2.0
// The parts of Merge, one subject each. Rows are in precedence order.
#pragma once

#include <string>
#include <vector>

#include "data_plane/merge/merge.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::data_plane {

using OrderedRows = std::vector<const data::v1::StoredFacts*>;

/// Rank in the precedence; 0 is the strongest.
int OriginRank(int origin);
/// Hooks and cgroups speak of the node they ran on; scheduler tools of the whole run.
bool IsNodeScoped(const data::v1::StoredFacts& row);
/// A row of one step on one node has the step's numbers in steps[], and then those at the top are
/// the whole job's on that node (TaskEpilog reads both cgroups); or it has the step's at the top.
bool SpeaksOfWholeRun(const data::v1::StoredFacts& row);
/// Status, outcome, cause, scheduler's words, exit code, times.
void MergeLifecycle(const MergeContext& context, const OrderedRows& rows,
                    common::v1::Execution* out);
/// requested by first sight, allocated by precedence.
void MergeResources(const OrderedRows& rows, common::v1::Execution* out);
/// Steps from accounting and hooks; each over all its nodes.
void MergeSteps(const OrderedRows& rows, common::v1::Execution* out);
/// Peaks, CPU seconds, runtime and GPU of the whole run; after steps and lifecycle.
void MergeMeasurements(const OrderedRows& rows, common::v1::Execution* out);
/// Names each important field that is unseen, with the reason; after everything else.
void NameUnknowns(const OrderedRows& rows, common::v1::Execution* out);

bool IsEnded(const common::v1::Execution& execution);

}  // namespace expanse::data_plane
