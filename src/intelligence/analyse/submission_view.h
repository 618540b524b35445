// SPDX-License-Identifier: Apache-2.0
// The submission of one analyse request: what it is, what it asks for and where each figure stands.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "expanse/data/v1/ingest.pb.h"
#include "expanse/intelligence/v1/intelligence.pb.h"
#include "submission/slurm_script/sbatch_request.h"
#include "submission/slurm_script/sbatch_script.h"

namespace expanse::intelligence::analyse {

/// Figures in effect before any recommendation, of the whole job.
struct Requested {
  std::optional<int32_t> cpu_cores;
  std::optional<int64_t> memory_bytes;
  std::optional<int32_t> gpu_count;
  std::optional<int64_t> walltime_seconds;
  std::map<std::string, std::string> unknown;  // field of RecommendedResources to reason
};

struct SubmissionView {
  bool is_batch_script = false;  // else a source file: no request, no patch
  std::string job_name;
  std::string script;  // exact bytes of the target
  submission::SbatchScript sbatch;
  submission::SbatchRequest request;  // of component 0
  Requested stated;                   // by the script itself, with the partition's defaults
  Requested requested;                // the same, with the figures of the command line
  int32_t nodes = 1;
  int32_t tasks = 1;
  std::vector<std::string> warnings;
};

/// kInvalidArgument: no bundle, or contents that do not match their hash. kUnimplemented: a
/// Kubernetes or Nomad file, with what is supported.
/// facts: defaults of the partition, when the cluster is known; may be null.
Result<SubmissionView> ReadSubmission(const v1::AnalyseRequest& request,
                                      const data::v1::ComputeFacts* facts);

/// The partition a request lands in: the one named, else the default one; null when not known.
const data::v1::PartitionFacts* PartitionOf(const SubmissionView& view,
                                            const data::v1::ComputeFacts* facts);

}  // namespace expanse::intelligence::analyse
