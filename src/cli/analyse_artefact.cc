// SPDX-License-Identifier: Apache-2.0
// analyse diff and analyse apply.
#include "cli/artefact.h"
#include "cli/command.h"
#include "cli/session.h"

namespace expanse::cli {
namespace {

Result<int> RunDiff(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  EXPANSE_TRY(const auto artefact,
              FetchArtefact(*session, args.positionals()[0], *args.Text("--artefact")));
  PrintDiff(context, artefact);
  return kExitOk;
}

Result<int> RunApply(Context& context, const Args& args) {
  EXPANSE_TRY(const auto session, Session::Open(context));
  EXPANSE_TRY(const auto artefact,
              FetchArtefact(*session, args.positionals()[0], *args.Text("--artefact")));
  EXPANSE_CHECK_OK(ApplyArtefact(context, artefact, ""));
  return kExitOk;
}

constexpr Positional kRunId[] = {{.name = "run-id", .doc = "`run` of the analysis"}};
constexpr Flag kFlags[] = {{.name = "--artefact",
                            .doc = "id of the patch",
                            .alias = "--artifact",
                            .value_name = "ID",
                            .required = true}};
constexpr Example kDiffExamples[] = {
    {"expanse analyse diff <run-id> --artefact <artefact-id>"},
    {"expanse analyse diff <run-id> --artefact <artefact-id> | patch -p1 --dry-run"},
};
constexpr Example kApplyExamples[] = {{"expanse analyse apply <run-id> --artefact <artefact-id>"}};

}  // namespace

const Command kAnalyseDiff{
    .name = "analyse diff",
    .group = kGroupIntelligence,
    .summary = "shows the patch of an analysis as a unified diff",
    .positionals = kRunId,
    .flags = kFlags,
    .examples = kDiffExamples,
    .run = RunDiff,
};

const Command kAnalyseApply{
    .name = "analyse apply",
    .group = kGroupIntelligence,
    .summary = "applies the patch of an analysis to the local file",
    .description =
        "The file must be the one that was analysed, byte for byte; the patch may change resource "
        "directives and nothing else. Otherwise the file stays untouched and the command says why.",
    .positionals = kRunId,
    .flags = kFlags,
    .examples = kApplyExamples,
    .run = RunApply,
};

}  // namespace expanse::cli
