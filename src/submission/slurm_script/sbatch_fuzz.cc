// SPDX-License-Identifier: Apache-2.0
// Any bytes as a batch script: reading, identity and patching must hold their promises.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "submission/patch/sbatch_patch.h"

namespace sub = expanse::submission;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (256 << 10)) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto script = sub::ReadSbatchScript(text);
  for (const auto& d : script.directives) {
    for (const auto& span : {d.whole, d.name, d.value_bytes})
      if (span.offset > size || span.length > size - span.offset) std::abort();
  }
  const auto request = sub::ReadSbatchRequest(script, "job.sh");
  const std::string identity = sub::WithoutResourceDirectives(text, script);
  if (identity.size() > size) std::abort();

  sub::WantedRequest wanted;
  wanted.memory = expanse::Bytes{int64_t{3} << 30};
  wanted.cores = 3;
  wanted.gpus = 2;
  wanted.walltime = expanse::Seconds(5400);
  const auto patch = sub::PatchSbatchScript(text, script, request, wanted);
  const auto after = sub::ApplyEdits(text, patch.edits);
  if (!after.ok()) std::abort();
  // A script that sbatch takes is still taken, and only its request changed.
  if (!script.refusals.empty() || !request.refusals.empty()) return 0;
  const auto again = sub::ReadSbatchScript(*after);
  if (!again.refusals.empty()) std::abort();
  if (sub::WithoutResourceDirectives(*after, again) != identity) std::abort();
  const auto reread = sub::ReadSbatchRequest(again, "job.sh");
  if (patch.walltime_changed &&
      (!reread.time || !reread.time->limit || reread.time->limit->count() != 5400)) {
    std::abort();
  }
  return 0;
}
