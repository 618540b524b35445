// SPDX-License-Identifier: Apache-2.0
// HTTP client on libcurl: keeps connections, honours HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE.
#pragma once

#include <memory>
#include <string>

#include "platform/net/http.h"

namespace expanse::platform {

struct HttpCall {
  std::string method = "POST";
  std::string url;
  HttpHeaders headers;
  std::string body;
  Millis timeout{30'000};
  Millis connect_timeout{5'000};
  size_t max_response_bytes = 256 << 20;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Any HTTP status is a response. kUnavailable: no connection (with what curl says);
  /// kDeadlineExceeded: time-out.
  virtual Result<HttpResponse> Do(const HttpCall& call) = 0;
};

/// Thread-safe; one pooled curl handle a thread.
std::unique_ptr<HttpClient> NewCurlHttpClient();

}  // namespace expanse::platform
