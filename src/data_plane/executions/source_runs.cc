// SPDX-License-Identifier: Apache-2.0
#include "data_plane/executions/source_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data_plane/executions/visibility.h"
#include "expanse/data/v1/stored.pb.h"

namespace expanse::data_plane {
namespace {

using data::v1::ListRunsOfSourceRequest;
using data::v1::RecordedRun;

constexpr int kDefaultLimit = 200;
constexpr int kMaxLimit = 2'000;

bool Same(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

void Describe(const ListRunsOfSourceRequest& request, RecordedRun* run) {
  const auto& e = run->execution();
  const bool script = Same(request.script_hash(), e.script_hash());
  const bool tree = Same(request.tree_hash(), e.tree_hash());
  const bool args = Same(request.args_hash(), e.args_hash());
  run->set_basis(!(script && tree) ? "user_history" : args ? "exact_bundle" : "similar_bundle");
  const int tenths = (script ? 5 : 0) + (tree ? 3 : 0) + (args ? 2 : 0);
  run->set_similarity(std::max(tenths, 1) / 10.0);
}

Status AddArguments(storage::Transaction& transaction, const OrgId& org,
                    std::map<std::string, data::v1::StoredBundle>* bundles, RecordedRun* run) {
  const std::string& id = run->execution().bundle_id();
  if (id.empty()) return {};
  auto [it, is_new] = bundles->try_emplace(id);
  if (is_new) {
    EXPANSE_TRY(auto rows, transaction.Query("SELECT manifest FROM bundles WHERE org_id = $1 AND "
                                             "bundle_id = $2",
                                             {org, id}));
    if (!rows.empty() && !it->second.ParseFromString(rows[0].Bytes(0)))
      return Error(Code::kDataLoss, "the manifest of bundle " + id + " cannot be read");
  }
  *run->mutable_arguments() = it->second.arguments();
  return {};
}

struct Candidate {
  int64_t sort_ms;
  std::string id;
  std::string merged;
};

Status Collect(storage::Transaction& transaction, SqlFilter filter, const std::string& condition,
               int limit, std::vector<Candidate>* out, std::set<std::string>* seen) {
  const std::string bound = filter.Bind(limit);
  EXPANSE_TRY(auto rows,
              transaction.Query("SELECT sort_ms, execution_id, merged FROM executions WHERE " +
                                    filter.where + condition +
                                    " ORDER BY sort_ms DESC, execution_id DESC LIMIT " + bound,
                                filter.params));
  for (const auto row : rows)
    if (seen->insert(row.Text(1)).second) out->push_back({row.Int64(0), row.Text(1), row.Bytes(2)});
  return {};
}

}  // namespace

Result<data::v1::ListRunsOfSourceResponse> RunsOfSource(storage::Transaction& transaction,
                                                        const rpc::Caller& caller,
                                                        const ListRunsOfSourceRequest& request) {
  if (request.compute_id().empty())
    return Error(Code::kInvalidArgument, "compute_id: runs are comparable on one compute only");
  EXPANSE_CHECK_OK(CheckComputeVisible(transaction, caller, request.compute_id()));
  const int limit = request.limit() <= 0 ? kDefaultLimit : std::min(request.limit(), kMaxLimit);
  SqlFilter base;
  base.where = "org_id = " + base.Bind(caller.org);
  base.where += " AND compute_id = " + base.Bind(request.compute_id());

  std::vector<Candidate> found;
  std::set<std::string> seen;
  if (!request.script_hash().empty() && !request.tree_hash().empty()) {
    SqlFilter filter = base;
    const std::string script = filter.Bind(request.script_hash());
    const std::string tree = filter.Bind(request.tree_hash());
    const std::string condition = " AND script_hash = " + script + " AND tree_hash = " + tree;
    if (!request.args_hash().empty()) {  // exact ones first, whatever the limit
      SqlFilter exact = filter;
      const std::string args = exact.Bind(request.args_hash());
      EXPANSE_CHECK_OK(Collect(transaction, exact, condition + " AND args_hash = " + args, limit,
                               &found, &seen));
    }
    EXPANSE_CHECK_OK(Collect(transaction, filter, condition, limit, &found, &seen));
  }
  if (!request.user().empty() && !request.job_name().empty()) {
    SqlFilter filter = base;
    const std::string user = filter.Bind(request.user());
    const std::string job = filter.Bind(request.job_name());
    EXPANSE_CHECK_OK(Collect(transaction, filter,
                             " AND user_name = " + user + " AND job_name = " + job, limit, &found,
                             &seen));
  }
  if (found.size() > static_cast<size_t>(limit)) found.resize(static_cast<size_t>(limit));
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.sort_ms, a.id) > std::pair(b.sort_ms, b.id);
  });
  data::v1::ListRunsOfSourceResponse response;
  std::map<std::string, data::v1::StoredBundle> bundles;
  for (const Candidate& candidate : found) {
    RecordedRun* run = response.add_runs();
    if (!run->mutable_execution()->ParseFromString(candidate.merged))
      return Error(Code::kDataLoss, "execution " + candidate.id + " cannot be read");
    Describe(request, run);
    EXPANSE_CHECK_OK(AddArguments(transaction, caller.org, &bundles, run));
  }
  return response;
}

}  // namespace expanse::data_plane
