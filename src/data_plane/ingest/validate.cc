// SPDX-License-Identifier: Apache-2.0
#include "data_plane/ingest/validate.h"

#include <limits>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "base/ids.h"
#include "data_plane/identity/run_key.h"

namespace expanse::data_plane {
namespace {

using data::v1::Record;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Error Invalid(std::string message) { return Error(Code::kInvalidArgument, std::move(message)); }

Status CheckName(std::string_view what, const std::string& text) {
  if (text.size() > kMaxNameBytes)
    return Invalid(std::string(what) + " is longer than " + std::to_string(kMaxNameBytes) +
                   " bytes");
  if (text.find('\0') != std::string::npos) return Invalid(std::string(what) + " holds a NUL byte");
  return {};
}

// Every text of a message, at any depth.
Status CheckTexts(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  const auto* r = message.GetReflection();
  r->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int n = field->is_repeated() ? r->FieldSize(message, field) : 1;
    for (int i = 0; i < n; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        const std::string text = field->is_repeated() ? r->GetRepeatedString(message, field, i)
                                                      : r->GetString(message, field);
        if (text.size() > kMaxTextBytes)
          return Invalid(field->name() + " is longer than " + std::to_string(kMaxTextBytes) +
                         " bytes");
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        EXPANSE_CHECK_OK(CheckTexts(field->is_repeated() ? r->GetRepeatedMessage(message, field, i)
                                                         : r->GetMessage(message, field)));
      }
    }
  }
  return {};
}

Status CheckFacts(const data::v1::ExecutionFacts& facts) {
  EXPANSE_CHECK_OK(ValidateKey(facts.key()));
  if (OriginName(facts.origin()).empty()) return Invalid("facts without a known origin");
  EXPANSE_CHECK_OK(CheckName("step_id", facts.step_id()));
  for (const auto& step : facts.execution().steps()) {
    EXPANSE_CHECK_OK(CheckName("step_id", step.step_id()));
    if (step.step_id().empty()) return Invalid("a step without step_id");
  }
  return CheckTexts(facts);
}

Status CheckSamples(const data::v1::SampleBlock& block) {
  if (block.series_size() == 0) return Invalid("a sample block without series");
  if (block.series_size() > kMaxSeriesInRecord)
    return Invalid("more than " + std::to_string(kMaxSeriesInRecord) + " series in one record");
  return {};
}

Status CheckBundle(const data::v1::SourceBundle& bundle) {
  EXPANSE_CHECK_OK(ValidateKey(bundle.key()));
  EXPANSE_CHECK_OK(CheckName("bundle_id", bundle.bundle_id()));
  if (bundle.bundle_id().empty() && bundle.unknown().empty())
    return Invalid("a bundle without bundle_id and without a reason");
  if (bundle.files_size() > kMaxBundleFiles)
    return Invalid("more than " + std::to_string(kMaxBundleFiles) + " files in a bundle");
  size_t total = 0;
  for (const auto& file : bundle.files()) {
    if (file.content().size() > kMaxBundleFileBytes)
      return Invalid("bundle file " + file.path().substr(0, 200) + " is larger than 1 MiB");
    total += file.content().size();
  }
  if (total > kMaxBundleBytes) return Invalid("bundle content is larger than 10 MiB");
  data::v1::SourceBundle texts = bundle;
  for (auto& file : *texts.mutable_files()) file.clear_content();
  return CheckTexts(texts);
}

Status CheckLogTail(const data::v1::LogTail& tail) {
  EXPANSE_CHECK_OK(ValidateKey(tail.key()));
  EXPANSE_CHECK_OK(CheckName("stream", tail.stream()));
  if (tail.stream().empty()) return Invalid("a log tail without stream");
  if (tail.content().size() > kMaxLogTailBytes)
    return Invalid("log tail is larger than 64 KiB (" + std::to_string(tail.content().size()) +
                   " bytes)");
  if (tail.path().size() > kMaxTextBytes || tail.unknown_reason().size() > kMaxTextBytes)
    return Invalid("text of a log tail is too long");
  return {};
}

}  // namespace

Status ValidateRequest(const data::v1::PushRequest& request) {
  if (!IsUuid(request.source_id()))
    return Invalid("source_id is not a UUID: make one when the spool is created");
  if (request.records_size() > kMaxRecordsInBatch)
    return Invalid("more than " + std::to_string(kMaxRecordsInBatch) +
                   " records in one push; send smaller batches");
  if (request.records_size() > 0 && request.first_sequence() == 0)
    return Invalid("first_sequence is 0; sequences start at 1");
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2);
  if (request.first_sequence() > kMost || request.dropped_records() > kMost)
    return Invalid("first_sequence or dropped_records is out of range");
  return {};
}

Status ValidateRecord(const Record& record) {
  if (record.ByteSizeLong() > kMaxRecordBytes) return Invalid("record is larger than 16 MiB");
  if (record.observed_time_ms() <= 0) return Invalid("record without observed_time_ms");
  EXPANSE_CHECK_OK(CheckName("node", record.node()));
  switch (record.body_case()) {
    case Record::kFacts:
      return CheckFacts(record.facts());
    case Record::kSamples:
      return CheckSamples(record.samples());
    case Record::kBundle:
      return CheckBundle(record.bundle());
    case Record::kLogTail:
      return CheckLogTail(record.log_tail());
    case Record::kCompute:
      return CheckTexts(record.compute());
    case Record::BODY_NOT_SET:
      break;
  }
  return Invalid("record without a body that this version knows");
}

}  // namespace expanse::data_plane
