// SPDX-License-Identifier: Apache-2.0
#include "data_plane/merge/merge.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <google/protobuf/message.h>

#include "data_plane/identity/run_key.h"
#include "data_plane/merge/parts.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::StoredFacts;
using E = Execution;

// Taken by precedence.
constexpr int kPlain[] = {
    E::kNativeIdFieldNumber,  E::kUserFieldNumber,       E::kAccountFieldNumber,
    E::kPartitionFieldNumber, E::kSubmitLineFieldNumber, E::kQosFieldNumber,
    E::kClusterFieldNumber,   E::kGpuModelFieldNumber,   E::kGpuMemoryTotalBytesFieldNumber};
// scontrol expands what the others cut short or leave as a pattern.
constexpr int kNamesAndPaths[] = {E::kJobNameFieldNumber, E::kCommandFieldNumber,
                                  E::kWorkDirFieldNumber, E::kStdoutPathFieldNumber,
                                  E::kStderrPathFieldNumber};
constexpr int kOfSubmission[] = {E::kBundleIdFieldNumber, E::kScriptHashFieldNumber,
                                 E::kTreeHashFieldNumber, E::kArgsHashFieldNumber};

bool IsSet(const Execution& e, const google::protobuf::FieldDescriptor* field) {
  if (field->is_repeated()) return e.GetReflection()->FieldSize(e, field) > 0;
  return e.GetReflection()->HasField(e, field);
}

// The first row that has the field gives it.
void TakeFirst(const OrderedRows& rows, int number, Execution* out) {
  const auto* field = Execution::descriptor()->FindFieldByNumber(number);
  const auto* r = out->GetReflection();
  for (const StoredFacts* row : rows) {
    const Execution& in = row->execution();
    if (!IsSet(in, field)) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING)
      r->SetString(out, field, r->GetString(in, field));
    else
      r->SetInt64(out, field, r->GetInt64(in, field));
    return;
  }
}

void MergeNodes(const OrderedRows& rows, Execution* out) {
  for (const StoredFacts* row : rows)
    if (!IsNodeScoped(*row) && row->execution().nodes_size() > 0) {
      *out->mutable_nodes() = row->execution().nodes();
      return;
    }
  std::set<std::string> seen;
  for (const StoredFacts* row : rows)
    if (IsNodeScoped(*row) && !row->node().empty()) seen.insert(row->node());
  for (const std::string& node : seen) out->add_nodes(node);
}

// All parts of one run come from one source: mixing two would double them.
void MergeSegments(const OrderedRows& rows, Execution* out) {
  for (const StoredFacts* row : rows)
    if (row->execution().segments_size() > 0) {
      *out->mutable_segments() = row->execution().segments();
      return;
    }
}

void MergeGroup(const OrderedRows& rows, Execution* out) {
  // Weakest first, so that a stronger source overwrites field by field.
  for (auto it = rows.rbegin(); it != rows.rend(); ++it)
    if ((*it)->execution().has_group()) out->mutable_group()->MergeFrom((*it)->execution().group());
}

}  // namespace

int OriginRank(int origin) {
  switch (origin) {
    case data::v1::FACT_ORIGIN_SACCT:
      return 0;
    case data::v1::FACT_ORIGIN_SCONTROL:
      return 1;
    case data::v1::FACT_ORIGIN_HOOK_EPILOG:
    case data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG:
    case data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG:
      return 2;
    case data::v1::FACT_ORIGIN_HOOK_PROLOG:
      return 3;
    case data::v1::FACT_ORIGIN_SQUEUE:
      return 4;
    case data::v1::FACT_ORIGIN_CGROUP:
      return 5;
    default:
      return 6;
  }
}

bool IsNodeScoped(const StoredFacts& row) {
  switch (row.origin()) {
    case data::v1::FACT_ORIGIN_HOOK_PROLOG:
    case data::v1::FACT_ORIGIN_HOOK_EPILOG:
    case data::v1::FACT_ORIGIN_HOOK_TASK_PROLOG:
    case data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG:
    case data::v1::FACT_ORIGIN_CGROUP:
      return true;
    default:
      return false;
  }
}

std::vector<const StoredFacts*> ByPrecedence(const std::vector<StoredFacts>& rows) {
  std::vector<const StoredFacts*> out;
  out.reserve(rows.size());
  for (const StoredFacts& row : rows) out.push_back(&row);
  std::sort(out.begin(), out.end(), [](const StoredFacts* a, const StoredFacts* b) {
    const auto key = [](const StoredFacts& row) {
      return std::tuple(OriginRank(row.origin()), -row.last_observed_ms(), row.origin());
    };
    const auto ka = key(*a);
    const auto kb = key(*b);
    if (ka != kb) return ka < kb;
    return std::tie(a->node(), a->step_id()) < std::tie(b->node(), b->step_id());
  });
  return out;
}

Execution Merge(const MergeContext& context, const std::vector<StoredFacts>& stored) {
  const OrderedRows rows = ByPrecedence(stored);
  OrderedRows names = rows;
  std::stable_sort(names.begin(), names.end(), [](const StoredFacts* a, const StoredFacts* b) {
    return (a->origin() == data::v1::FACT_ORIGIN_SCONTROL) >
           (b->origin() == data::v1::FACT_ORIGIN_SCONTROL);
  });
  Execution out;
  out.set_execution_id(context.execution_id);
  out.set_compute_id(context.compute_id);
  out.set_source_type(context.source_type);
  out.set_native_id(context.native_id);
  for (const int field : kPlain) TakeFirst(rows, field, &out);
  for (const int field : kNamesAndPaths) TakeFirst(names, field, &out);
  for (const int field : kOfSubmission) TakeFirst(rows, field, &out);
  MergeNodes(rows, &out);
  MergeSegments(rows, &out);
  MergeGroup(rows, &out);
  MergeResources(rows, &out);
  MergeSteps(rows, &out);
  MergeLifecycle(context, rows, &out);
  MergeMeasurements(rows, &out);
  out.set_attempt(context.attempt);
  out.set_first_attempt_execution_id(context.first_attempt_execution_id);
  std::set<std::string_view> seen;
  for (const StoredFacts* row : rows)
    seen.insert(OriginName(static_cast<data::v1::FactOrigin>(row->origin())));
  for (const std::string_view name : seen)
    if (!name.empty()) out.add_seen_by(std::string(name));
  NameUnknowns(rows, &out);
  return out;
}

}  // namespace expanse::data_plane
