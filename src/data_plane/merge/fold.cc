// SPDX-License-Identifier: Apache-2.0
#include "data_plane/merge/fold.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "data_plane/merge/peaks.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using common::v1::ExecutionStep;
using data::v1::StoredFacts;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// When the incoming value of a path was observed.
using TimeOf = std::function<int64_t(const std::string& path)>;

enum class Keep { kNewest, kOldest };

bool IsMeasured(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated() &&
         (field->message_type() == common::v1::MeasuredInt64::descriptor() ||
          field->message_type() == common::v1::MeasuredDouble::descriptor());
}

// Measurements of which the larger is the truth; averages and durations are the newest instead.
bool IsPeak(const FieldDescriptor* field) {
  return IsMeasured(field) && field->name() != "gpu_utilisation_pct" &&
         field->name() != "runtime_seconds";
}

// Belongs to the data plane: a collector's value is ignored.
bool IsOurs(const FieldDescriptor* field) {
  if (field->containing_type() != Execution::descriptor()) return false;
  switch (field->number()) {
    case Execution::kExecutionIdFieldNumber:
    case Execution::kComputeIdFieldNumber:
    case Execution::kAttemptFieldNumber:
    case Execution::kFirstAttemptExecutionIdFieldNumber:
    case Execution::kSeenByFieldNumber:
    case Execution::kConsoleUrlFieldNumber:
      return true;
    default:
      return false;
  }
}

std::string FieldText(const Message& message, const FieldDescriptor* field) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string out;
  if (!field->is_repeated()) {
    printer.PrintFieldValueToString(message, field, -1, &out);
    return out;
  }
  const int n = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < n; ++i) {
    std::string one;
    printer.PrintFieldValueToString(message, field, i, &one);
    out += one + "\n";
  }
  return out;
}

void CopyField(const Message& from, const FieldDescriptor* field, Message* into) {
  // A message with only this field, merged after clearing, copies any type of field.
  const Reflection* reflection = into->GetReflection();
  reflection->ClearField(into, field);
  const std::unique_ptr<Message> only(from.New());
  only->CopyFrom(from);
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(*only, &set);
  for (const FieldDescriptor* other : set)
    if (other != field) reflection->ClearField(only.get(), other);
  into->MergeFrom(*only);
}

void CopyScalar(const Message& from, const FieldDescriptor* field, Message* into) {
  const Reflection* r = into->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r->SetInt32(into, field, r->GetInt32(from, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return r->SetInt64(into, field, r->GetInt64(from, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r->SetDouble(into, field, r->GetDouble(from, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->SetBool(into, field, r->GetBool(from, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return r->SetEnumValue(into, field, r->GetEnumValue(from, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return r->SetString(into, field, r->GetString(from, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return r->MutableMessage(into, field)->CopyFrom(r->GetMessage(from, field));
    default:
      return CopyField(from, field, into);
  }
}

class Folder {
 public:
  Folder(StoredFacts* row, TimeOf time_of) : row_(row), time_of_(std::move(time_of)) {}

  void Fold(const Message& in, Message* into, const std::string& prefix, Keep keep) {
    std::vector<const FieldDescriptor*> fields;
    in.GetReflection()->ListFields(in, &fields);
    for (const FieldDescriptor* field : fields) {
      if (IsOurs(field)) continue;
      if (IsNoCount(in, field)) continue;
      const std::string path = prefix + std::to_string(field->number());
      if (IsNoCount(*into, field)) Forget(field, path, into);
      if (field->is_map())
        FoldMap(in, field, into, path, keep);
      else if (field->is_repeated() && field->message_type() == ExecutionStep::descriptor())
        FoldSteps(in, field, into, path, keep);
      else if (IsMeasured(field))
        FoldMeasured(in, field, into, path, keep);
      else if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        Fold(in.GetReflection()->GetMessage(in, field),
             into->GetReflection()->MutableMessage(into, field), path + "/",
             field->name() == "requested" ? Keep::kOldest : keep);
      else
        FoldAtomic(in, field, into, path, keep);
    }
  }

 private:
  // Of a row that was stored with it: what is seen now is the first sight.
  void Forget(const FieldDescriptor* field, const std::string& path, Message* into) {
    into->GetReflection()->ClearField(into, field);
    row_->mutable_observed_ms()->erase(path);
  }

  // True when the incoming value of the path replaces the one that is kept.
  bool Wins(const std::string& path, Keep keep, const std::function<bool()>& larger) {
    const int64_t ms = time_of_(path);
    auto& times = *row_->mutable_observed_ms();
    const auto it = times.find(path);
    if (it == times.end()) {
      times[path] = ms;
      return true;
    }
    if (ms == it->second) return larger();
    const bool wins = keep == Keep::kNewest ? ms > it->second : ms < it->second;
    if (wins) it->second = ms;
    return wins;
  }

  void FoldAtomic(const Message& in, const FieldDescriptor* field, Message* into,
                  const std::string& path, Keep keep) {
    const auto larger = [&] { return FieldText(in, field) > FieldText(*into, field); };
    if (!Wins(path, keep, larger)) return;
    if (field->is_repeated())
      CopyField(in, field, into);
    else
      CopyScalar(in, field, into);
  }

  void FoldMeasured(const Message& in, const FieldDescriptor* field, Message* into,
                    const std::string& path, Keep keep) {
    const Message& value = in.GetReflection()->GetMessage(in, field);
    if (!IsPeak(field)) return FoldAtomic(in, field, into, path, keep);
    Wins(path, keep, [] { return false; });
    Message* kept = into->GetReflection()->MutableMessage(into, field);
    if (field->message_type() == common::v1::MeasuredInt64::descriptor())
      FoldPeak(static_cast<const common::v1::MeasuredInt64&>(value),
               static_cast<common::v1::MeasuredInt64*>(kept));
    else
      FoldPeak(static_cast<const common::v1::MeasuredDouble&>(value),
               static_cast<common::v1::MeasuredDouble*>(kept));
  }

  void FoldSteps(const Message& in, const FieldDescriptor* field, Message* into,
                 const std::string& path, Keep keep) {
    const Reflection* reflection = in.GetReflection();
    for (int i = 0; i < reflection->FieldSize(in, field); ++i) {
      const auto& step =
          static_cast<const ExecutionStep&>(reflection->GetRepeatedMessage(in, field, i));
      Fold(step, FindStep(into, field, step.step_id()), path + "/" + step.step_id() + "/", keep);
    }
  }

  static Message* FindStep(Message* into, const FieldDescriptor* field, const std::string& id) {
    const Reflection* reflection = into->GetReflection();
    for (int i = 0; i < reflection->FieldSize(*into, field); ++i) {
      Message* step = reflection->MutableRepeatedMessage(into, field, i);
      if (static_cast<ExecutionStep*>(step)->step_id() == id) return step;
    }
    auto* step = static_cast<ExecutionStep*>(reflection->AddMessage(into, field));
    step->set_step_id(id);
    return step;
  }

  // Every map of the contract is string to string.
  void FoldMap(const Message& in, const FieldDescriptor* field, Message* into,
               const std::string& path, Keep keep) {
    const Reflection* r = in.GetReflection();
    const FieldDescriptor* key_field = field->message_type()->FindFieldByNumber(1);
    const FieldDescriptor* value_field = field->message_type()->FindFieldByNumber(2);
    const auto text = [](const Message& entry, const FieldDescriptor* f) {
      return entry.GetReflection()->GetString(entry, f);
    };
    for (int i = 0; i < r->FieldSize(in, field); ++i) {
      const Message& entry = r->GetRepeatedMessage(in, field, i);
      const std::string key = text(entry, key_field);
      Message* kept = nullptr;
      for (int j = 0; j < r->FieldSize(*into, field) && kept == nullptr; ++j) {
        Message* candidate = r->MutableRepeatedMessage(into, field, j);
        if (text(*candidate, key_field) == key) kept = candidate;
      }
      if (!Wins(path + "/" + key, keep, [&] {
            return kept != nullptr && text(entry, value_field) > text(*kept, value_field);
          }))
        continue;
      if (kept == nullptr) kept = r->AddMessage(into, field);
      kept->CopyFrom(entry);
    }
  }

  StoredFacts* row_;
  TimeOf time_of_;
};

void WidenObserved(int64_t first, int64_t last, StoredFacts* row) {
  row->set_first_observed_ms(
      row->first_observed_ms() == 0 ? first : std::min(row->first_observed_ms(), first));
  row->set_last_observed_ms(std::max(row->last_observed_ms(), last));
}

}  // namespace

bool IsNoCount(const Message& message, const FieldDescriptor* field) {
  using common::v1::RequestedResources;
  if (message.GetDescriptor() != RequestedResources::descriptor() ||
      (field->number() != RequestedResources::kCpuCoresFieldNumber &&
       field->number() != RequestedResources::kNodesFieldNumber))
    return false;
  const Reflection* reflection = message.GetReflection();
  return reflection->HasField(message, field) && reflection->GetInt32(message, field) <= 0;
}

void FoldFacts(const data::v1::ExecutionFacts& facts, int64_t observed_ms, StoredFacts* row) {
  row->set_origin(facts.origin());
  row->set_step_id(facts.step_id());
  Folder(row, [observed_ms](const std::string&) {
    return observed_ms;
  }).Fold(facts.execution(), row->mutable_execution(), "", Keep::kNewest);
  WidenObserved(observed_ms, observed_ms, row);
}

void FoldStored(const StoredFacts& from, StoredFacts* into) {
  into->set_origin(from.origin());
  into->set_node(from.node());
  into->set_step_id(from.step_id());
  const auto& times = from.observed_ms();
  Folder(into, [&times](const std::string& path) {
    const auto it = times.find(path);
    return it == times.end() ? 0 : it->second;
  }).Fold(from.execution(), into->mutable_execution(), "", Keep::kNewest);
  WidenObserved(from.first_observed_ms(), from.last_observed_ms(), into);
}

int64_t ObservedAt(const StoredFacts& row, int field_number) {
  const auto it = row.observed_ms().find(std::to_string(field_number));
  return it == row.observed_ms().end() ? 0 : it->second;
}

std::string DeterministicBytes(const Message& message) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return out;
}

}  // namespace expanse::data_plane
