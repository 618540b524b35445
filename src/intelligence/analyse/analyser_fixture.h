// SPDX-License-Identifier: Apache-2.0
// Recorded runs and submissions for the tests of analyse.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "intelligence/analyse/analyser.h"
#include "platform/crypto/crypto.h"

namespace expanse::intelligence::analyse {

inline data::v1::RecordedRun Ran(const std::string& id, double memory_gib, int64_t seconds,
                                 const std::string& basis = "exact_bundle") {
  data::v1::RecordedRun run;
  run.set_basis(basis);
  run.set_similarity(basis == "exact_bundle" ? 1.0 : 0.8);
  auto* e = run.mutable_execution();
  e->set_execution_id("00000000-0000-7000-8000-00000000" + id);
  e->set_native_id(id);
  e->set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
  e->mutable_memory_need()->set_value(static_cast<int64_t>(memory_gib * static_cast<double>(kGiB)));
  e->mutable_memory_need()->set_bound(common::v1::BOUND_EXACT);
  e->mutable_runtime_seconds()->set_value(seconds);
  e->mutable_runtime_seconds()->set_bound(common::v1::BOUND_EXACT);
  return run;
}

inline data::v1::RecordedRun OutOfMemoryRun(const std::string& id, double limit_gib) {
  auto run = Ran(id, limit_gib * 0.7, 20);
  auto* e = run.mutable_execution();
  e->set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  e->set_ending_cause(common::v1::ENDING_CAUSE_MEMORY_LIMIT);
  e->mutable_memory_need()->set_bound(common::v1::BOUND_AT_LEAST);
  e->mutable_allocated()->set_memory_bytes(
      static_cast<int64_t>(limit_gib * static_cast<double>(kGiB)));
  e->mutable_allocated()->set_nodes(1);
  return run;
}

inline data::v1::RecordedRun Ended(data::v1::RecordedRun run,
                                   common::v1::ExecutionOutcome outcome) {
  run.mutable_execution()->set_outcome(outcome);
  return run;
}

inline AnalyseInputs Question(const std::string& script,
                              std::vector<data::v1::RecordedRun> runs = {},
                              const std::string& target = "train.slurm") {
  AnalyseInputs in;
  in.request.set_target(target);
  auto* bundle = in.request.mutable_bundle();
  bundle->set_script_path(target);
  auto* file = bundle->add_files();
  file->set_path(target);
  file->set_content(script);
  file->set_size(static_cast<int64_t>(script.size()));
  file->set_sha256(platform::Sha256Hex(script));
  in.runs = std::move(runs);
  in.artifact_id = "artifact-1";
  return in;
}

}  // namespace expanse::intelligence::analyse
