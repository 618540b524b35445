// SPDX-License-Identifier: Apache-2.0
// ListExecutions and ResolveExecution: indexed columns only, one page of merged rows.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/strings.h"
#include "data_plane/executions/execution_service.h"
#include "data_plane/executions/visibility.h"
#include "data_plane/stored_message.h"

namespace expanse::data_plane {
namespace {

using data::v1::ListExecutionsRequest;
using data::v1::ListExecutionsResponse;

constexpr int kDefaultLimit = 25;
constexpr int kMaxLimit = 1'000;
constexpr int kMaxResolved = 100;
constexpr size_t kMaxAlternatives = 100;

struct PageToken {
  int64_t sort_ms = 0;
  std::string execution_id;
};

std::string FormatToken(const PageToken& token) {
  return Base64UrlEncode(std::to_string(token.sort_ms) + "/" + token.execution_id);
}

Result<PageToken> ParseToken(const std::string& text) {
  const auto plain = Base64UrlDecode(text);
  const auto parts = plain ? Split(*plain, '/') : std::vector<std::string_view>();
  const auto sort_ms = parts.size() == 2 ? ParseInt64(parts[0]) : std::nullopt;
  if (!sort_ms || !IsUuid(parts[1]))
    return Error(Code::kInvalidArgument, "page_token is not one that ListExecutions gave");
  return PageToken{*sort_ms, std::string(parts[1])};
}

// One condition for each scheduler user: "user_name = $3", with its compute where it has one. Each
// is asked apart, so that each has its index; engines bound how many that can be (SQLite: 500).
std::vector<std::string> MineConditions(const std::vector<SchedulerUser>& users,
                                        SqlFilter* filter) {
  std::vector<std::string> out;
  for (const SchedulerUser& user : users) {
    out.push_back("user_name = " + filter->Bind(user.user));
    if (!user.compute_id.empty())
      out.back() += " AND compute_id || '' = " + filter->Bind(user.compute_id);
  }
  if (out.size() <= kMaxAlternatives) return out;
  std::string any;
  for (const std::string& one : out) any += (any.empty() ? "((" : " OR (") + one + ")";
  return std::vector<std::string>{any + ")"};
}

// The newest rows that match the filter and any one of the alternatives.
std::string NewestOf(const std::string& where, const std::vector<std::string>& alternatives,
                     const std::string& limit) {
  const std::string order = " ORDER BY sort_ms DESC, execution_id DESC LIMIT " + limit;
  std::string out;
  for (const std::string& alternative : alternatives) {
    if (!out.empty()) out += " UNION ";
    out += "SELECT * FROM (SELECT sort_ms, execution_id, merged FROM executions WHERE " + where +
           " AND " + alternative + order + ") AS part";
  }
  return out + order;
}

// Answers alternatives of which one has to match as well; none: no execution can match.
Result<std::vector<std::string>> AddFilters(storage::Transaction& transaction,
                                            const rpc::Caller& caller,
                                            const ListExecutionsRequest& request,
                                            SqlFilter* filter) {
  // Two filters have an index of their own (user or compute, with outcome or status); a third must
  // not tempt the planner to another one, so it is no bare column (|| and + keep the value).
  int place = request.mine() ? 1 : 0;
  bool has_state = false;
  const auto state = [&](const std::string& column, int64_t value) {
    filter->where += " AND " + column + (has_state ? " + 0" : "") + " = " + filter->Bind(value);
    has_state = true;
  };
  const auto who = [&](const std::string& column, const std::string& value) {
    filter->where += " AND " + column + (place > 0 ? " || ''" : "") + " = " + filter->Bind(value);
    ++place;
  };
  if (!request.user().empty()) who("user_name", request.user());
  if (!request.compute_id().empty()) who("compute_id", request.compute_id());
  if (request.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED)
    state("outcome", request.outcome());
  if (request.status() != common::v1::EXECUTION_STATUS_UNSPECIFIED)
    state("status", request.status());
  if (!request.mine()) return std::vector<std::string>{"TRUE"};
  EXPANSE_TRY(const auto users, SchedulerUsersOf(transaction, caller));
  return MineConditions(users, filter);
}

}  // namespace

Result<ListExecutionsResponse> ExecutionService::ListExecutions(
    const rpc::CallContext& context, const ListExecutionsRequest& request) {
  const int limit = request.limit() <= 0 ? kDefaultLimit : std::min(request.limit(), kMaxLimit);
  for (const std::string* text : {&request.user(), &request.compute_id()})
    if (text->find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, "a filter holds a NUL byte");
  return database_.Read([&](storage::Transaction& transaction) -> Result<ListExecutionsResponse> {
    EXPANSE_TRY(SqlFilter filter, VisibleTo(transaction, context.caller));
    EXPANSE_TRY(const auto alternatives, AddFilters(transaction, context.caller, request, &filter));
    ListExecutionsResponse response;
    if (alternatives.empty()) return response;
    if (!request.page_token().empty()) {
      EXPANSE_TRY(const PageToken token, ParseToken(request.page_token()));
      const std::string sort_ms = filter.Bind(token.sort_ms);
      filter.where += " AND (sort_ms, execution_id) < (" + sort_ms + ", " +
                      filter.Bind(token.execution_id) + ")";
    }
    const std::string bound = filter.Bind(limit + 1);
    EXPANSE_TRY(auto rows,
                transaction.Query(NewestOf(filter.where, alternatives, bound), filter.params));
    const size_t count = std::min(rows.size(), static_cast<size_t>(limit));
    for (size_t i = 0; i < count; ++i) {
      common::v1::Execution merged;
      if (!ParseStored(rows[i].Bytes(2), "executions", rows[i].Text(1), &merged)) continue;
      auto* execution = response.add_executions();
      *execution = std::move(merged);
      Link(execution);
      execution->clear_steps();
    }
    if (rows.size() > count)
      response.set_next_page_token(
          FormatToken({rows[count - 1].Int64(0), rows[count - 1].Text(1)}));
    return response;
  });
}

Result<data::v1::ResolveExecutionResponse> ExecutionService::ResolveExecution(
    const rpc::CallContext& context, const data::v1::ResolveExecutionRequest& request) {
  using Response = data::v1::ResolveExecutionResponse;
  if (request.native_id().empty() || request.native_id().find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, "native_id: the scheduler's id of the run is needed");
  return database_.Read([&](storage::Transaction& transaction) -> Result<Response> {
    EXPANSE_TRY(SqlFilter filter, VisibleTo(transaction, context.caller));
    if (!request.compute_id().empty())
      filter.where += " AND compute_id || '' = " + filter.Bind(request.compute_id());
    if (request.source_type() != common::v1::SOURCE_TYPE_UNSPECIFIED)
      filter.where +=
          " AND source_type = " + filter.Bind(static_cast<int64_t>(request.source_type()));
    const std::string id = filter.Bind(request.native_id());
    const std::string bound = filter.Bind(kMaxResolved);
    // As users write it (41982_3), or raw; one query each, so that each has its index.
    std::map<std::pair<int64_t, std::string>, std::string> found;
    for (const char* column : {"display_id", "native_id"}) {
      EXPANSE_TRY(auto rows,
                  transaction.Query("SELECT sort_ms, execution_id, merged FROM executions WHERE " +
                                        filter.where + " AND " + column + " = " + id +
                                        " ORDER BY sort_ms DESC, execution_id DESC LIMIT " + bound,
                                    filter.params));
      for (const auto row : rows) found[{row.Int64(0), row.Text(1)}] = row.Bytes(2);
    }
    Response response;
    for (auto it = found.rbegin(); it != found.rend(); ++it) {
      if (response.executions_size() == kMaxResolved) break;
      common::v1::Execution merged;
      if (!ParseStored(it->second, "executions", it->first.second, &merged)) continue;
      Link(&merged);
      *response.add_executions() = std::move(merged);
    }
    return response;
  });
}

}  // namespace expanse::data_plane
