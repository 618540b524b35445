// SPDX-License-Identifier: Apache-2.0
// Earlier runs of a source, from the same bundle down to the same user's job of that name.
#pragma once

#include "base/result.h"
#include "expanse/data/v1/data.pb.h"
#include "rpc/call_context.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

/// Newest first, the closest basis of each run:
///   exact_bundle    script, tree and arguments agree            similarity 1
///   similar_bundle  script and tree agree, arguments differ     similarity 0.8
///   user_history    same user and job name; of the bundle parts only those that agree count
/// Similarity is 0.5 for the script, 0.3 for the tree and 0.2 for the arguments, each where both
/// are known and equal, and at least 0.1.
Result<data::v1::ListRunsOfSourceResponse> RunsOfSource(
    storage::Transaction& transaction, const rpc::Caller& caller,
    const data::v1::ListRunsOfSourceRequest& request);

}  // namespace expanse::data_plane
