// SPDX-License-Identifier: Apache-2.0
// Under which names samples of an execution are kept, and the time in which they are its own.
#pragma once

#include <vector>

#include "base/result.h"
#include "data_plane/identity/fragments.h"
#include "expanse/common/v1/execution.pb.h"
#include "storage/relational/database.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {

struct SeriesOwners {
  std::vector<ExecutionId> owners;
  /// The life of the run. Samples with a partial key (a native id) are the run's within it.
  storage::TimeRange life;
};

/// now_ms bounds a run that has not ended.
Result<SeriesOwners> OwnersOf(storage::Transaction& transaction, const OrgId& org,
                              const common::v1::Execution& execution, int64_t now_ms);

}  // namespace expanse::data_plane
