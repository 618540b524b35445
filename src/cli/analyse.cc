// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/analyse_text.h"
#include "cli/artefact.h"
#include "cli/command.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/question.h"
#include "cli/session.h"
#include "cli/text.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "submission/bundle/bundle.h"

namespace expanse::cli {
namespace {

using intelligence::v1::AnalyseRequest;
using intelligence::v1::AnalyseRun;

constexpr Millis kTimeout{120'000};
constexpr Millis kPoll{500};
constexpr std::string_view kRisks[] = {"low", "medium", "high"};

/// Which scheduler's language the target is in, by what only that language has.
common::v1::SourceType SourceTypeOf(std::string_view path, std::string_view bytes) {
  const auto ends = [&](std::initializer_list<std::string_view> suffixes) {
    for (const auto suffix : suffixes)
      if (path.ends_with(suffix)) return true;
    return false;
  };
  if (bytes.find("#SBATCH") != std::string_view::npos || ends({".slurm", ".sbatch"}))
    return common::v1::SOURCE_TYPE_SLURM;
  if (ends({".nomad", ".hcl"})) return common::v1::SOURCE_TYPE_NOMAD;
  if (ends({".yaml", ".yml"}) && bytes.find("kind:") != std::string_view::npos)
    return common::v1::SOURCE_TYPE_KUBERNETES;
  return common::v1::SOURCE_TYPE_UNSPECIFIED;
}

std::string_view EvidenceNoun(common::v1::SourceType type) {
  switch (type) {
    case common::v1::SOURCE_TYPE_SLURM:
      return "SLURM jobs";
    case common::v1::SOURCE_TYPE_KUBERNETES:
      return "Kubernetes workloads";
    case common::v1::SOURCE_TYPE_NOMAD:
      return "Nomad allocations";
    default:
      return "jobs";
  }
}

Status AddBundle(const Context& context, const Args& args, AnalyseRequest* request) {
  const auto& words = args.positionals();
  submission::BundleInput input;
  input.script_path = platform::NormalizePath(context.Absolute(words[0]));
  auto script = submission::ReadScript(context.fs, input.script_path);
  if (!script.ok()) return script.error();
  input.script = std::move(*script);
  input.submit_dir = context.working_directory;
  input.arguments.assign(words.begin() + 1, words.end());
  input.home = context.Environment("HOME");
  EXPANSE_TRY(const auto bundle, submission::CollectBundle(input, context.fs));
  *request->mutable_bundle() = submission::ToProto(bundle);
  request->mutable_bundle()->mutable_key()->set_source_type(SourceTypeOf(words[0], input.script));
  return {};
}

intelligence::v1::RiskTolerance Risk(std::string_view word) {
  if (word == "low") return intelligence::v1::RISK_TOLERANCE_LOW;
  if (word == "high") return intelligence::v1::RISK_TOLERANCE_HIGH;
  return intelligence::v1::RISK_TOLERANCE_MEDIUM;
}

Result<AnalyseRequest> ReadRequest(const Context& context, const Args& args) {
  AnalyseRequest request;
  request.set_target(ToUtf8(args.positionals()[0]));
  request.set_user(ToUtf8(context.user_name));
  EXPANSE_CHECK_OK(AddBundle(context, args, &request));
  if (const auto cpu = args.Int("--cpu")) request.set_cpu_cores(static_cast<int32_t>(*cpu));
  if (const auto memory = args.Size("--memory")) request.set_memory_bytes(memory->value);
  if (const auto gpu = args.Int("--gpu")) request.set_gpu_count(static_cast<int32_t>(*gpu));
  if (const auto walltime = args.Duration("--walltime"))
    request.set_walltime_seconds(walltime->count() / 1000);
  request.set_no_cache(args.Bool("--no-cache"));
  request.set_no_patch(args.Bool("--no-patch"));
  request.set_queue(args.Bool("--queue"));
  request.set_risk(Risk(args.Text("--risk").value_or("medium")));
  return request;
}

/// Asks and, unless the run is only to be queued, waits while the plane works on it.
Result<AnalyseRun> Analyse(Context& context, Session& session, const AnalyseRequest& request) {
  const intelligence::v1::AnalyseServiceClient client(session.intelligence());
  const Deadline deadline = Deadline::In(kTimeout);
  context.Progress("Analysing " + request.target() + " ...");
  EXPANSE_TRY(auto run, client.Analyse("", request, deadline));
  intelligence::v1::GetAnalyseRunRequest again;
  again.set_run_id(run.run_id());
  while (!request.queue() && (run.status() == intelligence::v1::RUN_STATUS_QUEUED ||
                              run.status() == intelligence::v1::RUN_STATUS_RUNNING)) {
    context.sleep(kPoll);
    EXPANSE_TRY(run, client.GetAnalyseRun("", again, deadline));
  }
  return run;
}

/// What follows the text: applied with --yes, asked for on a terminal, else named for later.
Result<int> OfferPatch(Context& context, Session& session, const Args& args,
                       const std::string& target, const AnalyseRun& run) {
  const bool has_patch = HasPatch(run.result()) && !args.Bool("--no-patch");
  if (!has_patch) {
    if (args.Bool("--yes")) context.terminal.Err("Nothing to apply.\n");
    return kExitOk;
  }
  const std::string& artefact_id = run.result().right_size().artifact_id();
  if (args.Bool("--yes")) {
    EXPANSE_TRY(const auto artefact, FetchArtefact(session, run.run_id(), artefact_id));
    context.terminal.Out("\n");
    EXPANSE_CHECK_OK(ApplyArtefact(context, artefact, target));
    return kExitOk;
  }
  if (!context.terminal.interactive()) {
    context.terminal.Err(FollowUpCommands(run));
    return kExitOk;
  }
  context.terminal.Out("\n");
  EXPANSE_TRY(const bool yes,
              Ask(context, "Apply the resource recommendations automatically? [y/n]"));
  if (!yes) {
    context.terminal.Out(FollowUpCommands(run));
    return kExitOk;
  }
  EXPANSE_TRY(const auto artefact, FetchArtefact(session, run.run_id(), artefact_id));
  PrintDiff(context, artefact);
  EXPANSE_CHECK_OK(ApplyArtefact(context, artefact, target));
  return kExitOk;
}

Result<int> RunAnalyse(Context& context, const Args& args) {
  // The file first: a mistyped name needs no server to be found out.
  EXPANSE_TRY(auto request, ReadRequest(context, args));
  EXPANSE_TRY(const auto session, Session::Open(context));
  EXPANSE_TRY(const auto compute, RequireCompute(*session, args));
  request.set_compute_id(compute);
  EXPANSE_TRY(const auto run, Analyse(context, *session, request));
  const bool queued = run.status() == intelligence::v1::RUN_STATUS_QUEUED ||
                      run.status() == intelligence::v1::RUN_STATUS_RUNNING;
  const bool succeeded = run.status() == intelligence::v1::RUN_STATUS_SUCCEEDED;
  if (args.Bool("--json")) {
    EXPANSE_TRY(const auto json, PrettyJson(run));
    context.terminal.Out(json);
    return queued || succeeded ? kExitOk : kExitFailed;
  }
  if (queued) {
    context.terminal.Out(AnalyseHeader(context, run));
    context.terminal.Err("Queued. The same command without --queue gives the answer.\n");
    return kExitOk;
  }
  if (!succeeded)
    return Error(Code::kUnknown, fmt::format("analysis {} ended as {}{}{}", run.run_id(),
                                             RunStatusText(run.status()),
                                             run.error().empty() ? "" : ": ", run.error()));
  context.terminal.Out(AnalyseText(context, run, EvidenceNoun(request.bundle().key().source_type()),
                                   args.Bool("--no-patch")));
  for (const auto& warning : run.result().warnings()) context.Warn(warning);
  if (run.cached()) context.Progress("A recorded analysis; --no-cache makes a fresh one.");
  return OfferPatch(context, *session, args, request.target(), run);
}

constexpr Positional kPositionals[] = {
    {.name = "target",
     .doc = "SLURM batch script or source file; Kubernetes manifests and Nomad jobspecs are "
            "recognised, but not read yet"},
    {.name = "argument",
     .doc = "arguments of the script, as sbatch would pass them; those that begin with - after --",
     .required = false,
     .repeat = true},
};
constexpr Flag kFlags[] = {
    {.name = "--compute",
     .doc = "compute on which it would run",
     .default_text = "the only one that is connected",
     .value_name = "ID|NAME"},
    {.name = "--cpu",
     .kind = FlagKind::kInt,
     .doc = "requested cores, instead of the script's",
     .least = 1},
    {.name = "--memory",
     .kind = FlagKind::kSize,
     .doc = "requested host memory, e.g. 16GiB, instead of the script's"},
    {.name = "--gpu",
     .kind = FlagKind::kInt,
     .doc = "requested GPUs, instead of the script's",
     .least = 0},
    {.name = "--walltime",
     .kind = FlagKind::kDuration,
     .doc = "requested walltime, e.g. 2h, instead of the script's"},
    {.name = "--risk",
     .kind = FlagKind::kChoice,
     .doc = "accepted share of jobs that the recommended limits harm: 0.3 %, 1 % or 5 %",
     .default_text = "medium",
     .choices = kRisks},
    {.name = "--json", .kind = FlagKind::kBool, .doc = "the raw JSON response"},
    {.name = "--no-cache",
     .kind = FlagKind::kBool,
     .doc = "a fresh analysis instead of the recorded one"},
    {.name = "--no-patch", .kind = FlagKind::kBool, .doc = "numbers only, no patch"},
    {.name = "--yes",
     .kind = FlagKind::kBool,
     .doc = "apply the resource patch without asking; never changes code"},
    {.name = "--queue", .kind = FlagKind::kBool, .doc = "queue the analysis instead of waiting"},
};
constexpr Rule kRules[] = {{Rule::kExcludes, "--yes", "--json"},
                           {Rule::kExcludes, "--yes", "--no-patch"},
                           {Rule::kExcludes, "--yes", "--queue"}};
constexpr Example kExamples[] = {
    {"expanse analyse train.slurm", "SLURM batch script"},
    {"expanse analyse train.py", "source file"},
    {"expanse analyse job.yaml", "Kubernetes workload manifest (not read yet)"},
    {"expanse analyse job.nomad", "Nomad jobspec (not read yet)"},
    {"expanse analyse train.slurm --json"},
    {"expanse analyse train.slurm -- --epochs 10", "with the script's arguments"},
    {"expanse analyse diff <run-id> --artefact <artefact-id>", "inspect the patch"},
    {"expanse analyse apply <run-id> --artefact <artefact-id>", "apply it locally"},
};

}  // namespace

const Command kAnalyse{
    .name = "analyse",
    .alias = "analyze",
    .group = kGroupIntelligence,
    .summary = "recommends resources before a workload runs",
    .description =
        "Every row of the recommendation is a limit to request, with its unit in the name. The "
        "numbers come from recorded runs of the same source; without any, confidence is low and "
        "the missing evidence is named. On a terminal it asks whether to apply the patch; a file "
        "is never touched without y, --yes or `expanse analyse apply`.",
    .positionals = kPositionals,
    .flags = kFlags,
    .rules = kRules,
    .examples = kExamples,
    .run = RunAnalyse,
};

}  // namespace expanse::cli
