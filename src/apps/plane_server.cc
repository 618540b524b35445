// SPDX-License-Identifier: Apache-2.0
#include "apps/plane_server.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "apps/request_record.h"
#include "base/log.h"
#include "base/strings.h"
#include "platform/metrics/process_metrics.h"
#include "rpc/connect_error.h"

namespace expanse::apps {
namespace {

constexpr int kNotImplemented = 501;
/// With less room a plane refuses nothing by itself, but its next writes may fail.
constexpr int64_t kLeastFreeBytes = int64_t{64} << 20;
constexpr uint64_t kLeastFreeInodes = 1000;

platform::HttpResponse Text(int status, const std::string& text) {
  return {status, {{"content-type", "text/plain"}}, text + "\n"};
}

Status CheckDisk(const std::string& directory) {
  if (directory.empty()) return {};
  const auto space = platform::ReadDiskSpace(directory);
  if (!space) return Error(Code::kNotFound, directory + " is not there");
  if (space->read_only) return Error(Code::kUnavailable, directory + " is mounted read-only");
  if (space->free_bytes < kLeastFreeBytes)
    return Error(Code::kResourceExhausted,
                 directory + " has " + std::to_string(space->free_bytes) + " bytes left");
  if (space->has_inodes && space->free_inodes < kLeastFreeInodes)
    return Error(Code::kResourceExhausted,
                 directory + " has " + std::to_string(space->free_inodes) + " inodes left");
  return {};
}

}  // namespace

void AddServerMetrics(platform::MetricsRegistry& registry, const platform::HttpServer& server) {
  const auto gauge = [&](const char* name, const char* help, auto read) {
    registry.AddGauge(name, help, [&server, read]() -> std::optional<double> {
      return static_cast<double>(read(server.stats()));
    });
  };
  const auto counter = [&](const char* name, const char* help, auto read) {
    registry.AddCounter(name, help, {}, [&server, read]() -> std::optional<double> {
      return static_cast<double>(read(server.stats()));
    });
  };
  using Stats = platform::HttpServerStats;
  gauge("expanse_http_connections", "Open connections.",
        [](const Stats& s) { return s.connections; });
  gauge("expanse_http_queue_depth", "Requests that wait for a thread.",
        [](const Stats& s) { return s.queued_requests; });
  gauge("expanse_http_running_requests", "Requests that are being answered.",
        [](const Stats& s) { return s.running_requests; });
  counter("expanse_http_refused_requests_total", "Requests answered 503: the queue was full.",
          [](const Stats& s) { return s.refused_requests; });
  counter("expanse_http_refused_connections_total", "Connections closed: too many were open.",
          [](const Stats& s) { return s.refused_connections; });
  const platform::TlsIdentity* tls = server.tls();
  if (tls == nullptr) return;
  counter("expanse_tls_failed_handshakes_total", "Connections that did not get through TLS.",
          [](const Stats& s) { return s.failed_handshakes; });
  registry.AddGauge("expanse_tls_certificate_not_after_seconds",
                    "End of life of the certificate in use, since the epoch.",
                    [tls] { return static_cast<double>(tls->not_after_s()); });
  registry.AddCounter("expanse_tls_reloads_total", "Certificate and key read again.",
                      {{"result", "ok"}}, [tls] { return static_cast<double>(tls->reloads()); });
  registry.AddCounter("expanse_tls_reloads_total", "Certificate and key read again.",
                      {{"result", "failed"}},
                      [tls] { return static_cast<double>(tls->failed_reloads()); });
}

void AddProgramMetrics(platform::MetricsRegistry& registry, const std::string& program) {
  registry.AddGauge("expanse_build_info", "1; the version is in the label.",
                    {{"program", program}, {"version", EXPANSE_VERSION}}, [] { return 1.0; });
  platform::AddProcessMetrics(registry);
}

platform::HttpResponse MetricsResponse(const platform::MetricsRegistry& registry) {
  return {200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}}, registry.Text()};
}

PlaneServer::PlaneServer(PlaneServerOptions options) : options_(std::move(options)) {}

PlaneServer::~PlaneServer() {
  server_.reset();
  if (record_fd_ >= 0) ::close(record_fd_);
}

Result<std::unique_ptr<PlaneServer>> PlaneServer::Start(PlaneServerOptions options) {
  std::unique_ptr<PlaneServer> self(new PlaneServer(std::move(options)));
  EXPANSE_CHECK_OK(self->OpenRecord());
  platform::HttpServerOptions http;
  http.address = self->options_.address;
  http.port = self->options_.port;
  http.tls_certificate_file = self->options_.tls_certificate_file;
  http.tls_key_file = self->options_.tls_key_file;
  http.stop_timeout = self->options_.stop_timeout;
  EXPANSE_TRY(self->server_, platform::HttpServer::Start(
                                 http, [plane = self.get()](const platform::HttpRequest& request) {
                                   return plane->Handle(request);
                                 }));
  self->AddMetrics();
  return self;
}

void PlaneServer::AddMetrics() {
  AddProgramMetrics(metrics_, "expanse-" + options_.plane);
  AddServerMetrics(metrics_, *server_);
  if (!options_.data_dir.empty()) platform::AddDiskMetrics(metrics_, options_.data_dir);
}

Status PlaneServer::ReloadTls() {
  return server_->tls() == nullptr ? Status() : server_->tls()->Reload();
}

void PlaneServer::ReloadChangedTls() {
  if (server_->tls() != nullptr) server_->tls()->ReloadIfChanged();
}

Status PlaneServer::OpenRecord() {
  const std::string& path = options_.record_received_file;
  if (path.empty()) return {};
  record_fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (record_fd_ < 0)
    return Error(Code::kFailedPrecondition, "open " + path + ": " + std::strerror(errno));
  return {};
}

void PlaneServer::Serve(std::unique_ptr<rpc::Router> router, std::function<Status()> check_ready) {
  router_ = std::move(router);
  check_ready_ = std::move(check_ready);
  if (record_fd_ >= 0)
    router_->SetTap([this](const platform::HttpRequest& request) { Record(request); });
  serving_.store(router_.get(), std::memory_order_release);
}

platform::HttpResponse PlaneServer::Ready() const {
  if (serving_.load(std::memory_order_acquire) == nullptr) return Text(503, "starting");
  const Status disk = CheckDisk(options_.data_dir);
  const Status ready = check_ready_();
  if (disk.ok() && ready.ok()) return Text(200, "ready");
  return Text(503, "not ready" + (disk.ok() ? "" : "\ndisk: " + disk.error().message()) +
                       (ready.ok() ? "" : "\ndatabase: " + ready.error().message()));
}

platform::HttpResponse PlaneServer::HandlePlane(const platform::HttpRequest& request) {
  // Before the router: they answer while the plane opens, and an audit's record is none of them.
  if (request.method == "GET") {
    const std::string_view target = request.target;
    const std::string_view path = target.substr(0, target.find('?'));
    if (path == "/healthz") return Text(200, "ok");
    if (path == "/readyz") return Ready();
    if (path == "/metrics") return MetricsResponse(metrics_);
  }
  const rpc::Router* router = serving_.load(std::memory_order_acquire);
  if (router == nullptr)
    return {503,
            {{"content-type", "application/json"}, {"retry-after", "1"}},
            rpc::ErrorBody(Error(Code::kUnavailable, "the " + options_.plane + " is starting"))};
  return router->Handle(request);
}

platform::HttpResponse PlaneServer::Handle(const platform::HttpRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  platform::HttpResponse response = HandlePlane(request);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Count(request, response.status, took.count());
  return response;
}

void PlaneServer::Count(const platform::HttpRequest& request, int status, double seconds) {
  // Only the router's "no method" is 501, and 503 may be from before it was there: such a path can
  // be the caller's invention and must not become a label.
  const bool is_known =
      status != kNotImplemented && serving_.load(std::memory_order_acquire) != nullptr;
  const std::string method =
      is_known ? request.target.substr(0, request.target.find('?')) : "other";
  metrics_
      .GetCounter("expanse_requests_total", "Requests answered, by method and HTTP status.",
                  {{"method", method}, {"code", std::to_string(status)}})
      .Add();
  metrics_
      .GetHistogram("expanse_request_duration_seconds", "Time from request to answer, by method.",
                    {{"method", method}})
      .Observe(seconds);
  log::Debug("http.request", {{"plane", options_.plane},
                              {"method", EscapeForTerminal(method)},
                              {"status", status},
                              {"ms", seconds * 1000},
                              {"peer", request.peer}});
}

void PlaneServer::Record(const platform::HttpRequest& request) {
  const std::string text = RecordedRequest(request);
  const std::lock_guard lock(record_mutex_);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(record_fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      log::Error("server.record_not_written",
                 {{"file", options_.record_received_file}, {"error", std::strerror(errno)}});
      return;
    }
    done += static_cast<size_t>(n);
  }
}

}  // namespace expanse::apps
