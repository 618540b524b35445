// SPDX-License-Identifier: Apache-2.0
// What a reader would expect and nobody saw has a name and a reason; never 0, never "".
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "data_plane/merge/fold.h"
#include "data_plane/merge/parts.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::RequestedResources;
using data::v1::StoredFacts;
using google::protobuf::Message;
using Reasons = std::map<std::string, std::string>;

enum class When { kAlways, kStarted, kEnded, kGpu };

struct Expected {
  std::string_view field;
  When when;
};

constexpr Expected kExpected[] = {
    {"user", When::kAlways},
    {"account", When::kAlways},
    {"partition", When::kAlways},
    {"job_name", When::kAlways},
    {"submit_time_ms", When::kAlways},
    {"work_dir", When::kAlways},
    {"command", When::kAlways},
    {"stdout_path", When::kAlways},
    {"bundle_id", When::kAlways},
    {"start_time_ms", When::kStarted},
    {"runtime_seconds", When::kStarted},
    {"nodes", When::kStarted},
    {"cpu_seconds", When::kStarted},
    {"memory_peak_enforced", When::kStarted},
    {"memory_need", When::kStarted},
    {"end_time_ms", When::kEnded},
    {"exit_code", When::kEnded},
    {"gpu_utilisation_pct", When::kGpu},
    {"gpu_memory_peak_bytes", When::kGpu},
};
constexpr std::string_view kExpectedRequest[] = {"cpu_cores", "memory_bytes", "nodes",
                                                 "walltime_seconds"};

bool IsSet(const Message& m, std::string_view name) {
  const auto* field = m.GetDescriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) return false;
  if (field->is_repeated()) return m.GetReflection()->FieldSize(m, field) > 0;
  if (!m.GetReflection()->HasField(m, field)) return false;
  if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) return true;
  const Message& inner = m.GetReflection()->GetMessage(m, field);
  const auto* value = inner.GetDescriptor()->FindFieldByName("value");
  return value == nullptr || inner.GetReflection()->HasField(inner, value);
}

// A measurement that its source could not take says why in its own reason.
std::string OwnReason(const OrderedRows& rows, std::string_view name) {
  const auto* field = Execution::descriptor()->FindFieldByName(std::string(name));
  if (field == nullptr || field->is_repeated() ||
      field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
    return "";
  const auto* reason = field->message_type()->FindFieldByName("reason");
  if (reason == nullptr) return "";
  for (const StoredFacts* row : rows) {
    const Execution& e = row->execution();
    if (!e.GetReflection()->HasField(e, field)) continue;
    const Message& inner = e.GetReflection()->GetMessage(e, field);
    const std::string text = inner.GetReflection()->GetString(inner, reason);
    if (!text.empty()) return text;
  }
  return "";
}

std::string SeenBy(const Execution& e) {
  std::string out;
  for (const std::string& name : e.seen_by()) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "no source" : out;
}

bool Applies(When when, const Execution& e) {
  const bool started = e.has_start_time_ms() ||
                       e.status() == common::v1::EXECUTION_STATUS_RUNNING ||
                       (IsEnded(e) && e.ending_cause() != common::v1::ENDING_CAUSE_NEVER_STARTED &&
                        e.status() != common::v1::EXECUTION_STATUS_CANCELLED);
  switch (when) {
    case When::kAlways:
      return true;
    case When::kStarted:
      return started;
    case When::kEnded:
      return IsEnded(e);
    case When::kGpu:
      return started && (e.requested().gpu_count() > 0 || e.allocated().gpu_count() > 0);
  }
  return true;
}

// "Not started yet" of a run that has started since is no reason any more.
bool IsOfLastState(const StoredFacts& row, const std::string& field) {
  const auto it =
      row.observed_ms().find(std::to_string(Execution::kUnknownFieldNumber) + "/" + field);
  return it == row.observed_ms().end() ||
         it->second >= ObservedAt(row, Execution::kStatusFieldNumber);
}

Reasons ReasonsOf(const OrderedRows& rows, bool of_request) {
  Reasons reasons;
  for (const StoredFacts* row : rows) {
    if (!row->step_id().empty()) continue;
    if (of_request) {
      for (const auto& [field, reason] : row->execution().requested().unknown())
        reasons.try_emplace(field, reason);
      continue;
    }
    for (const auto& [field, reason] : row->execution().unknown())
      if (IsOfLastState(*row, field)) reasons.try_emplace(field, reason);
  }
  return reasons;
}

}  // namespace

void NameUnknowns(const OrderedRows& rows, Execution* out) {
  const std::string nobody = "not reported (seen by " + SeenBy(*out) + ")";
  Reasons reasons = ReasonsOf(rows, false);
  for (const Expected& expected : kExpected) {
    if (!Applies(expected.when, *out) || IsSet(*out, expected.field)) continue;
    const std::string own = OwnReason(rows, expected.field);
    reasons.try_emplace(std::string(expected.field), own.empty() ? nobody : own);
  }
  for (const auto& [field, reason] : reasons)
    if (!IsSet(*out, field)) out->mutable_unknown()->insert({field, reason});

  Reasons request = ReasonsOf(rows, true);
  for (const std::string_view field : kExpectedRequest)
    if (!IsSet(out->requested(), field)) request.try_emplace(std::string(field), nobody);
  for (const auto& [field, reason] : request)
    if (!IsSet(out->requested(), field))
      out->mutable_requested()->mutable_unknown()->insert({field, reason});
}

}  // namespace expanse::data_plane
