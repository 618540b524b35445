// SPDX-License-Identifier: Apache-2.0
#include "cli/artefact.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/question.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "platform/crypto/crypto.h"
#include "submission/patch/byte_edit.h"
#include "submission/slurm_script/sbatch_script.h"

namespace expanse::cli {
namespace {

using intelligence::v1::ArtifactContent;

constexpr size_t kMaxScriptBytes = 4 << 20;

Error Refused(std::string why) {
  return Error(Code::kFailedPrecondition, "the patch was not applied: " + std::move(why));
}

/// Hashes come with and without the name of their algorithm.
std::string_view HexOf(std::string_view hash) {
  constexpr std::string_view kPrefix = "sha256:";
  if (hash.starts_with(kPrefix)) hash.remove_prefix(kPrefix.size());
  return hash;
}

/// The file without what a recommendation may change.
std::string Program(const std::string& script) {
  return submission::WithoutResourceDirectives(script, submission::ReadSbatchScript(script));
}

std::string ColouredDiff(const Context& context, std::string_view diff) {
  std::string out;
  while (!diff.empty()) {
    const size_t end = diff.find('\n');
    const std::string line = EscapeForTerminal(diff.substr(0, end));
    Hue hue = Hue::kNone;
    if (line.starts_with('-') && !line.starts_with("---")) hue = Hue::kRed;
    if (line.starts_with('+') && !line.starts_with("+++")) hue = Hue::kGreen;
    out += Coloured(context, hue, line) + "\n";
    if (end == std::string_view::npos) break;
    diff.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

Result<ArtifactContent> FetchArtefact(Session& session, const std::string& run_id,
                                      const std::string& artefact_id) {
  const intelligence::v1::AnalyseServiceClient client(session.intelligence());
  intelligence::v1::GetArtifactRequest request;
  request.set_run_id(run_id);
  request.set_artifact_id(artefact_id);
  EXPANSE_TRY(auto artefact, client.GetArtifact("", request));
  if (platform::Sha256Hex(artefact.content()) != HexOf(artefact.content_hash()))
    return Error(Code::kDataLoss,
                 fmt::format("artefact {} does not match its content_hash; it was damaged on the "
                             "way or in the store",
                             artefact_id));
  return artefact;
}

void PrintDiff(Context& context, const ArtifactContent& artefact) {
  if (context.terminal.out_is_terminal())
    context.terminal.Out(ColouredDiff(context, artefact.content()));
  else
    context.terminal.Out(artefact.content());
}

Status ApplyArtefact(Context& context, const ArtifactContent& artefact, std::string_view target) {
  // Whoever says yes to one file has not said so to another that the plane names.
  if (!target.empty() && artefact.source_file() != target)
    return Refused(fmt::format("it is for {}, and {} was analysed",
                               EscapeForTerminal(artefact.source_file()),
                               EscapeForTerminal(target)));
  const std::string path = context.Absolute(artefact.source_file());
  auto before = context.fs.Read(path, kMaxScriptBytes);
  if (!before.ok()) {
    if (before.error().code() != Code::kNotFound) return before.error();
    return Error(Code::kNotFound,
                 before.error().message() + "; apply the patch where the analysis was made");
  }
  const std::string before_sha256(HexOf(artefact.source_sha256()));
  // Before the edits are looked at: those of another version of the file need not even fit.
  if (platform::Sha256Hex(*before) != before_sha256)
    return Refused(fmt::format("{} changed since the analysis; run `expanse analyse` again",
                               artefact.source_file()));
  std::vector<submission::ByteEdit> edits;
  for (const auto& edit : artefact.edits()) {
    if (edit.offset() < 0 || edit.length() < 0) return Refused("its edits do not fit the file");
    edits.push_back({static_cast<size_t>(edit.offset()), static_cast<size_t>(edit.length()),
                     edit.replacement()});
  }
  const auto after = submission::ApplyEdits(*before, edits);
  if (!after.ok()) return Refused("its edits do not fit the file");
  // The plane is not trusted with more than it is asked for.
  if (Program(*before) != Program(*after))
    return Refused("it would change more than resource directives");
  const auto applied = submission::ApplyEditsToFile(context.fs, path, before_sha256, edits,
                                                    std::string(HexOf(artefact.result_sha256())));
  if (!applied.ok()) return applied.error().WithContext("the patch was not applied");
  const std::string named = EscapeForTerminal(artefact.source_file());
  context.terminal.Out(
      applied->through_symlink
          ? fmt::format("Applied to {}, a link to {}.\n", named, EscapeForTerminal(applied->path))
          : fmt::format("Applied to {}.\n", named));
  return {};
}

}  // namespace expanse::cli
