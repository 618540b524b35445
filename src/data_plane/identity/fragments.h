// SPDX-License-Identifier: Apache-2.0
// Fragments and their names in data.db, within one transaction.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "data_plane/identity/assign_runs.h"
#include "data_plane/identity/run_key.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

/// Whose data it is. Every statement is within one.
struct Scope {
  OrgId org;
  ComputeId compute;
};

class Fragments {
 public:
  /// transaction outlives this.
  Fragments(storage::Transaction& transaction, Scope scope)
      : transaction_(transaction), scope_(std::move(scope)) {}

  /// The fragment of a key, made when it is new. `seen` is folded into it (its id and execution are
  /// ignored); `weak` names the sight when the key is partial. Fragments that the key shows to be
  /// one are joined.
  Result<std::string> Resolve(const common::v1::RunKey& key, const Alias& weak,
                              const Fragment& seen);

  /// Every fragment of a native id.
  Result<std::vector<Fragment>> OfNative(common::v1::SourceType source_type,
                                         const std::string& native_id);
  Result<std::vector<Fragment>> OfExecution(const std::string& execution_id);
  Result<Fragment> Get(const std::string& fragment_id);
  Status SetExecution(const std::string& fragment_id, const std::string& execution_id);

  /// Remembers that samples are kept under this name of a run.
  Status MarkSeries(const Alias& alias);

  /// Executions that lost a fragment to another fragment: (execution, fragment that took it).
  const std::vector<std::pair<std::string, std::string>>& orphaned() const { return orphaned_; }

 private:
  Result<std::string> Find(const Alias& alias);
  Status Insert(const common::v1::RunKey& key, const std::string& id, const Fragment& seen);
  Status Fold(const common::v1::RunKey& key, const std::string& id, const Fragment& seen);
  Status Save(const Fragment& fragment);
  Status AddAlias(const Alias& alias, const std::string& fragment_id);
  /// Everything of `from` becomes `into`'s.
  Status Join(const std::string& from, const std::string& into);
  Status JoinFacts(const std::string& from, const std::string& into);
  Status JoinLogTails(const std::string& from, const std::string& into);

  storage::Transaction& transaction_;
  Scope scope_;
  std::vector<std::pair<std::string, std::string>> orphaned_;
};

}  // namespace expanse::data_plane
