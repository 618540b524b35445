// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "platform/process/process.h"

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

TEST(HttpServer, SpeaksTls) {
  const TempDir dir;
  SystemProcessRunner runner;
  ProcessSpec spec;
  spec.argv = {"openssl",
               "req",
               "-x509",
               "-newkey",
               "ec",
               "-pkeyopt",
               "ec_paramgen_curve:P-256",
               "-nodes",
               "-keyout",
               dir.path() + "/key",
               "-out",
               dir.path() + "/cert",
               "-days",
               "1",
               "-subj",
               "/CN=localhost",
               "-addext",
               "subjectAltName=IP:127.0.0.1"};
  const auto made = runner.Run(spec);
  ASSERT_TRUE(made.ok() && made->exit_code == 0) << made->err;
  HttpServerOptions options;
  options.tls_certificate_file = dir.path() + "/cert";
  options.tls_key_file = dir.path() + "/key";
  auto server = StartEcho(options);
  const auto client = NewCurlHttpClient();
  HttpCall call;
  call.url = server->url() + "/";
  EXPECT_EQ(client->Do(call).error().code(), Code::kUnavailable);  // unknown CA
  ::setenv("SSL_CERT_FILE", (dir.path() + "/cert").c_str(), 1);
  const auto trusted = client->Do(call);
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(trusted.ok()) << trusted.error().message();
  EXPECT_EQ(trusted->status, 200);
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
  EXPECT_EQ(client->Do(call).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace expanse::platform
