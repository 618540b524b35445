// SPDX-License-Identifier: Apache-2.0
// The rows of one batch, within its transaction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data_plane/ingest/batch.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

/// Fragments, facts, log tails, bundles, cluster facts and the executions they make.
Status StoreBatch(storage::Transaction& transaction, const Scope& scope, const Batch& batch,
                  const std::vector<SeriesRun>& unknown_runs,
                  const std::function<std::string()>& new_id);

}  // namespace expanse::data_plane
