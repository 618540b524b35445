// SPDX-License-Identifier: Apache-2.0
// One plane behind its port: the contract, GET /healthz (the process answers), GET /readyz (it can
// do its work) and GET /metrics.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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
  std::string data_dir;  // its disk is watched; "": none
  Millis stop_timeout{10'000};
  /// Every request is appended here (mode 0600), without the credentials in it; "": nowhere.
  std::string record_received_file;
};

class PlaneServer {
 public:
  /// Listens; answers 503 until Serve (but /healthz and /metrics), so that the port is known before
  /// the plane is open.
  static Result<std::unique_ptr<PlaneServer>> Start(PlaneServerOptions options);
  /// Stop(stop_timeout).
  ~PlaneServer();
  PlaneServer(const PlaneServer&) = delete;
  PlaneServer& operator=(const PlaneServer&) = delete;

  /// From now on the router answers. What it calls outlives this server, as does what check_ready
  /// calls: what keeps the plane from its work, asked at each GET /readyz.
  void Serve(std::unique_ptr<rpc::Router> router, std::function<Status()> check_ready);
  /// See HttpServer::Stop.
  void Stop(Millis timeout) { server_->Stop(timeout); }
  /// Reads certificate and key again; on an error the old ones stay in use (TlsIdentity).
  Status ReloadTls();
  /// The same when the files have changed.
  void ReloadChangedTls();

  uint16_t port() const { return server_->port(); }
  std::string url() const { return server_->url(); }
  platform::MetricsRegistry& metrics() { return metrics_; }

 private:
  explicit PlaneServer(PlaneServerOptions options);
  Status OpenRecord();
  void AddMetrics();
  platform::HttpResponse Handle(const platform::HttpRequest& request);
  platform::HttpResponse HandlePlane(const platform::HttpRequest& request);
  platform::HttpResponse Ready() const;
  void Record(const platform::HttpRequest& request);
  void Count(const platform::HttpRequest& request, int status, double seconds);

  const PlaneServerOptions options_;
  platform::MetricsRegistry metrics_;
  std::unique_ptr<rpc::Router> router_;
  std::function<Status()> check_ready_;
  std::atomic<const rpc::Router*> serving_{nullptr};
  std::mutex record_mutex_;
  int record_fd_ = -1;
  std::unique_ptr<platform::HttpServer> server_;  // last: stops before the rest goes
};

/// Requests, threads, TLS and process of a server, for its /metrics; both outlive the last answer.
void AddServerMetrics(platform::MetricsRegistry& registry, const platform::HttpServer& server);
/// expanse_build_info and the process' own cost.
void AddProgramMetrics(platform::MetricsRegistry& registry, const std::string& program);
/// GET /metrics.
platform::HttpResponse MetricsResponse(const platform::MetricsRegistry& registry);

}  // namespace expanse::apps
