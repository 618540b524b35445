// SPDX-License-Identifier: Apache-2.0
#include "apps/plane_server.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/connect_error.h"

namespace expanse::apps {
namespace {

constexpr int kNotImplemented = 501;

}  // namespace

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
  EXPANSE_TRY(self->server_, platform::HttpServer::Start(
                                 http, [plane = self.get()](const platform::HttpRequest& request) {
                                   return plane->Handle(request);
                                 }));
  return self;
}

Status PlaneServer::OpenRecord() {
  const std::string& path = options_.record_received_file;
  if (path.empty()) return {};
  record_fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (record_fd_ < 0)
    return Error(Code::kFailedPrecondition, "open " + path + ": " + std::strerror(errno));
  return {};
}

void PlaneServer::Serve(std::unique_ptr<rpc::Router> router) {
  router_ = std::move(router);
  router_->AddPlain("GET", "/metrics", [this](const platform::HttpRequest&) {
    return platform::HttpResponse{
        200, {{"content-type", "text/plain; version=0.0.4"}}, metrics_.Text()};
  });
  router_->AddPlain("GET", "/healthz", [](const platform::HttpRequest&) {
    return platform::HttpResponse{200, {{"content-type", "text/plain"}}, "ok\n"};
  });
  if (record_fd_ >= 0)
    router_->SetTap([this](const platform::HttpRequest& request) { Record(request); });
  serving_.store(router_.get(), std::memory_order_release);
}

platform::HttpResponse PlaneServer::Handle(const platform::HttpRequest& request) {
  const rpc::Router* router = serving_.load(std::memory_order_acquire);
  if (router == nullptr)
    return {503,
            {{"content-type", "application/json"}, {"retry-after", "1"}},
            rpc::ErrorBody(Error(Code::kUnavailable, "the " + options_.plane + " is starting"))};
  const auto start = std::chrono::steady_clock::now();
  platform::HttpResponse response = router->Handle(request);
  const auto took = std::chrono::steady_clock::now() - start;
  Count(request, response.status,
        std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  return response;
}

void PlaneServer::Count(const platform::HttpRequest& request, int status, int64_t microseconds) {
  // Only the router's "no method" is 501: such a path is the caller's invention and must not
  // become a label.
  const std::string method =
      status == kNotImplemented ? "other" : request.target.substr(0, request.target.find('?'));
  const std::string code = std::to_string(status);
  metrics_
      .GetCounter("expanse_requests_total", "Requests answered, by method and HTTP status.",
                  {{"plane", options_.plane}, {"method", method}, {"code", code}})
      .Add();
  metrics_
      .GetCounter("expanse_request_microseconds_total", "Time spent in handlers.",
                  {{"plane", options_.plane}, {"method", method}})
      .Add(static_cast<uint64_t>(microseconds));
}

void PlaneServer::Record(const platform::HttpRequest& request) {
  std::string text = request.method + " " + request.target + "\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\n";
  text += "\n" + request.body + "\n\n";
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
