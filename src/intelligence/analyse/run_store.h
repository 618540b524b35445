// SPDX-License-Identifier: Apache-2.0
// Analyse runs and their patches in intelligence.db.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "expanse/intelligence/v1/intelligence.pb.h"
#include "storage/relational/database.h"

namespace expanse::intelligence::analyse {

/// Whose run it is: a run is answered from what its user may read, so nobody else gets it.
struct RunOwner {
  OrgId org;
  UserId user;
};

class RunStore {
 public:
  /// database outlives the store.
  explicit RunStore(storage::Database& database) : database_(database) {}

  /// Inserts the run or replaces it; with its patch, in one transaction. content_key is empty for
  /// a run that is not answered.
  Status Put(const RunOwner& owner, const v1::AnalyseRun& run, const std::string& content_key,
             const std::optional<v1::ArtifactContent>& patch, WallTime now);
  /// kNotFound for an unknown run and for another user's.
  Result<v1::AnalyseRun> Get(const RunOwner& owner, const std::string& run_id);
  Result<v1::ArtifactContent> GetArtifact(const RunOwner& owner, const std::string& run_id,
                                          const std::string& artifact_id);
  /// The newest succeeded run under the key, or nothing.
  Result<std::optional<v1::AnalyseRun>> FindAnswer(const RunOwner& owner,
                                                   const std::string& content_key);
  /// Runs that an earlier process left queued or running become failed.
  Status FailOpenRuns(const std::string& reason);

 private:
  storage::Database& database_;
};

}  // namespace expanse::intelligence::analyse
