// SPDX-License-Identifier: Apache-2.0
// Values of sbatch options, read as sbatch 22.05 reads them (each rule was tried on it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse::submission {

/// "4G", "512" (MiB), "4GB", "1025K" (rounded up to whole MiB). Powers of 1024. No fractions, no
/// "GiB", nothing above T.
Result<Bytes> ParseSbatchMemory(std::string_view text);

/// A time limit. Nothing: no limit ("0", "infinite", "-1").
struct SbatchTime {
  std::optional<Seconds> limit;  // whole minutes: sbatch rounds seconds up
};
/// minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s.
Result<SbatchTime> ParseSbatchTime(std::string_view text);

/// A whole number that may carry a sign; `least` is the smallest allowed.
Result<int32_t> ParseSbatchCount(std::string_view text, std::string_view option, int32_t least);

struct SbatchNodes {
  int32_t min = 0;
  int32_t max = 0;  // equal to min unless a range was given
};
/// "2", "1-4", with the suffixes k and m (1024, 1024^2).
Result<SbatchNodes> ParseSbatchNodes(std::string_view text);

/// One entry of --gres or --gpus*: "gpu:a100:2", "2", "a100:2", "gpu".
struct SbatchGres {
  std::string name;  // "gpu" for --gpus*
  std::string type;  // empty when not given
  int64_t count = 1;
  size_t count_offset = 0;  // position of the count within the text; npos: not written
  size_t count_length = 0;
};
/// --gres: a comma-separated list, each with a name.
Result<std::vector<SbatchGres>> ParseSbatchGres(std::string_view text);
/// --gpus, --gpus-per-node, --gpus-per-task, --gpus-per-socket: [type:]number, comma-separated.
Result<std::vector<SbatchGres>> ParseSbatchGpus(std::string_view text, std::string_view option);

/// Task ids of --array, at most `limit` of them counted; nothing when the text is no array.
struct SbatchArrayShape {
  int64_t tasks = 0;
  std::optional<int64_t> at_once;  // "%N"
};
Result<SbatchArrayShape> ParseSbatchArray(std::string_view text);

}  // namespace expanse::submission
