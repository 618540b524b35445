// SPDX-License-Identifier: Apache-2.0
// Changes the request of a batch script the way its author would: the value alone, in the form,
// unit and quoting that stand there; an option that is missing goes on a line of its own after the
// last directive, written like its neighbours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "base/units.h"
#include "submission/patch/byte_edit.h"
#include "submission/slurm_script/sbatch_request.h"
#include "submission/slurm_script/sbatch_script.h"

namespace expanse::submission {

/// Wanted figures; what is absent stays as it is. Of the whole job, as SbatchRequest's totals.
struct WantedRequest {
  std::optional<Bytes> memory;
  std::optional<int32_t> cores;
  std::optional<int32_t> gpus;
  std::optional<Seconds> walltime;
};

struct SbatchPatch {
  std::vector<ByteEdit> edits;     // sorted; empty: nothing to change
  std::vector<std::string> notes;  // what could not be expressed, with the reason
  bool memory_changed = false;
  bool cores_changed = false;
  bool gpus_changed = false;
  bool walltime_changed = false;
};

/// `request` is that of component 0 of `script`; heterogeneous jobs get a note and no edit.
SbatchPatch PatchSbatchScript(std::string_view bytes, const SbatchScript& script,
                              const SbatchRequest& request, const WantedRequest& wanted);

/// `size` rounded up to what the unit style of `like` can say: "128G" and 15 GiB give "15G",
/// 1.5 GiB gives "1536M"; "4000" (MiB) stays without a unit.
std::string FormatSbatchMemoryLike(std::string_view like, Bytes size);
/// Whole minutes in the style of `like`: "120" stays minutes, "02:00:00" stays h:m:s, "1-0" stays
/// days.
std::string FormatSbatchTimeLike(std::string_view like, Seconds limit);

}  // namespace expanse::submission
