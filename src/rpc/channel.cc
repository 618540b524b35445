// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include "rpc/connect_error.h"

namespace expanse::rpc {

HttpChannel::HttpChannel(platform::HttpClient& client, std::string base_url)
    : client_(client), base_url_(std::move(base_url)) {
  while (base_url_.ends_with('/')) base_url_.pop_back();
}

Status HttpChannel::Call(std::string_view path, std::string_view bearer,
                         const google::protobuf::Message& request,
                         google::protobuf::Message* response, Deadline deadline) {
  const Millis left = deadline.Remaining();
  if (left.count() == 0)
    return Error(Code::kDeadlineExceeded,
                 "calling " + base_url_ + std::string(path) + ": no time left before the call");
  platform::HttpCall call;
  call.url = base_url_ + std::string(path);
  call.headers["content-type"] = "application/proto";
  call.headers["connect-protocol-version"] = "1";
  call.headers["connect-timeout-ms"] = std::to_string(left.count());
  if (!bearer.empty()) call.headers["authorization"] = "Bearer " + std::string(bearer);
  call.timeout = left;
  if (!request.SerializeToString(&call.body))
    return Error(Code::kInvalidArgument, "request of " + std::string(path) + " is too large");
  EXPANSE_TRY(const auto answer, client_.Do(call));
  if (answer.status != 200) return ErrorFromResponse(answer.status, answer.body);
  const auto type = answer.headers.find("content-type");
  if (type == answer.headers.end() || !type->second.starts_with("application/proto") ||
      !response->ParseFromString(answer.body))
    return Error(Code::kUnavailable,
                 call.url + ": the answer is not an Expanse message; is this the right URL?");
  return {};
}

}  // namespace expanse::rpc
