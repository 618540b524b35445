// SPDX-License-Identifier: Apache-2.0
#include "data_plane/executions/execution_service.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "data_plane/executions/source_runs.h"
#include "data_plane/executions/visibility.h"
#include "expanse/data/v1/stored.pb.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using storage::Transaction;

constexpr int kMaxRedirects = 8;
constexpr int kMaxMappedUsers = 100;

Result<std::string> FollowRedirects(Transaction& transaction, const OrgId& org, std::string id) {
  for (int hop = 0; hop < kMaxRedirects; ++hop) {
    EXPANSE_TRY(auto rows, transaction.Query("SELECT to_id FROM execution_redirects WHERE "
                                             "org_id = $1 AND from_id = $2",
                                             {org, id}));
    if (rows.empty()) break;
    id = rows[0].Text(0);
  }
  return id;
}

}  // namespace

Result<Execution> FindExecution(Transaction& transaction, const rpc::Caller& caller,
                                const std::string& execution_id) {
  if (!IsUuid(execution_id))
    return Error(Code::kInvalidArgument,
                 "'" + ToUtf8(execution_id) +
                     "' is no execution id; to name a run by the scheduler's id, say its source "
                     "type (--source-type slurm)");
  EXPANSE_TRY(const std::string id,
              FollowRedirects(transaction, caller.org, ToLower(execution_id)));
  EXPANSE_TRY(SqlFilter filter, VisibleTo(transaction, caller));
  const std::string bound = filter.Bind(id);
  EXPANSE_TRY(auto rows, transaction.Query("SELECT merged FROM executions WHERE " + filter.where +
                                               " AND execution_id = " + bound,
                                           filter.params));
  if (rows.empty())
    return Error(Code::kNotFound, "no execution " + execution_id + " that you can see");
  Execution execution;
  if (!execution.ParseFromString(rows[0].Bytes(0)))
    return Error(Code::kDataLoss, "execution " + id + " cannot be read");
  return execution;
}

Result<data::v1::GetExecutionResponse> ExecutionService::GetExecution(
    const rpc::CallContext& context, const data::v1::GetExecutionRequest& request) {
  using Response = data::v1::GetExecutionResponse;
  return database_.Read([&](Transaction& transaction) -> Result<Response> {
    Response response;
    EXPANSE_TRY(*response.mutable_execution(),
                FindExecution(transaction, context.caller, request.execution_id()));
    Link(response.mutable_execution());
    return response;
  });
}

void ExecutionService::Link(Execution* execution) const {
  if (!console_url_.empty())
    execution->set_console_url(console_url_ + "/executions/" + execution->execution_id());
}

Result<data::v1::ListRunsOfSourceResponse> ExecutionService::ListRunsOfSource(
    const rpc::CallContext& context, const data::v1::ListRunsOfSourceRequest& request) {
  return database_.Read(
      [&](Transaction& transaction) { return RunsOfSource(transaction, context.caller, request); });
}

Result<data::v1::GetLogTailsResponse> ExecutionService::GetLogTails(
    const rpc::CallContext& context, const data::v1::GetLogTailsRequest& request) {
  using Response = data::v1::GetLogTailsResponse;
  std::map<std::string, std::pair<int64_t, std::pair<data::v1::LogTail, std::string>>> newest;
  EXPANSE_CHECK_OK(database_.Read([&](Transaction& transaction) -> Status {
    EXPANSE_TRY(const Execution execution,
                FindExecution(transaction, context.caller, request.execution_id()));
    EXPANSE_TRY(auto rows,
                transaction.Query("SELECT t.stream, t.observed_ms, t.tail, t.blob_sha256 "
                                  "FROM log_tails t JOIN run_fragments f ON f.org_id = t.org_id "
                                  "AND f.fragment_id = t.fragment_id "
                                  "WHERE f.org_id = $1 AND f.execution_id = $2 "
                                  "ORDER BY t.stream, t.observed_ms",
                                  {context.caller.org, execution.execution_id()}));
    for (const auto row : rows) {
      data::v1::LogTail tail;
      if (!tail.ParseFromString(row.Bytes(2)))
        return Error(Code::kDataLoss,
                     "a log tail of " + execution.execution_id() + " cannot be read");
      newest[row.Text(0)] = {row.Int64(1), {std::move(tail), row.Text(3)}};
    }
    return {};
  }));
  Response response;
  for (auto& [stream, entry] : newest) {
    auto& [tail, sha256] = entry.second;
    if (!sha256.empty()) {
      auto content = blobs_.Get({context.caller.org, "log-tail", sha256});
      if (content.ok())
        tail.set_content(std::move(content).value());
      else
        tail.set_unknown_reason("stored content cannot be read: " + content.error().message());
    }
    tail.clear_key();
    *response.add_tails() = std::move(tail);
  }
  return response;
}

Result<data::v1::GetBundleResponse> ExecutionService::GetBundle(
    const rpc::CallContext& context, const data::v1::GetBundleRequest& request) {
  using Response = data::v1::GetBundleResponse;
  Response response;
  data::v1::SourceBundle& bundle = *response.mutable_bundle();
  data::v1::StoredBundle stored;
  EXPANSE_CHECK_OK(database_.Read([&](Transaction& transaction) -> Status {
    EXPANSE_TRY(const Execution execution,
                FindExecution(transaction, context.caller, request.execution_id()));
    if (execution.bundle_id().empty()) {
      const auto reason = execution.unknown().find("bundle_id");
      return Error(Code::kNotFound,
                   "no source bundle of " + execution.execution_id() + ": " +
                       (reason == execution.unknown().end() ? "not captured" : reason->second));
    }
    EXPANSE_TRY(auto rows, transaction.Query("SELECT script_hash, tree_hash, args_hash, manifest "
                                             "FROM bundles WHERE org_id = $1 AND bundle_id = $2",
                                             {context.caller.org, execution.bundle_id()}));
    if (rows.empty() || !stored.ParseFromString(rows[0].Bytes(3)))
      return Error(Code::kNotFound, "bundle " + execution.bundle_id() + " is not stored");
    bundle.set_bundle_id(execution.bundle_id());
    bundle.set_script_hash(rows[0].Text(0));
    bundle.set_tree_hash(rows[0].Text(1));
    bundle.set_args_hash(rows[0].Text(2));
    return {};
  }));
  bundle.set_script_path(stored.script_path());
  *bundle.mutable_arguments() = stored.arguments();
  *bundle.mutable_unknown() = stored.unknown();
  for (const auto& file : stored.files()) {
    auto* out = bundle.add_files();
    out->set_path(file.path());
    out->set_sha256(file.sha256());
    out->set_size(file.size());
    if (!request.with_content() || file.blob_sha256().empty()) continue;
    auto content = blobs_.Get({context.caller.org, "bundle", file.blob_sha256()});
    if (content.ok())
      out->set_content(std::move(content).value());
    else
      (*bundle.mutable_unknown())[file.path()] =
          "stored content cannot be read: " + content.error().message();
  }
  return response;
}

Result<data::v1::GetComputeFactsResponse> ExecutionService::GetComputeFacts(
    const rpc::CallContext& context, const data::v1::GetComputeFactsRequest& request) {
  using Response = data::v1::GetComputeFactsResponse;
  const std::string& compute = request.compute_id();
  return database_.Read([&](Transaction& transaction) -> Result<Response> {
    EXPANSE_CHECK_OK(CheckComputeVisible(transaction, context.caller, compute));
    Response response;
    EXPANSE_TRY(auto names, transaction.Query("SELECT name FROM computes WHERE org_id = $1 AND "
                                              "compute_id = $2",
                                              {context.caller.org, compute}));
    response.set_compute_name(names[0].Text(0));
    EXPANSE_TRY(auto rows, transaction.Query("SELECT observed_ms, facts FROM compute_facts WHERE "
                                             "org_id = $1 AND compute_id = $2",
                                             {context.caller.org, compute}));
    if (!rows.empty()) {
      response.set_as_of_ms(rows[0].Int64(0));
      if (!response.mutable_facts()->ParseFromString(rows[0].Bytes(1)))
        return Error(Code::kDataLoss, "facts of compute " + compute + " cannot be read");
    }
    // The heartbeat's health is newer than a spooled record's.
    EXPANSE_TRY(auto beats, transaction.Query("SELECT health FROM compute_heartbeats WHERE "
                                              "org_id = $1 AND compute_id = $2",
                                              {context.caller.org, compute}));
    data::v1::HeartbeatRequest beat;
    if (!beats.empty() && beat.ParseFromString(beats[0].Bytes(0)))
      for (const auto& health : beat.health()) {
        auto* all = response.mutable_facts()->mutable_health();
        auto it = std::find_if(all->begin(), all->end(), [&](const auto& known) {
          return known.node() == health.node() && known.part() == health.part();
        });
        if (it != all->end())
          *it = health;
        else
          *all->Add() = health;
      }
    return response;
  });
}

Result<data::v1::SetUserMappingResponse> ExecutionService::SetUserMapping(
    const rpc::CallContext& context, const data::v1::SetUserMappingRequest& request) {
  const std::string email = ToLower(request.email());
  if (email.find('@') == std::string::npos || email.size() > 320 ||
      email.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, "email: an e-mail address of a member is needed");
  if (request.scheduler_users_size() > kMaxMappedUsers)
    return Error(Code::kInvalidArgument, "more than 100 scheduler users for one member");
  for (const std::string& user : request.scheduler_users())
    if (user.empty() || user.size() > 256 || user.find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, "scheduler_users: 1 to 256 bytes each");
  EXPANSE_CHECK_OK(database_.Write([&](Transaction& transaction) -> Status {
    if (!request.compute_id().empty())
      EXPANSE_CHECK_OK(CheckComputeVisible(transaction, context.caller, request.compute_id()));
    EXPANSE_CHECK_OK(transaction.Execute(
        "DELETE FROM user_mappings WHERE org_id = $1 AND email = $2 AND compute_id = $3",
        {context.caller.org, email, request.compute_id()}));
    for (const std::string& user : request.scheduler_users())
      EXPANSE_CHECK_OK(transaction.Execute(
          "INSERT INTO user_mappings (org_id, email, compute_id, scheduler_user) "
          "VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, email, compute_id, scheduler_user) "
          "DO NOTHING",
          {context.caller.org, email, request.compute_id(), user}));
    return {};
  }));
  return data::v1::SetUserMappingResponse();
}

}  // namespace expanse::data_plane
