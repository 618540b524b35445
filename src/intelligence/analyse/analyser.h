// SPDX-License-Identifier: Apache-2.0
// The answer to one analyse question, from evidence alone: no clock, no store, no network. The
// prediction engine replaces Recommend() and the quantiles; what stands around it stays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "expanse/data/v1/data.pb.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::intelligence::analyse {

/// Part of the cache key: raise it when the same evidence would give another answer.
inline constexpr std::string_view kModelVersion = "anchored-1";

struct AnalyseInputs {
  v1::AnalyseRequest request;
  std::vector<data::v1::RecordedRun> runs;      // newest first, of request.compute_id
  std::optional<data::v1::ComputeFacts> facts;  // of the compute; nothing: not known
  std::string facts_unknown_reason;             // why there are none
  std::string artifact_id;                      // for the patch, if there is one
};

struct AnalyseAnswer {
  std::string job_name;
  v1::AnalyseResult result;
  std::optional<v1::ArtifactContent> patch;
};

/// kInvalidArgument or kUnimplemented for a submission that cannot be read (ReadSubmission).
Result<AnalyseAnswer> Analyse(const AnalyseInputs& inputs);

}  // namespace expanse::intelligence::analyse
