// SPDX-License-Identifier: Apache-2.0
// Client side of the contract.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "base/result.h"
#include "base/time.h"
#include "platform/net/http_client.h"

namespace expanse::rpc {

class Channel {
 public:
  virtual ~Channel() = default;
  /// bearer: empty for public methods.
  virtual Status Call(std::string_view path, std::string_view bearer,
                      const google::protobuf::Message& request, google::protobuf::Message* response,
                      Deadline deadline) = 0;
};

/// application/proto over HTTP. Errors of the server keep their code and message; no connection
/// is kUnavailable and names the URL.
class HttpChannel final : public Channel {
 public:
  HttpChannel(platform::HttpClient& client, std::string base_url);
  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline deadline) override;
  const std::string& base_url() const { return base_url_; }

 private:
  platform::HttpClient& client_;
  std::string base_url_;
};

}  // namespace expanse::rpc
