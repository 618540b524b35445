// SPDX-License-Identifier: Apache-2.0
// HTTP client on libcurl: keeps connections, honours HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE. TLS
// 1.2 is the least version; certificates and names are always verified.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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
  /// kDeadlineExceeded: time-out; kFailedPrecondition: nothing was sent, since the URL or the file
  /// of authorities is none; kResourceExhausted: the answer is too large.
  virtual Result<HttpResponse> Do(const HttpCall& call) = 0;
};

struct HttpClientOptions {
  /// PEM file of authorities that are trusted beside the system's; empty: SSL_CERT_FILE. Read at
  /// each new connection, so that a renewed file counts at once.
  std::string ca_file;
  /// IP address that every connection goes to, whatever host the URL names; the certificate is
  /// still checked against the URL. For a process that calls itself by its public name.
  std::string connect_to;
};

/// Thread-safe; one pooled curl handle a thread. Loopback addresses never go through a proxy.
std::unique_ptr<HttpClient> NewCurlHttpClient(HttpClientOptions options = {});

/// True where whoever listens on the network can read what is sent: http:// to another machine.
bool IsInTheClear(std::string_view url);

/// The URL without the user and password it may hold, for messages.
std::string WithoutUserInfo(std::string_view url);

}  // namespace expanse::platform
