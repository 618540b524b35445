// SPDX-License-Identifier: Apache-2.0
#include "rpc/json.h"

#include <google/protobuf/util/json_util.h>

namespace expanse::rpc {

Result<std::string> ToJson(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = pretty;
  std::string out;
  const auto status = google::protobuf::util::MessageToJsonString(message, &out, options);
  if (!status.ok())
    return Error(Code::kInternal,
                 "writing " + message.GetTypeName() + " as JSON: " + std::string(status.message()));
  return out;
}

Status FromJson(std::string_view json, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), message, options);
  if (!status.ok())
    return Error(Code::kInvalidArgument, "reading JSON as " + message->GetTypeName() + ": " +
                                             std::string(status.message()));
  return {};
}

}  // namespace expanse::rpc
