// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 server on Boost.Beast: many idle connections on one I/O thread, handlers on a bounded
// pool. TLS when a certificate is given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "platform/net/http.h"
#include "platform/net/tls.h"

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
  Millis stop_timeout{10'000};       // of the destructor's Stop
  std::string tls_certificate_file;  // PEM; empty: plain HTTP
  std::string tls_key_file;
};

/// Now, and since the start.
struct HttpServerStats {
  int connections = 0;
  size_t queued_requests = 0;
  int running_requests = 0;
  uint64_t refused_requests = 0;     // 503: the queue was full
  uint64_t refused_connections = 0;  // more than max_connections
  uint64_t failed_handshakes = 0;    // TLS
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, HttpHandler handler);
  /// Stop(stop_timeout).
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Stops accepting, closes idle connections, lets requests that have begun end and their answers
  /// go out. After the time-out, connections that are left are cut and queued requests forgotten;
  /// only a handler that still runs is waited for. Joins every thread. A second call does nothing.
  void Stop(Millis timeout);

  uint16_t port() const;
  /// "http://127.0.0.1:8081"
  std::string url() const;
  HttpServerStats stats() const;
  /// Null without TLS.
  TlsIdentity* tls() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::platform
