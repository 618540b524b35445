// SPDX-License-Identifier: Apache-2.0
// What a record tells about the life of the run it speaks of.
#pragma once

#include <cstdint>
#include <string>

#include "data_plane/identity/assign_runs.h"
#include "data_plane/identity/run_key.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::data_plane {

/// A key with what it proves, ready for Fragments::Resolve.
struct Sight {
  common::v1::RunKey key;
  Alias weak;
  Fragment seen;
};

/// Facts of scheduler tools complete their key: the submission time, and the start of a run that
/// has started (of a waiting one it is a guess of the scheduler's).
Sight SightOfFacts(const data::v1::ExecutionFacts& facts, int64_t observed_ms,
                   const std::string& node);
/// Any other record: `what` names its kind.
Sight SightOfKey(const common::v1::RunKey& key, int64_t observed_ms, const std::string& what,
                 const std::string& node, const std::string& step_id);

}  // namespace expanse::data_plane
