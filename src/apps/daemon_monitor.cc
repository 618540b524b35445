// SPDX-License-Identifier: Apache-2.0
#include "apps/daemon_monitor.h"

#include <utility>

#include "apps/plane_server.h"
#include "apps/settings.h"
#include "base/log.h"
#include "collect/daemon/health.h"

namespace expanse::apps {
namespace {

constexpr Millis kWritePeriod{30'000};
constexpr Millis kReadyAge{15 *
                           60'000};  // of the last accepted heartbeat, as in the chart's probes

}  // namespace

DaemonMonitor::DaemonMonitor(std::string directory, const platform::Fs& fs,
                             const platform::Clock& clock)
    : directory_(std::move(directory)), fs_(fs), clock_(clock) {
  AddProgramMetrics(metrics_, "expanse-daemon");
}

Status DaemonMonitor::Start(const platform::Config& settings) {
  const std::string& listen = settings.GetString("metrics-listen");
  platform::HttpServerOptions options;
  options.tls_certificate_file = settings.GetString("tls-certificate");
  options.tls_key_file = settings.GetString("tls-key");
  EXPANSE_CHECK_OK(CheckTlsPair(options.tls_certificate_file, options.tls_key_file));
  if (!listen.empty()) {
    EXPANSE_TRY(const ListenAddress address, ParseListen(listen));
    options.address = address.host;
    options.port = address.port;
    options.worker_threads = 1;
    options.max_connections = 32;
    options.max_body_bytes = 0;
    EXPANSE_TRY(server_,
                platform::HttpServer::Start(options, [this](const platform::HttpRequest& request) {
                  return Handle(request);
                }));
    AddServerMetrics(metrics_, *server_);
    log::Info("daemon.metrics", {{"url", server_->url()}});
  }
  writer_ = std::make_unique<platform::PeriodicTask>("metrics-file", kWritePeriod,
                                                     [this] { WriteFile(); });
  return {};
}

void DaemonMonitor::Stop() {
  writer_.reset();
  if (server_) server_->Stop(Millis(1'000));
}

void DaemonMonitor::ReloadTls() {
  if (server_ && server_->tls() != nullptr) (void)server_->tls()->Reload().ok();  // logged there
}

void DaemonMonitor::ReloadChangedTls() {
  if (server_ && server_->tls() != nullptr) server_->tls()->ReloadIfChanged();
}

void DaemonMonitor::WriteFile() {
  const Status written =
      fs_.WriteAtomic(platform::JoinPath(directory_, "metrics.prom"), metrics_.Text(), 0644);
  if (!written.ok() && !write_failed_)
    log::Warning("daemon.metrics_not_written", {{"reason", written.error().message()}});
  write_failed_ = !written.ok();
}

platform::HttpResponse DaemonMonitor::Handle(const platform::HttpRequest& request) const {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (request.method != "GET") return {405, {{"allow", "GET"}}, ""};
  if (path == "/metrics") return MetricsResponse(metrics_);
  if (path != "/healthz" && path != "/readyz") return {404, {}, ""};
  collect::daemon::HealthcheckOptions options;
  options.directory = directory_;
  options.json = true;
  // A sampler sends no heartbeats: it is ready while it turns.
  const bool has_heartbeats = fs_.Exists(platform::JoinPath(directory_, "lock"));
  if (path == "/readyz" && has_heartbeats) options.max_accepted_age = kReadyAge;
  const auto report = collect::daemon::Healthcheck(options, fs_, clock_);
  return {report.healthy ? 200 : 503, {{"content-type", "application/json"}}, report.text};
}

}  // namespace expanse::apps
