// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/session.h"
#include "cli/text.h"
#include "expanse/data/v1/data.rpc.h"

namespace expanse::cli {
namespace {

constexpr int64_t kDefaultLimit = 25;

std::string ConsoleLink(const std::string& console, const common::v1::Execution& execution) {
  if (console.empty()) return execution.console_url();
  std::string base = console;
  while (base.ends_with('/')) base.pop_back();
  return base + "/executions/" + execution.execution_id();
}

Hue HueOf(common::v1::ExecutionStatus status) {
  switch (status) {
    case common::v1::EXECUTION_STATUS_SUCCEEDED:
      return Hue::kGreen;
    case common::v1::EXECUTION_STATUS_FAILED:
      return Hue::kRed;
    case common::v1::EXECUTION_STATUS_RUNNING:
    case common::v1::EXECUTION_STATUS_QUEUED:
      return Hue::kYellow;
    default:
      return Hue::kNone;
  }
}

/// EXPANSE_CONSOLE_URL wins; else the console that the session names.
std::string ConsoleUrl(const Context& context, Session& session) {
  const std::string url = context.Environment("EXPANSE_CONSOLE_URL");
  return url.empty() ? session.endpoints().console_url() : url;
}

/// Pages until limit executions are there: the server bounds a page by its own limit.
Result<data::v1::ListExecutionsResponse> ListAll(Session& session,
                                                 data::v1::ListExecutionsRequest request) {
  const data::v1::ExecutionServiceClient client(session.data());
  EXPANSE_TRY(auto all, client.ListExecutions("", request));
  const int wanted = request.limit();
  while (all.executions_size() < wanted && !all.next_page_token().empty()) {
    request.set_page_token(all.next_page_token());
    request.set_limit(wanted - all.executions_size());
    EXPANSE_TRY(auto page, client.ListExecutions("", request));
    if (page.executions().empty()) break;
    for (auto& execution : *page.mutable_executions()) *all.add_executions() = std::move(execution);
    all.set_next_page_token(page.next_page_token());
  }
  return all;
}

Result<int> RunExecutions(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  data::v1::ListExecutionsRequest request;
  request.set_limit(static_cast<int32_t>(
      std::min<int64_t>(args.Int("--limit").value_or(kDefaultLimit), 1 << 20)));
  if (const auto word = args.Text("--status")) request.set_status(StatusFromWord(*word));
  if (const auto word = args.Text("--outcome")) request.set_outcome(OutcomeFromWord(*word));
  request.set_user(ToUtf8(args.Text("--user").value_or("")));
  request.set_mine(args.Bool("--mine"));
  EXPANSE_TRY(const auto compute, ResolveCompute(*session, args));
  request.set_compute_id(compute);
  EXPANSE_TRY(const auto response, ListAll(*session, request));

  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(response));
    context.terminal.Out(json);
    return kExitOk;
  }
  const std::string console = ConsoleUrl(context, *session);
  Table table({"EXECUTION ID", "JOB ID", "USER", "STATUS", "OUTCOME", "START", "CONSOLE"});
  for (const auto& e : response.executions())
    table.Add(
        {e.execution_id(), e.native_id(), e.user(), StatusLabel(e.status()),
         OutcomeLabel(e.outcome()), e.has_start_time_ms() ? FormatSecond(e.start_time_ms()) : "",
         ConsoleLink(console, e)},
        {Hue::kNone, Hue::kNone, Hue::kNone, HueOf(e.status()), HueOf(e.status())});
  context.terminal.Out(table.Print(context));
  if (response.executions().empty())
    context.terminal.Err("No execution matches.\n");
  else if (!response.next_page_token().empty())
    context.Progress(fmt::format("The newest {}; see --limit.", response.executions_size()));
  return kExitOk;
}

constexpr Flag kFlags[] = {
    {.name = "--limit",
     .kind = FlagKind::kInt,
     .doc = "how many executions at most",
     .default_text = "25",
     .least = 1},
    {.name = "--status",
     .kind = FlagKind::kChoice,
     .doc = "only executions in this status: queued, running, succeeded, failed, cancelled or "
            "unknown",
     .choices = kStatuses,
     .value_name = "STATUS"},
    {.name = "--outcome",
     .kind = FlagKind::kChoice,
     .doc = "only executions that ended so: success, failure, cancelled, timeout, out_of_memory "
            "or unknown",
     .choices = kOutcomes,
     .value_name = "OUTCOME"},
    {.name = "--user",
     .doc = "only executions of this scheduler user, exactly",
     .value_name = "NAME"},
    {.name = "--mine",
     .kind = FlagKind::kBool,
     .doc = "only executions of the scheduler users that you are mapped to"},
    {.name = "--compute", .doc = "only executions on this compute", .value_name = "ID|NAME"},
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"},
};
constexpr Example kExamples[] = {
    {"expanse executions", "the 25 newest"},
    {"expanse executions --status failed"},
    {"expanse executions --outcome out_of_memory"},
    {"expanse executions --mine --limit 100"},
    {"expanse executions --json | jq -r '.executions[].execution_id'"},
};

}  // namespace

const Command kExecutions{
    .name = "executions",
    .group = kGroupWorkloads,
    .summary = "lists recent executions, newest first",
    .description =
        "Columns: execution id, the scheduler's job id, submitting user, status, outcome, start "
        "(UTC) and a link into the console. What was not seen is `-`. The user is what the "
        "scheduler said; executions without one match neither --user nor --mine.",
    .flags = kFlags,
    .examples = kExamples,
    .run = RunExecutions,
};

}  // namespace expanse::cli
