// SPDX-License-Identifier: Apache-2.0
// The only translation unit with Beast and Asio. Plain callbacks: g++ 12.2 miscompiles common
// coroutine shapes (docs/adr/0002).
#include "platform/net/http_server.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "platform/net/worker_pool.h"

namespace expanse::platform {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

/// For the answers of handlers that ended after the stop's time.
constexpr Millis kLastAnswers{200};

/// One connection, for the server's end.
class Connection {
 public:
  virtual ~Connection() = default;
  /// On the I/O thread: closes it unless a request has begun.
  virtual void Drain() = 0;
};

struct Shared {
  HttpServerOptions options;
  HttpHandler handler;
  std::unique_ptr<WorkerPool> pool;
  std::atomic<bool> draining{false};
  std::atomic<uint64_t> refused_requests{0};
  std::atomic<uint64_t> refused_connections{0};
  std::atomic<uint64_t> failed_handshakes{0};
  std::mutex mutex;  // the two below: sessions may end on a worker thread
  std::condition_variable ended;
  std::set<Connection*> open;

  void Add(Connection* connection) {
    const std::lock_guard lock(mutex);
    open.insert(connection);
  }
  void Remove(Connection* connection) {
    const std::lock_guard lock(mutex);
    open.erase(connection);
    if (open.empty()) ended.notify_all();
  }
  int Count() {
    const std::lock_guard lock(mutex);
    return static_cast<int>(open.size());
  }
  void Drain() {
    draining = true;
    const std::lock_guard lock(mutex);
    for (Connection* connection : open) connection->Drain();
  }
  bool AwaitEnd(Millis timeout) {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, timeout, [this] { return open.empty(); });
  }
};

HttpResponse PlainError(int status, std::string_view code, std::string_view message) {
  return {status,
          {{"content-type", "application/json"}},
          fmt::format(R"({{"code":"{}","message":"{}"}})", code, message)};
}

/// One connection: read a request, hand it to the pool, write the answer, repeat.
template <typename Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Stream stream, std::shared_ptr<Shared> shared)
      : stream_(std::move(stream)), shared_(std::move(shared)) {
    beast::error_code ec;
    const auto endpoint = beast::get_lowest_layer(stream_).socket().remote_endpoint(ec);
    if (!ec) peer_ = fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
    beast::get_lowest_layer(stream_).socket().set_option(tcp::no_delay(true), ec);
    shared_->Add(this);
  }
  // First of all: from here on Drain may not be called any more.
  ~Session() override { shared_->Remove(this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start() {
    if constexpr (std::is_same_v<Stream, beast::ssl_stream<beast::tcp_stream>>) {
      Touch();
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](beast::error_code ec) {
                                if (!ec) return self->Read();
                                self->HandshakeFailed(ec);
                              });
    } else {
      Read();
    }
  }

  void Drain() override {
    const bool is_idle = !parser_ || (reading_ && !parser_->got_some());
    beast::error_code ec;
    if (is_idle) beast::get_lowest_layer(stream_).socket().close(ec);
  }

 private:
  void HandshakeFailed(beast::error_code ec) {
    ++shared_->failed_handshakes;
    log::Debug("http.tls_handshake_failed", {{"peer", peer_}, {"reason", ec.message()}});
  }

  void Touch() { beast::get_lowest_layer(stream_).expires_after(shared_->options.idle_timeout); }

  void Read() {
    if (shared_->draining) return Close();
    reading_ = true;
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
    parser_->body_limit(shared_->options.max_body_bytes);
    Touch();
    http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code ec, size_t) { self->OnRead(ec); });
  }

  void OnRead(beast::error_code ec) {
    reading_ = false;
    if (ec == http::error::end_of_stream) return Close();
    if (ec == http::error::body_limit)
      return Write(PlainError(413, "resource_exhausted", "request body too large"), false);
    if (ec == http::error::header_limit)
      return Write(PlainError(431, "resource_exhausted", "request header too large"), false);
    if (ec) {
      if (ec.category() == http::make_error_code(http::error::bad_method).category())
        return Write(PlainError(400, "invalid_argument", "malformed HTTP request"), false);
      return;  // connection lost or timed out
    }
    auto message = parser_->release();
    auto request = std::make_shared<HttpRequest>();
    request->method = std::string(message.method_string());
    request->target = std::string(message.target());
    for (const auto& field : message)
      request->headers[ToLower(std::string_view(field.name_string()))] = std::string(field.value());
    request->body = std::move(message.body());
    request->peer = peer_;
    const bool keep_alive = message.keep_alive();
    beast::get_lowest_layer(stream_).expires_never();  // the handler has its own deadline
    auto self = this->shared_from_this();
    const bool queued = shared_->pool->TryPost([self, request, keep_alive] {
      HttpResponse response = self->Answer(*request);
      asio::post(self->stream_.get_executor(),
                 [self, keep_alive, response = std::move(response)]() mutable {
                   self->Write(std::move(response), keep_alive);
                 });
    });
    if (!queued) {
      ++shared_->refused_requests;
      auto busy = PlainError(503, "unavailable", "server is busy; try again");
      busy.headers["retry-after"] = "1";
      Write(std::move(busy), keep_alive);
    }
  }

  HttpResponse Answer(const HttpRequest& request) const {
    try {
      return shared_->handler(request);
    } catch (const std::exception& e) {
      // A handler must not throw; a bug in one request must not end the others.
      log::Error("http.handler_threw", {{"target", request.target}, {"what", e.what()}});
      return PlainError(500, "internal", "internal error");
    }
  }

  void Write(HttpResponse response, bool keep_alive) {
    keep_alive = keep_alive && !shared_->draining;
    reply_.emplace();
    reply_->result(static_cast<unsigned>(response.status));
    reply_->version(11);
    for (const auto& [name, value] : response.headers) reply_->set(name, value);
    reply_->body() = std::move(response.body);
    reply_->keep_alive(keep_alive);
    reply_->prepare_payload();
    Touch();
    http::async_write(stream_, *reply_,
                      [self = this->shared_from_this(), keep_alive](beast::error_code ec, size_t) {
                        if (ec) return;
                        if (!keep_alive) return self->Close();
                        self->Read();
                      });
  }

  void Close() {
    beast::error_code ec;
    beast::get_lowest_layer(stream_).socket().shutdown(tcp::socket::shutdown_send, ec);
  }

  Stream stream_;
  std::shared_ptr<Shared> shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> reply_;
  bool reading_ = false;
  std::string peer_;
};

}  // namespace

struct HttpServer::Impl {
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  asio::io_context io{1};
  // Answers are posted by workers while nothing else may wait in the I/O thread.
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::unique_ptr<TlsIdentity> tls;
  std::optional<tcp::acceptor> acceptor;
  std::thread io_thread;
  uint16_t port = 0;

  void Begin(tcp::socket socket) {
    if (shared->Count() >= shared->options.max_connections) {
      ++shared->refused_connections;
      return;
    }
    beast::tcp_stream stream(std::move(socket));
    if (!tls)
      return std::make_shared<Session<beast::tcp_stream>>(std::move(stream), shared)->Start();
    // The stream keeps OpenSSL's context by itself; Asio's wrapper is needed only to make it.
    const std::shared_ptr<SSL_CTX> identity = tls->context();
    SSL_CTX_up_ref(identity.get());
    asio::ssl::context context(identity.get());
    std::make_shared<Session<beast::ssl_stream<beast::tcp_stream>>>(
        beast::ssl_stream<beast::tcp_stream>(std::move(stream), context), shared)
        ->Start();
  }

  void Accept() {
    acceptor->async_accept([this](beast::error_code ec, tcp::socket socket) {
      if (ec == asio::error::operation_aborted) return;
      if (!ec) Begin(std::move(socket));
      if (!acceptor->is_open()) return;
      if (ec == asio::error::no_descriptors) {
        // Out of descriptors: wait for connections to end instead of spinning.
        auto timer = std::make_shared<asio::steady_timer>(io, Millis(100));
        timer->async_wait([this, timer](beast::error_code) {
          if (acceptor->is_open()) Accept();
        });
        return;
      }
      Accept();
    });
  }

  Status Listen() {
    const HttpServerOptions& o = shared->options;
    beast::error_code ec;
    const auto address = asio::ip::make_address(o.address, ec);
    const auto fail = [&](std::string_view what) {
      return Error(Code::kUnavailable, fmt::format("listening on {}:{}: {}: {}", o.address, o.port,
                                                   what, ec.message()));
    };
    if (ec) return fail("not an IP address");
    if (!o.tls_certificate_file.empty()) {
      auto loaded = TlsIdentity::Load(o.tls_certificate_file, o.tls_key_file);
      if (!loaded.ok())
        return loaded.error().WithContext(fmt::format("TLS on {}:{}", o.address, o.port));
      tls = std::move(loaded).value();
    }
    acceptor.emplace(io);
    const tcp::endpoint endpoint(address, o.port);
    if (acceptor->open(endpoint.protocol(), ec)) return fail("socket");
    if (acceptor->set_option(asio::socket_base::reuse_address(true), ec))
      return fail("socket option");
    if (acceptor->bind(endpoint, ec)) return fail("bind");
    if (acceptor->listen(asio::socket_base::max_listen_connections, ec)) return fail("listen");
    port = acceptor->local_endpoint().port();
    return {};
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                      HttpHandler handler) {
  auto impl = std::make_unique<Impl>();
  impl->shared->options = std::move(options);
  impl->shared->handler = std::move(handler);
  EXPANSE_CHECK_OK(impl->Listen());
  impl->shared->pool = std::make_unique<WorkerPool>(impl->shared->options.worker_threads,
                                                    impl->shared->options.max_queued_requests);
  impl->Accept();
  Impl* raw = impl.get();
  impl->io_thread = std::thread([raw] { raw->io.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() { Stop(impl_->shared->options.stop_timeout); }

void HttpServer::Stop(Millis timeout) {
  if (!impl_->io_thread.joinable()) return;
  Shared& shared = *impl_->shared;
  std::promise<void> draining;
  asio::post(impl_->io, [this, &shared, &draining] {
    beast::error_code ec;
    impl_->acceptor->close(ec);
    shared.Drain();
    draining.set_value();
  });
  draining.get_future().wait();
  const bool ended = shared.AwaitEnd(timeout);
  if (!ended) {
    const int left = shared.Count();
    log::Warning("http.stop_cut", {{"url", url()}, {"connections", left}});
  }
  shared.pool->Stop(/*run_queued=*/ended);
  if (!ended) shared.AwaitEnd(kLastAnswers);
  impl_->work.reset();
  impl_->io.stop();
  impl_->io_thread.join();
}

uint16_t HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const {
  const std::string& host = impl_->shared->options.address;
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", impl_->tls ? "https" : "http", is_v6 ? "[" + host + "]" : host,
                     impl_->port);
}

HttpServerStats HttpServer::stats() const {
  Shared& shared = *impl_->shared;
  return {shared.Count(),          shared.pool->queued(),      shared.pool->running(),
          shared.refused_requests, shared.refused_connections, shared.failed_handshakes};
}

TlsIdentity* HttpServer::tls() const { return impl_->tls.get(); }

}  // namespace expanse::platform
