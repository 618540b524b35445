// SPDX-License-Identifier: Apache-2.0
// Execution from facts, by the fixed precedence of docs/design/overview.md. A pure function: the
// order of the rows has no part in the result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data_plane/identity/assign_runs.h"
#include "expanse/common/v1/execution.pb.h"
#include "expanse/data/v1/stored.pb.h"

namespace expanse::data_plane {

/// What the facts do not say about themselves.
struct MergeContext {
  std::string execution_id;
  std::string compute_id;
  common::v1::SourceType source_type = common::v1::SOURCE_TYPE_UNSPECIFIED;
  std::string native_id;             // raw, for a run of which no source wrote the user's form
  std::optional<int64_t> submit_ms;  // of the keys
  std::optional<int64_t> start_ms;
  int32_t attempt = 1;
  std::string first_attempt_execution_id;  // empty on the first
  Superseded superseded = Superseded::kNo;
};

/// Rows ordered by precedence: sacct, scontrol, epilog and task hooks, prolog, squeue, cgroup,
/// submission; newest first within one.
std::vector<const data::v1::StoredFacts*> ByPrecedence(
    const std::vector<data::v1::StoredFacts>& rows);

common::v1::Execution Merge(const MergeContext& context,
                            const std::vector<data::v1::StoredFacts>& rows);

}  // namespace expanse::data_plane
