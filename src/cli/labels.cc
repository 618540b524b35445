// SPDX-License-Identifier: Apache-2.0
#include "cli/labels.h"

#include "cli/text.h"

namespace expanse::cli {
namespace {

std::string Upper(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

}  // namespace

std::string_view SourceTypeNoun(common::v1::SourceType type) {
  switch (type) {
    case common::v1::SOURCE_TYPE_SLURM:
      return "SLURM";
    case common::v1::SOURCE_TYPE_KUBERNETES:
      return "Kubernetes";
    case common::v1::SOURCE_TYPE_NOMAD:
      return "Nomad";
    case common::v1::SOURCE_TYPE_VM:
      return "VM";
    default:
      return "scheduler";
  }
}

std::string StatusLabel(common::v1::ExecutionStatus status) {
  if (status == common::v1::EXECUTION_STATUS_UNSPECIFIED) return "";
  return EnumLabel(common::v1::ExecutionStatus_Name(status), "EXECUTION_STATUS_");
}

std::string OutcomeLabel(common::v1::ExecutionOutcome outcome) {
  if (outcome == common::v1::EXECUTION_OUTCOME_UNSPECIFIED) return "";
  return EnumLabel(common::v1::ExecutionOutcome_Name(outcome), "EXECUTION_OUTCOME_");
}

std::string ComputeTypeLabel(control::v1::ComputeType type) {
  if (type == control::v1::COMPUTE_TYPE_UNSPECIFIED) return "";
  return EnumLabel(control::v1::ComputeType_Name(type), "COMPUTE_TYPE_");
}

std::string ComputeStateLabel(control::v1::ComputeState state) {
  if (state == control::v1::COMPUTE_STATE_UNSPECIFIED) return "";
  return EnumLabel(control::v1::ComputeState_Name(state), "COMPUTE_STATE_");
}

std::string ConfidenceText(intelligence::v1::ConfidenceLabel label) {
  if (label == intelligence::v1::CONFIDENCE_LABEL_UNSPECIFIED) return "low";
  return EnumLabel(intelligence::v1::ConfidenceLabel_Name(label), "CONFIDENCE_LABEL_");
}

std::string RunStatusText(intelligence::v1::RunStatus status) {
  return EnumLabel(intelligence::v1::RunStatus_Name(status), "");
}

std::string StageStatusText(intelligence::v1::PipelineStageStatus status) {
  if (status == intelligence::v1::PIPELINE_STAGE_STATUS_OK) return "done";
  return EnumLabel(intelligence::v1::PipelineStageStatus_Name(status), "PIPELINE_STAGE_STATUS_");
}

common::v1::ExecutionStatus StatusFromWord(std::string_view word) {
  auto value = common::v1::EXECUTION_STATUS_UNSPECIFIED;
  EXPANSE_CHECK(common::v1::ExecutionStatus_Parse("EXECUTION_STATUS_" + Upper(word), &value));
  return value;
}

common::v1::ExecutionOutcome OutcomeFromWord(std::string_view word) {
  auto value = common::v1::EXECUTION_OUTCOME_UNSPECIFIED;
  EXPANSE_CHECK(common::v1::ExecutionOutcome_Parse("EXECUTION_OUTCOME_" + Upper(word), &value));
  return value;
}

common::v1::SourceType SourceTypeFromWord(std::string_view word) {
  auto value = common::v1::SOURCE_TYPE_UNSPECIFIED;
  EXPANSE_CHECK(common::v1::SourceType_Parse("SOURCE_TYPE_" + Upper(word), &value));
  return value;
}

control::v1::ComputeType ComputeTypeFromWord(std::string_view word) {
  auto value = control::v1::COMPUTE_TYPE_UNSPECIFIED;
  EXPANSE_CHECK(control::v1::ComputeType_Parse("COMPUTE_TYPE_" + Upper(word), &value));
  return value;
}

}  // namespace expanse::cli
