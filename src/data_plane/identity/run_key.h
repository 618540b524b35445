// SPDX-License-Identifier: Apache-2.0
// What a RunKey proves. Strong keys name one run by themselves; what is left of a key (a native id
// with a time) is a sight of a run that identity/assign_runs places by the runs' lives.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "expanse/common/v1/execution.pb.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::data_plane {

/// One name of one run within a compute.
struct Alias {
  std::string kind;  // "uid", "nat", "sluid", "db", "start"; "weak" for a sight
  std::string value;
  auto operator<=>(const Alias&) const = default;
};

/// kInvalidArgument with the reason: nothing to identify a run by, over-long text, negative times.
Status ValidateKey(const common::v1::RunKey& key);

/// Strong names of a key, the most telling first; empty for a partial key. Times count in whole
/// seconds, as schedulers give them. No name consists of a job id alone: ids are reused. The
/// accounting row is no name alone either, since a database that is created anew counts from 1.
std::vector<Alias> StrongAliases(const common::v1::RunKey& key);

/// The name of a sight by a partial key: the same sight sent twice has the same name.
Alias WeakAlias(const common::v1::RunKey& key, int64_t observed_ms, std::string_view origin,
                std::string_view node, std::string_view step_id);

/// A UUID (version 8, RFC 9562) that follows from the alias: a batch that is stored twice after a
/// crash makes the same fragment and the same series.
std::string DerivedId(const OrgId& org, const ComputeId& compute, const Alias& alias);

/// The owner of samples with a partial key: they belong to whichever run of the native id lives at
/// their time.
ExecutionId SightSeriesOwner(const OrgId& org, const ComputeId& compute,
                             common::v1::SourceType source_type, std::string_view native_id);

/// Whole seconds in milliseconds, rounded down.
int64_t FloorToSecond(int64_t ms);

/// "prolog", "sacct", …: the names in Execution.seen_by.
std::string_view OriginName(data::v1::FactOrigin origin);

}  // namespace expanse::data_plane
