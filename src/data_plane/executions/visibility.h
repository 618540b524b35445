// SPDX-License-Identifier: Apache-2.0
// Which computes a caller may see, and which scheduler users the caller is.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "rpc/call_context.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

/// SQL text under construction with its parameters.
struct SqlFilter {
  std::string where;  // "org_id = $1 AND …"
  std::vector<storage::Value> params;

  /// Adds a parameter; answers its name ("$7").
  std::string Bind(storage::Value value);
};

/// With executions.read_all: every compute of the organisation. Else those of the caller's teams
/// and those without a team. Answers the ones that stay hidden: they are few, and NOT IN leaves
/// the order by time to the index.
Result<std::vector<std::string>> HiddenComputes(storage::Transaction& transaction,
                                                const rpc::Caller& caller);

/// "org_id = $1" and, where computes are hidden, "AND compute_id NOT IN (…)".
Result<SqlFilter> VisibleTo(storage::Transaction& transaction, const rpc::Caller& caller);

/// kNotFound, as for a compute that is not there, when the caller may not see it.
Status CheckComputeVisible(storage::Transaction& transaction, const rpc::Caller& caller,
                           const std::string& compute_id);

struct SchedulerUser {
  std::string compute_id;  // empty: on every compute
  std::string user;
};
/// Names set by SetUserMapping; without any, the local part of the e-mail address.
Result<std::vector<SchedulerUser>> SchedulerUsersOf(storage::Transaction& transaction,
                                                    const rpc::Caller& caller);

}  // namespace expanse::data_plane
