// SPDX-License-Identifier: Apache-2.0
// Words that flags and text output use for the contract's enums.
#pragma once

#include <string>
#include <string_view>

#include "expanse/common/v1/execution.pb.h"
#include "expanse/control/v1/control.pb.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::cli {

inline constexpr std::string_view kSourceTypes[] = {"slurm", "kubernetes", "nomad", "vm"};
inline constexpr std::string_view kStatuses[] = {"queued", "running",   "succeeded",
                                                 "failed", "cancelled", "unknown"};
inline constexpr std::string_view kOutcomes[] = {"success", "failure",       "cancelled",
                                                 "timeout", "out_of_memory", "unknown"};

/// As prose names it: "SLURM".
std::string_view SourceTypeNoun(common::v1::SourceType type);
/// Empty for UNSPECIFIED.
std::string StatusLabel(common::v1::ExecutionStatus status);
std::string OutcomeLabel(common::v1::ExecutionOutcome outcome);
std::string ComputeTypeLabel(control::v1::ComputeType type);
std::string ComputeStateLabel(control::v1::ComputeState state);
/// "low", "medium", "high"; "low" for UNSPECIFIED, since nothing is known then.
std::string ConfidenceText(intelligence::v1::ConfidenceLabel label);
/// "run_status_succeeded".
std::string RunStatusText(intelligence::v1::RunStatus status);
/// "done", "degraded", "skipped".
std::string StageStatusText(intelligence::v1::PipelineStageStatus status);

/// The enum of a word that the flag table checked.
common::v1::ExecutionStatus StatusFromWord(std::string_view word);
common::v1::ExecutionOutcome OutcomeFromWord(std::string_view word);
common::v1::SourceType SourceTypeFromWord(std::string_view word);
control::v1::ComputeType ComputeTypeFromWord(std::string_view word);

}  // namespace expanse::cli
