// SPDX-License-Identifier: Apache-2.0
// One plane behind its port: the contract, GET /healthz and GET /metrics.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "platform/metrics/metrics.h"
#include "platform/net/http_server.h"
#include "rpc/router.h"

namespace expanse::apps {

struct PlaneServerOptions {
  std::string plane;  // "control-plane", for logs and metrics
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  std::string tls_certificate_file;
  std::string tls_key_file;
  /// Every request is appended here as received (mode 0600: it holds credentials); "": nowhere.
  std::string record_received_file;
};

class PlaneServer {
 public:
  /// Listens; answers 503 until Serve, so that the port is known before the plane is open.
  static Result<std::unique_ptr<PlaneServer>> Start(PlaneServerOptions options);
  ~PlaneServer();
  PlaneServer(const PlaneServer&) = delete;
  PlaneServer& operator=(const PlaneServer&) = delete;

  /// From now on the router answers. What it calls outlives this server.
  void Serve(std::unique_ptr<rpc::Router> router);

  uint16_t port() const { return server_->port(); }
  std::string url() const { return server_->url(); }
  platform::MetricsRegistry& metrics() { return metrics_; }

 private:
  explicit PlaneServer(PlaneServerOptions options);
  Status OpenRecord();
  platform::HttpResponse Handle(const platform::HttpRequest& request);
  void Record(const platform::HttpRequest& request);
  void Count(const platform::HttpRequest& request, int status, int64_t microseconds);

  const PlaneServerOptions options_;
  platform::MetricsRegistry metrics_;
  std::unique_ptr<rpc::Router> router_;
  std::atomic<const rpc::Router*> serving_{nullptr};
  std::mutex record_mutex_;
  int record_fd_ = -1;
  std::unique_ptr<platform::HttpServer> server_;  // last: stops before the rest goes
};

}  // namespace expanse::apps
