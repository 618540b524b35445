// SPDX-License-Identifier: Apache-2.0
// The JSON form of the contract: proto3 JSON, original field names, int64 as strings, explicit
// zeros of optional fields printed, unset fields absent.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "base/result.h"

namespace expanse::rpc {

Result<std::string> ToJson(const google::protobuf::Message& message, bool pretty = false);
/// Unknown fields are ignored (a newer peer); depth and size are bounded by protobuf's parser.
Status FromJson(std::string_view json, google::protobuf::Message* message);

}  // namespace expanse::rpc
