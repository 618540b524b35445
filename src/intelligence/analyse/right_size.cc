// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/right_size.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "platform/crypto/crypto.h"
#include "submission/patch/sbatch_patch.h"

namespace expanse::intelligence::analyse {
namespace {

/// Adds "<resource>_lower" or "_raise". What the script does not state is bounded only by the node
/// or the partition, so stating a figure lowers it.
template <typename T>
void AddToken(std::string_view resource, std::optional<T> before, T after, v1::RightSize* out) {
  const bool lower = !before || after < *before;
  if (lower) out->set_review_required(true);
  std::string text = out->class_();
  if (!text.empty()) text += "+";
  text += fmt::format("{}_{}", resource, lower ? "lower" : "raise");
  out->set_class_(text);
}

submission::WantedRequest Wanted(const SubmissionView& view, const Recommendation& r) {
  submission::WantedRequest wanted;
  if (r.memory_limit && r.memory_bytes && r.memory_bytes != view.stated.memory_bytes) {
    wanted.memory = Bytes{*r.memory_bytes};
  }
  if (r.cpu_cores && r.cpu_cores != view.stated.cpu_cores) wanted.cores = *r.cpu_cores;
  if (r.gpu_count && view.stated.gpu_count && r.gpu_count != view.stated.gpu_count) {
    wanted.gpus = *r.gpu_count;
  }
  if (r.walltime_limit && r.walltime_seconds &&
      r.walltime_seconds != view.stated.walltime_seconds) {
    wanted.walltime = Seconds(*r.walltime_seconds);
  }
  return wanted;
}

v1::ArtifactContent Artifact(const std::string& before, const std::string& after,
                             const std::vector<submission::ByteEdit>& edits,
                             const std::string& diff) {
  v1::ArtifactContent artifact;
  artifact.set_artifact_type(v1::ARTIFACT_TYPE_UNIFIED_DIFF);
  artifact.set_content(diff);
  artifact.set_content_hash("sha256:" + platform::Sha256Hex(diff));
  artifact.set_source_sha256(platform::Sha256Hex(before));
  artifact.set_result_sha256(platform::Sha256Hex(after));
  for (const auto& edit : edits) {
    auto* out = artifact.add_edits();
    out->set_offset(static_cast<int64_t>(edit.offset));
    out->set_length(static_cast<int64_t>(edit.length));
    out->set_replacement(edit.replacement);
  }
  return artifact;
}

/// The promise of every patch: nothing but resource directives changes, and sbatch reads it.
bool ChangesOnlyTheRequest(const SubmissionView& view, const std::string& after) {
  const auto sbatch = submission::ReadSbatchScript(after);
  return submission::WithoutResourceDirectives(view.script, view.sbatch) ==
             submission::WithoutResourceDirectives(after, sbatch) &&
         sbatch.refusals.size() <= view.sbatch.refusals.size();
}

}  // namespace

RightSizing MakePatch(const SubmissionView& view, const Recommendation& recommendation,
                      const std::string& target, const std::string& artifact_id) {
  RightSizing out;
  out.right_size.set_class_("none");
  if (!view.is_batch_script) return out;
  const auto wanted = Wanted(view, recommendation);
  const auto patch = submission::PatchSbatchScript(view.script, view.sbatch, view.request, wanted);
  for (const auto& note : patch.notes) out.warnings.push_back("not in the patch: " + note);
  if (patch.edits.empty()) return out;
  const auto after = submission::ApplyEdits(view.script, patch.edits);
  const auto diff = after.ok() ? submission::UnifiedDiff(target, view.script, *after)
                               : Result<std::string>(after.error());
  if (!diff.ok() || !ChangesOnlyTheRequest(view, *after)) {
    out.warnings.push_back("no patch: " + (diff.ok() ? "it would change more than the request"
                                                     : diff.error().message()));
    return out;
  }
  out.patch = Artifact(view.script, *after, patch.edits, *diff);
  out.patch->set_artifact_id(artifact_id);
  out.patch->set_source_file(ToUtf8(target));

  auto& size = out.right_size;
  size.clear_class_();
  size.set_review_required(false);
  if (patch.memory_changed && wanted.memory) {
    AddToken<int64_t>("memory", view.stated.memory_bytes, wanted.memory->value, &size);
  }
  if (patch.cores_changed) AddToken<int32_t>("cpu", view.stated.cpu_cores, *wanted.cores, &size);
  if (patch.gpus_changed) AddToken<int32_t>("gpu", view.stated.gpu_count, *wanted.gpus, &size);
  if (patch.walltime_changed) {
    AddToken<int64_t>("walltime", view.stated.walltime_seconds, wanted.walltime->count(), &size);
  }
  size.set_source_file(ToUtf8(target));
  size.set_artifact_id(artifact_id);
  return out;
}

}  // namespace expanse::intelligence::analyse
