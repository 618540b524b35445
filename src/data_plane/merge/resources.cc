// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "data_plane/merge/fold.h"
#include "data_plane/merge/parts.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::RequestedResources;
using data::v1::StoredFacts;
using google::protobuf::FieldDescriptor;

// Polls of one round are seconds apart and see the same request: within this the precedence of
// the source decides, not who was first.
constexpr int64_t kSameSightMs = 60'000;

int64_t SeenAt(const StoredFacts& row, const FieldDescriptor* field) {
  const auto it = row.observed_ms().find(std::to_string(Execution::kRequestedFieldNumber) + "/" +
                                         std::to_string(field->number()));
  return it == row.observed_ms().end() ? row.first_observed_ms() : it->second;
}

void Copy(const RequestedResources& in, const FieldDescriptor* field, RequestedResources* out) {
  const auto* r = out->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r->SetInt32(out, field, r->GetInt32(in, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return r->SetInt64(out, field, r->GetInt64(in, field));
    default:
      return r->SetString(out, field, r->GetString(in, field));
  }
}

void FirstSight(const OrderedRows& rows, const FieldDescriptor* field, RequestedResources* out) {
  const auto has = [&](const StoredFacts* row) {
    const auto& requested = row->execution().requested();
    return requested.GetReflection()->HasField(requested, field) && !IsNoCount(requested, field);
  };
  int64_t first = 0;
  for (const StoredFacts* row : rows)
    if (has(row)) first = first == 0 ? SeenAt(*row, field) : std::min(first, SeenAt(*row, field));
  for (const StoredFacts* row : rows)
    if (has(row) && SeenAt(*row, field) <= first + kSameSightMs)
      return Copy(row->execution().requested(), field, out);
}

}  // namespace

void MergeResources(const OrderedRows& rows, Execution* out) {
  const auto* descriptor = RequestedResources::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) continue;  // unknown: see NameUnknowns
    FirstSight(rows, field, out->mutable_requested());
    for (const StoredFacts* row : rows) {
      const auto& allocated = row->execution().allocated();
      if (!allocated.GetReflection()->HasField(allocated, field) || IsNoCount(allocated, field))
        continue;
      Copy(allocated, field, out->mutable_allocated());
      break;
    }
  }
}

}  // namespace expanse::data_plane
