// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 server on Boost.Beast: many idle connections on one I/O thread, handlers on a bounded
// pool. TLS when a certificate is given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "platform/net/http.h"

namespace expanse::platform {

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free port; see HttpServer::port()
  int worker_threads = 4;
  size_t max_body_bytes = 64 << 20;  // more: 413
  size_t max_header_bytes = 32 << 10;
  int max_connections = 4096;
  int max_queued_requests = 1024;    // more: 503 with Retry-After
  Millis idle_timeout{60'000};       // also for a half-sent request
  std::string tls_certificate_file;  // PEM; empty: plain HTTP
  std::string tls_key_file;
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, HttpHandler handler);
  /// Stops accepting, lets running requests end (at most 5 s), joins every thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  /// "http://127.0.0.1:8081"
  std::string url() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::platform
