// SPDX-License-Identifier: Apache-2.0
// From a tool's row to the record that goes to the data plane. Only what the row saw is set; what
// it could not see has a name and a reason in the `unknown` maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/slurm/job_record.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::slurm {

/// Which attempt of which run a row speaks of.
struct RunIdentity {
  int64_t job_id = 0;
  int64_t submit = 0;  // epoch seconds of the first attempt; SLURM sets it anew at a requeue
  int32_t restarts = 0;
  auto operator<=>(const RunIdentity&) const = default;
};

/// What other rows of the same attempt showed and this one lacks.
struct RunContext {
  /// From squeue or scontrol; sacct of 22.05 prints codes from 128 on less 128.
  std::optional<ExitStatus> exit;
  std::string memory_form;        // "mem", "mem-per-cpu", "mem-per-gpu", "default"; empty: not seen
  std::string sacct_unavailable;  // why no steps and no usage will come; empty: they will
  /// Of a run that was resized: what it was asked for before, where that was seen. The tools show
  /// the request after the resize.
  std::optional<Tres> original_request;
};

/// As users write it: "41982", "41982_3", "7_[1-4%2]", "41982+1".
std::string DisplayId(const JobRecord& job);

common::v1::RunKey KeyOf(const JobRecord& job, const RunIdentity& id);

data::v1::ExecutionFacts BuildFacts(const JobRecord& job, const RunIdentity& id,
                                    const RunContext& context);

}  // namespace expanse::collect::slurm
