// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/ids.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/diagnose_text.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/question.h"
#include "cli/session.h"
#include "cli/text.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "platform/crypto/crypto.h"

namespace expanse::cli {
namespace {

using intelligence::v1::DiagnoseRun;

constexpr size_t kMaxSourceBytes = 1 << 20;
constexpr size_t kMaxAllSourcesBytes = 10 << 20;
constexpr Millis kTimeout{120'000};
constexpr Millis kPoll{500};

Status AddSources(const Context& context, const Args& args,
                  intelligence::v1::DiagnoseRequest* request) {
  size_t total = 0;
  for (const auto& path : args.All("--source")) {
    auto bytes = context.fs.Read(context.Absolute(path), kMaxSourceBytes);
    if (!bytes.ok()) return bytes.error().WithContext("--source " + path);
    total += bytes->size();
    if (total > kMaxAllSourcesBytes)
      return Error(Code::kResourceExhausted,
                   fmt::format("--source {}: all sources together are more than {} MiB", path,
                               kMaxAllSourcesBytes >> 20));
    auto* file = request->add_sources();
    file->set_path(ToUtf8(path));
    file->set_sha256(platform::Sha256Hex(*bytes));
    file->set_size(static_cast<int64_t>(bytes->size()));
    file->set_content(std::move(*bytes));
  }
  return {};
}

/// Asks, and waits while the plane works on it.
Result<DiagnoseRun> Diagnose(Context& context, Session& session,
                             const intelligence::v1::DiagnoseRequest& request) {
  const intelligence::v1::DiagnoseServiceClient client(session.intelligence());
  const Deadline deadline = Deadline::In(kTimeout);
  context.Progress("Diagnosing " + request.execution_id() + " ...");
  EXPANSE_TRY(auto run, client.Diagnose("", request, deadline));
  intelligence::v1::GetDiagnoseRunRequest again;
  again.set_run_id(run.run_id());
  while (run.status() == intelligence::v1::RUN_STATUS_QUEUED ||
         run.status() == intelligence::v1::RUN_STATUS_RUNNING) {
    context.sleep(kPoll);
    EXPANSE_TRY(run, client.GetDiagnoseRun("", again, deadline));
  }
  return run;
}

Result<int> PrintPrompt(Context& context, const DiagnoseRun& run) {
  const std::string& prompt = run.result().agent_prompt();
  if (prompt.empty())
    return Error(
        Code::kNotFound,
        fmt::format("execution {} {}, so there is no prompt", run.result().display().target(),
                    IsFailed(run.result()) ? "was not ended by its own code" : "did not fail"));
  PrintText(context, prompt);
  return kExitOk;
}

Result<int> RunDiagnose(Context& context, const Args& args) {
  const std::string& id = args.positionals()[0];
  const auto source_type = args.Text("--source-type");
  if (!source_type && !IsUuid(id))
    return UsageFailure(context, kDiagnose,
                        fmt::format("'{0}' is not an execution id; for a scheduler's job id write "
                                    "`expanse diagnose {0} --source-type slurm`",
                                    id));
  EXPANSE_TRY(const auto session, Session::Open(context));
  intelligence::v1::DiagnoseRequest request;
  request.set_no_cache(args.Bool("--no-cache"));
  EXPANSE_CHECK_OK(AddSources(context, args, &request));
  EXPANSE_TRY(const auto compute, ResolveCompute(*session, args));
  request.set_execution_id(id);
  if (source_type) {
    EXPANSE_TRY(const auto execution,
                ResolveNativeId(context, *session, SourceTypeFromWord(*source_type), id, compute));
    request.set_execution_id(execution.execution_id());
  }
  EXPANSE_TRY(const auto run, Diagnose(context, *session, request));
  const bool succeeded = run.status() == intelligence::v1::RUN_STATUS_SUCCEEDED;
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(run));
    context.terminal.Out(json);
    return succeeded ? kExitOk : kExitFailed;
  }
  if (!succeeded)
    return Error(Code::kUnknown, fmt::format("diagnosis {} ended as {}{}{}", run.run_id(),
                                             RunStatusText(run.status()),
                                             run.error().empty() ? "" : ": ", run.error()));
  if (args.Bool("--prompt")) return PrintPrompt(context, run);
  context.terminal.Out(DiagnoseText(context, run));
  // The failure section is for failed runs; why another one ended early is worth a line all the
  // same.
  if (!IsFailed(run.result()) && run.result().display().state() != "succeeded" &&
      !run.result().root_cause().empty())
    context.terminal.Err(EscapeForTerminal(run.result().root_cause()) + "\n");
  if (run.cached()) context.Progress("A recorded diagnosis; --no-cache makes a fresh one.");
  if (!context.terminal.interactive() || !IsFailed(run.result()) ||
      run.result().agent_prompt().empty())
    return kExitOk;
  context.terminal.Out("\n");
  EXPANSE_TRY(const bool yes, Ask(context, "Suggested prompt for your agent? [y/n]"));
  return yes ? PrintPrompt(context, run) : Result<int>(kExitOk);
}

constexpr Positional kPositionals[] = {
    {.name = "execution-id", .doc = "the execution, or a scheduler's job id with --source-type"}};
constexpr Flag kFlags[] = {
    {.name = "--source-type",
     .kind = FlagKind::kChoice,
     .doc = "take the argument as a job id of this scheduler",
     .choices = kSourceTypes},
    {.name = "--source",
     .kind = FlagKind::kPath,
     .doc = "source file to add as evidence, at most 1 MiB",
     .repeat = true},
    {.name = "--compute",
     .doc = "compute whose job id it is, with --source-type",
     .value_name = "ID|NAME"},
    {.name = "--prompt",
     .kind = FlagKind::kBool,
     .doc = "print only the prompt for a coding agent"},
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"},
    {.name = "--no-cache", .kind = FlagKind::kBool, .doc = "a fresh diagnosis"},
};
constexpr Rule kRules[] = {{Rule::kExcludes, "--prompt", "--json"}};
constexpr Example kExamples[] = {
    {"expanse diagnose <execution-id>"},
    {"expanse diagnose 41982 --source-type slurm", "by SLURM job id"},
    {"expanse diagnose <execution-id> --json"},
    {"expanse diagnose <execution-id> --prompt | pbcopy", "macOS"},
    {"expanse diagnose <execution-id> --prompt | xclip -selection clipboard", "X11"},
    {"expanse diagnose <execution-id> --prompt | wl-copy", "Wayland"},
};

}  // namespace

const Command kDiagnose{
    .name = "diagnose",
    .group = kGroupIntelligence,
    .summary = "explains a failed execution from cited evidence",
    .description =
        "Prints what each stage found, the resources the run had and used, and for a failed run "
        "the pattern, how often it recurs, what happened and why. On a terminal it then offers a "
        "prompt for your coding agent. It never proposes or applies a fix.",
    .positionals = kPositionals,
    .flags = kFlags,
    .rules = kRules,
    .examples = kExamples,
    .run = RunDiagnose,
};

}  // namespace expanse::cli
