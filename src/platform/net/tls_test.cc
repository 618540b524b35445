// SPDX-License-Identifier: Apache-2.0
#include "platform/net/tls.h"

#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "platform/net/tls_fixture.h"

namespace expanse::platform {
namespace {

using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  std::unique_ptr<HttpServer> Serve(const std::string& name) {
    HttpServerOptions options;
    options.tls_certificate_file = Path(name + ".pem");
    options.tls_key_file = Path(name + ".key");
    auto server = HttpServer::Start(options, [](const HttpRequest&) {
      return HttpResponse{200, {}, "hello"};
    });
    EXPECT_TRUE(server.ok()) << server.error().message();
    return server.ok() ? std::move(server).value() : nullptr;
  }
  static Result<HttpResponse> Get(HttpClient& client, const std::string& url) {
    HttpCall call;
    call.method = "GET";
    call.url = url;
    call.timeout = Millis(20'000);
    return client.Do(call);
  }
  Result<HttpResponse> Get(const std::string& url) {
    return Get(*NewCurlHttpClient({authority_.certificate(), ""}), url);
  }
  /// In the way of a renewal: the new files replace the old ones.
  void Replace(const std::string& from, const std::string& to) {
    for (const char* end : {".pem", ".key"}) {
      const auto bytes = fs_.Read(Path(from + end));
      ASSERT_TRUE(bytes.ok());
      ASSERT_TRUE(fs_.WriteAtomic(Path(to + end), *bytes, 0600).ok());
    }
  }

  TempDir dir_;
  Fs fs_;
  TestAuthority authority_{dir_.path()};
};

TEST_F(TlsTest, ACertificateOfAPrivateAuthorityIsTakenWhenTheAuthorityIsNamed) {
  authority_.Issue("server", "IP:127.0.0.1");
  const auto server = Serve("server");
  const auto unknown = Get(*NewCurlHttpClient(), server->url());
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kUnavailable);
  EXPECT_THAT(unknown.error().message(), HasSubstr("SSL_CERT_FILE"));
  const auto by_setting = Get(server->url());
  ASSERT_TRUE(by_setting.ok()) << by_setting.error().message();
  EXPECT_EQ(by_setting->body, "hello");
  ::setenv("SSL_CERT_FILE", authority_.certificate().c_str(), 1);
  const auto by_environment = Get(*NewCurlHttpClient(), server->url());
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(by_environment.ok()) << by_environment.error().message();
  EXPECT_GE(server->stats().failed_handshakes, 1U);
}

TEST_F(TlsTest, WhatACertificateDoesNotProveIsNamed) {
  authority_.Issue("expired", "IP:127.0.0.1", -1);
  const auto expired = Get(Serve("expired")->url());
  ASSERT_FALSE(expired.ok());
  EXPECT_THAT(expired.error().message(), HasSubstr("expired"));
  authority_.Issue("other", "DNS:other.example.org,IP:127.0.0.2");
  const auto wrong_name = Get(Serve("other")->url());
  ASSERT_FALSE(wrong_name.ok());
  EXPECT_THAT(wrong_name.error().message(), HasSubstr("127.0.0.1"));
  const TestAuthority stranger(dir_.path(), "stranger");
  stranger.Issue("server", "IP:127.0.0.1");
  EXPECT_FALSE(Get(Serve("server")->url()).ok()) << "of another authority";
  const auto no_ca = Get(*NewCurlHttpClient({Path("absent.pem"), ""}), Serve("server")->url());
  ASSERT_FALSE(no_ca.ok());
  EXPECT_THAT(no_ca.error().message(), HasSubstr("absent.pem"));
}

TEST_F(TlsTest, AnAbsentFileOfAuthoritiesIsNoFaultOfTheRequest) {
  authority_.Issue("server", "IP:127.0.0.1");
  const auto server = Serve("server");
  const auto r = Get(*NewCurlHttpClient({Path("absent.pem"), ""}), server->url());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), Code::kFailedPrecondition);
}

TEST_F(TlsTest, PlainAndTlsPortsAreToldApart) {
  authority_.Issue("server", "IP:127.0.0.1");
  const auto secure = Serve("server");
  const auto plain = HttpServer::Start({}, [](const HttpRequest&) { return HttpResponse{}; });
  ASSERT_TRUE(plain.ok());
  const auto to_plain = Get("https" + (*plain)->url().substr(4));
  ASSERT_FALSE(to_plain.ok());
  EXPECT_THAT(to_plain.error().message(), HasSubstr("does this port speak TLS"));
  EXPECT_FALSE(Get("http" + secure->url().substr(5)).ok());
}

TEST_F(TlsTest, OldVersionsOfTlsAreRefused) {
  authority_.Issue("server", "IP:127.0.0.1");
  const auto server = Serve("server");
  const std::string port = std::to_string(server->port());
  SystemProcessRunner runner;
  for (const auto& [version, is_taken] : std::vector<std::pair<std::string, bool>>{
           {"-tls1_1", false}, {"-tls1_2", true}, {"-tls1_3", true}}) {
    ProcessSpec spec;
    // Security level 0: else the client itself would not offer 1.1.
    spec.argv = {"openssl", "s_client",           "-connect", "127.0.0.1:" + port,     version,
                 "-cipher", "DEFAULT@SECLEVEL=0", "-CAfile",  authority_.certificate()};
    const auto done = runner.Run(spec);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->exit_code == 0, is_taken) << version << done->err;
  }
}

TEST_F(TlsTest, WhatIsNoPairDoesNotStart) {
  authority_.Issue("one", "IP:127.0.0.1");
  authority_.Issue("two", "IP:127.0.0.1");
  const auto mismatch = TlsIdentity::Load(Path("one.pem"), Path("two.key"));
  ASSERT_FALSE(mismatch.ok());
  EXPECT_THAT(mismatch.error().message(), HasSubstr("two.key is not the key of the certificate"));
  EXPECT_FALSE(TlsIdentity::Load(Path("one.pem"), Path("absent")).ok());
  ASSERT_TRUE(fs_.WriteAtomic(Path("noise"), "no PEM\n", 0600).ok());
  const auto noise = TlsIdentity::Load(Path("noise"), Path("one.key"));
  ASSERT_FALSE(noise.ok());
  EXPECT_THAT(noise.error().message(), HasSubstr("noise"));
  ASSERT_TRUE(fs_.Chmod(Path("one.key"), 0644).ok());
  const auto open = TlsIdentity::Load(Path("one.pem"), Path("one.key"));
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(open.error().message(), HasSubstr("every account may read"));
}

TEST_F(TlsTest, ARenewedPairServesWithoutARestart) {
  authority_.Issue("server", "IP:127.0.0.2");  // as if the first one named the wrong host
  authority_.Issue("renewed", "IP:127.0.0.1");
  const auto server = Serve("server");
  EXPECT_FALSE(Get(server->url()).ok());
  server->tls()->ReloadIfChanged();
  EXPECT_EQ(server->tls()->reloads(), 0U) << "nothing has changed";
  Replace("renewed", "server");
  server->tls()->ReloadIfChanged();
  EXPECT_EQ(server->tls()->reloads(), 1U);
  EXPECT_TRUE(Get(server->url()).ok());
}

TEST_F(TlsTest, ABrokenRenewalLeavesTheOldPairAndIsToldAndHealsByItself) {
  authority_.Issue("server", "IP:127.0.0.1");
  authority_.Issue("renewed", "IP:127.0.0.1");
  authority_.Issue("expired", "IP:127.0.0.1", -1);
  const auto server = Serve("server");
  const auto client = NewCurlHttpClient({authority_.certificate(), ""});
  EXPECT_TRUE(Get(*client, server->url()).ok());
  const int64_t until = server->tls()->not_after_s();
  // Half of the renewal: the new certificate with the old key.
  ASSERT_TRUE(fs_.WriteAtomic(Path("server.pem"), *fs_.Read(Path("renewed.pem")), 0600).ok());
  const Status half = server->tls()->Reload();
  ASSERT_FALSE(half.ok());
  EXPECT_THAT(half.error().message(), HasSubstr("is not the key of the certificate"));
  EXPECT_EQ(server->tls()->failed_reloads(), 1U);
  EXPECT_EQ(server->tls()->not_after_s(), until);
  EXPECT_TRUE(Get(server->url()).ok()) << "a new connection";
  Replace("expired", "server");
  EXPECT_FALSE(server->tls()->Reload().ok()) << "an expired certificate replaces no living one";
  EXPECT_TRUE(Get(server->url()).ok());
  Replace("renewed", "server");
  server->tls()->ReloadIfChanged();
  EXPECT_EQ(server->tls()->reloads(), 1U);
  EXPECT_TRUE(Get(server->url()).ok());
  EXPECT_TRUE(Get(*client, server->url()).ok()) << "a connection from before all this";
}

TEST_F(TlsTest, AClientReadsARenewedAuthorityAtItsNextConnection) {
  const TestAuthority next(dir_.path(), "next");
  next.Issue("server", "IP:127.0.0.1");
  const auto server = Serve("server");
  ASSERT_TRUE(fs_.WriteAtomic(Path("trust.pem"), *fs_.Read(authority_.certificate()), 0644).ok());
  const auto client = NewCurlHttpClient({Path("trust.pem"), ""});
  EXPECT_FALSE(Get(*client, server->url()).ok());
  ASSERT_TRUE(fs_.WriteAtomic(Path("trust.pem"), *fs_.Read(next.certificate()), 0644).ok());
  const auto now = Get(*client, server->url());
  EXPECT_TRUE(now.ok()) << now.error().message();
}

/// A proxy that takes CONNECT for any name and leads every tunnel to one port of this machine.
class TunnelProxy {
 public:
  explicit TunnelProxy(uint16_t to) : to_(to), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int fd = 0; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) Tunnel(fd);
    });
  }
  ~TunnelProxy() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string first_line() const { return first_line_; }
  int tunnels() const { return tunnels_; }

 private:
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static void Copy(int from, int to) {
    char buffer[16384];
    for (ssize_t n = 0; (n = ::recv(from, buffer, sizeof buffer, 0)) > 0;)
      if (::send(to, buffer, static_cast<size_t>(n), MSG_NOSIGNAL) != n) break;
    ::shutdown(to, SHUT_RDWR);
    ::shutdown(from, SHUT_RDWR);
  }
  void Tunnel(int client) {
    std::string head;
    char c = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(client, &c, 1, 0) == 1) head.push_back(c);
    first_line_ = head.substr(0, head.find('\r'));
    ++tunnels_;
    const int server = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Loopback(to_);
    EXPECT_EQ(::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string ok = "HTTP/1.1 200 OK\r\n\r\n";
    ::send(client, ok.data(), ok.size(), MSG_NOSIGNAL);
    std::thread back([&] { Copy(server, client); });
    Copy(client, server);
    back.join();
    ::close(server);
    ::close(client);
  }

  const uint16_t to_;
  const int listener_;
  uint16_t port_ = 0;
  std::string first_line_;
  std::atomic<int> tunnels_{0};
  std::thread thread_;
};

TEST_F(TlsTest, TheProxyOfTheEnvironmentIsUsedExceptWhereNoProxySaysSo) {
  authority_.Issue("server", "DNS:plane.example.test,IP:127.0.0.1");
  const auto server = Serve("server");
  TunnelProxy proxy(server->port());
  ::setenv("HTTPS_PROXY", proxy.url().c_str(), 1);
  const std::string port = std::to_string(server->port());
  const auto through = Get("https://plane.example.test:" + port + "/");
  const auto loopback = Get(server->url());
  const int tunnels = proxy.tunnels();
  ::setenv("NO_PROXY", "example.test", 1);
  const auto direct = Get("https://plane.example.test:" + port + "/");
  ::unsetenv("HTTPS_PROXY");
  ::unsetenv("NO_PROXY");
  EXPECT_TRUE(through.ok()) << through.error().message();
  EXPECT_EQ(proxy.first_line(), "CONNECT plane.example.test:" + port + " HTTP/1.1");
  EXPECT_TRUE(loopback.ok());
  EXPECT_EQ(tunnels, 1) << "this machine is reached without a proxy";
  ASSERT_FALSE(direct.ok()) << "the name means nothing outside the proxy";
  EXPECT_EQ(proxy.tunnels(), 1);
}

TEST_F(TlsTest, AProcessCanCallItselfByItsPublicName) {
  authority_.Issue("server", "DNS:plane.example.test");
  const auto server = Serve("server");
  const std::string url = "https://plane.example.test:" + std::to_string(server->port()) + "/";
  // Trust in exactly the file that is served needs no authority.
  const auto self = NewCurlHttpClient({Path("server.pem"), "127.0.0.1"});
  const auto answer = Get(*self, url);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
}

TEST(HttpUrl, InTheClearIsPlainHttpToAnotherMachine) {
  EXPECT_TRUE(IsInTheClear("http://plane.example.org:7702"));
  EXPECT_TRUE(IsInTheClear("HTTP://10.0.0.1"));
  EXPECT_TRUE(IsInTheClear("http://127.0.0.1@evil.example.org/"));
  for (const char* url : {"https://plane.example.org", "http://127.0.0.1:7701", "http://[::1]:7701",
                          "http://localhost/x"})
    EXPECT_FALSE(IsInTheClear(url)) << url;
  EXPECT_EQ(WithoutUserInfo("https://me:pass@h.example.org:1/p?q@r"),
            "https://h.example.org:1/p?q@r");
  EXPECT_EQ(WithoutUserInfo("https://h/p@q"), "https://h/p@q");
}

}  // namespace
}  // namespace expanse::platform
