// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/net/http_client.h"
#include "platform/net/http_server.h"

namespace expanse::platform {
namespace {

std::unique_ptr<HttpServer> StartEcho(HttpServerOptions options = {}) {
  auto server = HttpServer::Start(std::move(options), [](const HttpRequest& r) {
    return HttpResponse{
        200, {{"content-type", "text/plain"}}, r.method + " " + r.target + " " + r.body};
  });
  EXPECT_TRUE(server.ok()) << server.error().message();
  return std::move(server).value();
}

int Connect(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  return fd;
}

std::string Exchange(int fd, const std::string& bytes) {
  EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  char buffer[4096];
  const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

TEST(HttpServer, AnswersConcurrentClientsOnKeptConnections) {
  auto server = StartEcho();
  const auto client = NewCurlHttpClient();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        HttpCall call;
        call.url = server->url() + "/x?y=1";
        call.body = std::string(1000, 'b');
        const auto r = client->Do(call);
        if (r.ok() && r->status == 200 && r->body == "POST /x?y=1 " + call.body) ++good;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 400);
}

TEST(HttpServer, IdleConnectionsDoNotHoldWorkers) {
  HttpServerOptions options;
  options.worker_threads = 2;
  auto server = StartEcho(options);
  std::vector<int> idle;
  for (int i = 0; i < 64; ++i) idle.push_back(Connect(server->port()));
  const int fd = Connect(server->port());
  EXPECT_NE(Exchange(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").find("200 OK"), std::string::npos);
  ::close(fd);
  for (const int i : idle) ::close(i);
}

TEST(HttpServer, RefusesWhatIsTooLargeOrMalformed) {
  HttpServerOptions options;
  options.max_body_bytes = 100;
  options.max_header_bytes = 1000;
  auto server = StartEcho(options);
  int fd = Connect(server->port());
  EXPECT_NE(Exchange(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n").find(" 413 "),
            std::string::npos);
  ::close(fd);
  fd = Connect(server->port());
  EXPECT_NE(
      Exchange(fd, "GET / HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n").find(" 431 "),
      std::string::npos);
  ::close(fd);
  fd = Connect(server->port());
  const std::string garbage = Exchange(fd, "\x01\x02\x03 garbage\r\n\r\n");
  EXPECT_TRUE(garbage.empty() || garbage.find(" 400 ") != std::string::npos) << garbage;
  ::close(fd);
}

TEST(HttpServer, HalfSentRequestsTimeOut) {
  HttpServerOptions options;
  options.idle_timeout = Millis(200);
  auto server = StartEcho(options);
  const int fd = Connect(server->port());
  const std::string half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Le";
  ASSERT_GT(::send(fd, half.data(), half.size(), 0), 0);
  char c = 0;
  EXPECT_LE(::recv(fd, &c, 1, 0), 0);  // closed by the server
  ::close(fd);
}

TEST(HttpServer, AThrowingHandlerIsA500AndTheServerGoesOn) {
  auto server = HttpServer::Start({}, [](const HttpRequest& r) -> HttpResponse {
    if (r.target == "/throw") throw std::runtime_error("secret detail");
    return {};
  });
  ASSERT_TRUE(server.ok());
  const auto client = NewCurlHttpClient();
  HttpCall call;
  call.url = (*server)->url() + "/throw";
  const auto r = client->Do(call);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->status, 500);
  EXPECT_EQ(r->body.find("secret detail"), std::string::npos);
  call.url = (*server)->url() + "/";
  EXPECT_EQ(client->Do(call)->status, 200);
}

/// A handler that waits until it is let go, and says when it was entered.
struct Gate {
  std::promise<void> entered;
  std::promise<void> go;
  std::shared_future<void> open{go.get_future()};
};

TEST(HttpServer, AStopLetsARequestEndAndClosesWhatIsIdle) {
  Gate gate;
  auto server = HttpServer::Start({}, [&](const HttpRequest&) {
    gate.entered.set_value();
    gate.open.wait();
    return HttpResponse{200, {}, "finished"};
  });
  ASSERT_TRUE(server.ok());
  const std::string url = (*server)->url();
  const int idle = Connect((*server)->port());
  Result<HttpResponse> answer = Error(Code::kUnknown, "not asked");
  std::thread caller([&] {
    HttpCall call;
    call.url = url;
    answer = NewCurlHttpClient()->Do(call);
  });
  gate.entered.get_future().wait();
  std::thread stopper([&] { (*server)->Stop(Millis(20'000)); });
  char c = 0;
  EXPECT_EQ(::recv(idle, &c, 1, 0), 0) << "closed at once";
  ::close(idle);
  HttpCall late;
  late.url = url;
  EXPECT_FALSE(NewCurlHttpClient()->Do(late).ok()) << "nothing new is accepted";
  gate.go.set_value();
  stopper.join();
  caller.join();
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->body, "finished");
  EXPECT_EQ(answer->headers["connection"], "close");
}

TEST(HttpServer, AStopWaitsForAClientOnlySoLong) {
  HttpServerOptions options;
  options.stop_timeout = Millis(50);
  auto server = StartEcho(options);
  const int fd = Connect(server->port());
  const std::string half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbegun";
  ASSERT_GT(::send(fd, half.data(), half.size(), 0), 0);
  while (server->stats().connections == 0) std::this_thread::yield();
  server.reset();
  char c = 0;
  EXPECT_LE(::recv(fd, &c, 1, 0), 0);
  ::close(fd);
}

TEST(HttpServer, CountsWhatItRefuses) {
  Gate gate;
  HttpServerOptions options;
  options.worker_threads = 1;
  options.max_queued_requests = 1;
  std::atomic<bool> first{true};
  auto server = HttpServer::Start(options, [&](const HttpRequest&) {
    if (first.exchange(false)) gate.entered.set_value();
    gate.open.wait();
    return HttpResponse{};
  });
  ASSERT_TRUE(server.ok());
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const int running = Connect((*server)->port());
  ASSERT_GT(::send(running, request.data(), request.size(), 0), 0);
  gate.entered.get_future().wait();
  const int queued = Connect((*server)->port());
  ASSERT_GT(::send(queued, request.data(), request.size(), 0), 0);
  while ((*server)->stats().queued_requests == 0) std::this_thread::yield();
  const int refused = Connect((*server)->port());
  EXPECT_NE(Exchange(refused, request).find(" 503 "), std::string::npos);
  const HttpServerStats stats = (*server)->stats();
  EXPECT_EQ(stats.connections, 3);
  EXPECT_EQ(stats.running_requests, 1);
  EXPECT_EQ(stats.queued_requests, 1U);
  EXPECT_EQ(stats.refused_requests, 1U);
  gate.go.set_value();
  for (const int fd : {running, queued, refused}) ::close(fd);
}

TEST(HttpClient, SaysWhereNobodyAnswersAndBoundsTheAnswer) {
  uint16_t port = 0;
  {
    auto server = StartEcho();
    port = server->port();
    const auto client = NewCurlHttpClient();
    HttpCall call;
    call.url = server->url() + "/";
    call.body = std::string(5000, 'x');
    call.max_response_bytes = 1000;
    EXPECT_EQ(client->Do(call).error().code(), Code::kResourceExhausted);
  }
  const auto client = NewCurlHttpClient();
  HttpCall call;
  call.url = "http://127.0.0.1:" + std::to_string(port) + "/";
  const auto r = client->Do(call);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), Code::kUnavailable);
  EXPECT_NE(r.error().message().find(call.url), std::string::npos);
  call.url = "file:///etc/passwd";
  EXPECT_EQ(client->Do(call).error().code(), Code::kFailedPrecondition);
  call.url = "http://[not an address/";
  EXPECT_EQ(client->Do(call).error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace expanse::platform
