// SPDX-License-Identifier: Apache-2.0
// Keeps the rows of `executions` in step with the fragments and facts they are made of.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "data_plane/identity/fragments.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

class Projection {
 public:
  /// new_id mints execution ids. Everything outlives this.
  Projection(storage::Transaction& transaction, Fragments& fragments, Scope scope,
             std::function<std::string()> new_id)
      : transaction_(transaction),
        fragments_(fragments),
        scope_(std::move(scope)),
        new_id_(std::move(new_id)) {}

  /// Groups all fragments of the native id anew and rewrites the executions that are concerned:
  /// those of the dirty fragments, of fragments that changed their run, and their neighbours.
  Status Refresh(common::v1::SourceType source_type, const std::string& native_id,
                 const std::set<std::string>& dirty);
  /// The same for a fragment of which only a SLUID is known.
  Status RefreshAlone(common::v1::SourceType source_type, const std::string& fragment_id);
  /// After every Refresh of a transaction: ids that no fragment carries any more lead to the
  /// execution that took their fragments.
  Status RedirectOrphans();

 private:
  struct Plan;
  Status Apply(common::v1::SourceType source_type, const std::string& native_id,
               const std::vector<Fragment>& fragments, const std::set<std::string>& dirty);
  Status Rewrite(common::v1::SourceType source_type, const std::string& native_id,
                 const std::vector<Fragment>& fragments, const Plan& plan, size_t run);
  Status Redirect(const std::string& from, const std::string& to);

  storage::Transaction& transaction_;
  Fragments& fragments_;
  Scope scope_;
  std::function<std::string()> new_id_;
};

}  // namespace expanse::data_plane
