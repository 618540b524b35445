// SPDX-License-Identifier: Apache-2.0
#include "rpc/json.h"

#include <memory>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

namespace expanse::rpc {
namespace {

constexpr char kTypeUrlPrefix[] = "type.googleapis.com";

/// MessageToJsonString prints maps in the order of their hash, which differs from run to run; the
/// binary form written deterministically has them sorted by key.
google::protobuf::util::Status Print(const google::protobuf::Message& message, std::string* out,
                                     const google::protobuf::util::JsonPrintOptions& options) {
  std::string wire;
  {
    google::protobuf::io::StringOutputStream stream(&wire);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializePartialToCodedStream(&coded);
  }
  static const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypeUrlPrefix, google::protobuf::DescriptorPool::generated_pool()));
  return google::protobuf::util::BinaryToJsonString(
      resolver.get(), std::string(kTypeUrlPrefix) + "/" + message.GetTypeName(), wire, out,
      options);
}

}  // namespace

Result<std::string> ToJson(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = pretty;
  std::string out;
  const auto status = Print(message, &out, options);
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
