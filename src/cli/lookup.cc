// SPDX-License-Identifier: Apache-2.0
#include "cli/lookup.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/strings.h"
#include "cli/labels.h"
#include "cli/text.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"

namespace expanse::cli {

Result<std::string> ResolveCompute(Session& session, const Args& args) {
  const auto wanted = args.Text("--compute");
  if (!wanted) return std::string();
  if (IsUuid(*wanted)) return *wanted;
  const control::v1::ComputeServiceClient client(session.control());
  EXPANSE_TRY(const auto list, client.ListComputes("", {}));
  std::vector<std::string> names;
  std::vector<std::string> ids;
  for (const auto& compute : list.computes()) {
    names.push_back(compute.name());
    if (compute.name() == *wanted) ids.push_back(compute.compute_id());
  }
  if (ids.size() == 1) return ids[0];
  if (ids.size() > 1)
    return Error(Code::kFailedPrecondition,
                 fmt::format("{} computes are called '{}': {}; name the id", ids.size(), *wanted,
                             Join(ids, ", ")));
  const auto nearest = NearestName(*wanted, names);
  return Error(Code::kNotFound,
               fmt::format("no compute is called '{}'{}; see `expanse compute list`", *wanted,
                           nearest ? ", did you mean '" + *nearest + "'?" : ""));
}

Result<std::string> RequireCompute(Session& session, const Args& args) {
  if (args.Text("--compute")) return ResolveCompute(session, args);
  const control::v1::ComputeServiceClient client(session.control());
  EXPANSE_TRY(const auto list, client.ListComputes("", {}));
  std::vector<std::string> ids;
  std::vector<std::string> shown;
  for (const auto& compute : list.computes()) {
    if (compute.state() == control::v1::COMPUTE_STATE_PENDING ||
        compute.state() == control::v1::COMPUTE_STATE_REVOKED)
      continue;
    ids.push_back(compute.compute_id());
    shown.push_back(fmt::format("{} ({})", compute.name(), compute.compute_id()));
  }
  if (ids.size() == 1) return ids[0];
  if (ids.empty())
    return Error(Code::kFailedPrecondition,
                 "no compute is connected yet; see `expanse compute register`");
  return Error(Code::kFailedPrecondition,
               fmt::format("which compute would it run on? Add --compute with one of: {}",
                           Join(shown, ", ")));
}

Result<common::v1::Execution> ResolveNativeId(Context& context, Session& session,
                                              common::v1::SourceType source_type,
                                              const std::string& native_id,
                                              const std::string& compute_id) {
  const data::v1::ExecutionServiceClient client(session.data());
  data::v1::ResolveExecutionRequest request;
  request.set_source_type(source_type);
  request.set_native_id(ToUtf8(native_id));
  request.set_compute_id(compute_id);
  EXPANSE_TRY(const auto response, client.ResolveExecution("", request));
  const std::string scheduler = EnumLabel(common::v1::SourceType_Name(source_type), "SOURCE_TYPE_");
  if (response.executions().empty())
    return Error(Code::kNotFound, fmt::format("no execution of {} job {} is recorded; see "
                                              "`expanse executions`",
                                              scheduler, native_id));
  const auto& newest = response.executions(0);
  if (response.executions_size() > 1) {
    std::string others;
    for (int i = 1; i < response.executions_size() && i < 4; ++i)
      others += (i > 1 ? ", " : "") + response.executions(i).execution_id();
    if (response.executions_size() > 4)
      others += fmt::format(" and {} more", response.executions_size() - 4);
    context.Warn(fmt::format("{} job {} names {} executions; this is the newest, {}. Others: {}",
                             scheduler, native_id, response.executions_size(),
                             newest.execution_id(), others));
  }
  return newest;
}

}  // namespace expanse::cli
