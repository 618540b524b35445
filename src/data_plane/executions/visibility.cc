// SPDX-License-Identifier: Apache-2.0
#include "data_plane/executions/visibility.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace expanse::data_plane {

std::string SqlFilter::Bind(storage::Value value) {
  params.push_back(std::move(value));
  return "$" + std::to_string(params.size());
}

Result<std::vector<std::string>> HiddenComputes(storage::Transaction& transaction,
                                                const rpc::Caller& caller) {
  std::vector<std::string> hidden;
  if (caller.HasPermission("executions.read_all")) return hidden;
  EXPANSE_TRY(auto rows, transaction.Query("SELECT compute_id, team_id FROM computes WHERE "
                                           "org_id = $1 AND team_id <> ''",
                                           {caller.org}));
  for (const auto row : rows)
    if (std::find(caller.team_ids.begin(), caller.team_ids.end(), row.Text(1)) ==
        caller.team_ids.end())
      hidden.push_back(row.Text(0));
  return hidden;
}

Result<SqlFilter> VisibleTo(storage::Transaction& transaction, const rpc::Caller& caller) {
  EXPANSE_TRY(const auto hidden, HiddenComputes(transaction, caller));
  SqlFilter filter;
  filter.where = "org_id = " + filter.Bind(caller.org);
  if (hidden.empty()) return filter;
  filter.where += " AND compute_id NOT IN (";
  for (size_t i = 0; i < hidden.size(); ++i)
    filter.where += (i == 0 ? "" : ", ") + filter.Bind(hidden[i]);
  filter.where += ")";
  return filter;
}

Status CheckComputeVisible(storage::Transaction& transaction, const rpc::Caller& caller,
                           const std::string& compute_id) {
  EXPANSE_TRY(const auto hidden, HiddenComputes(transaction, caller));
  EXPANSE_TRY(auto rows, transaction.Query("SELECT 1 AS one FROM computes WHERE org_id = $1 AND "
                                           "compute_id = $2",
                                           {caller.org, compute_id}));
  if (rows.empty() || std::find(hidden.begin(), hidden.end(), compute_id) != hidden.end())
    return Error(Code::kNotFound,
                 "no compute " + compute_id + " that you can see has connected to this data plane");
  return {};
}

Result<std::vector<SchedulerUser>> SchedulerUsersOf(storage::Transaction& transaction,
                                                    const rpc::Caller& caller) {
  const std::string email = ToLower(caller.email);
  EXPANSE_TRY(auto rows, transaction.Query("SELECT compute_id, scheduler_user FROM user_mappings "
                                           "WHERE org_id = $1 AND email = $2 "
                                           "ORDER BY compute_id, scheduler_user",
                                           {caller.org, email}));
  std::vector<SchedulerUser> out;
  for (const auto row : rows) out.push_back({row.Text(0), row.Text(1)});
  if (!out.empty()) return out;
  const std::string local = email.substr(0, email.find('@'));
  if (!local.empty()) out.push_back({"", local});
  return out;
}

}  // namespace expanse::data_plane
