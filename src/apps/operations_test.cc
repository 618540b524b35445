// SPDX-License-Identifier: Apache-2.0
// What an operator relies on: TLS, readiness, metrics, settings, logs and a clean end, of the
// programs as they are started.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "apps/program_fixture.h"
#include "apps/settings.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"
#include "platform/metrics/text_check.h"
#include "platform/net/http_client.h"
#include "platform/net/tls_fixture.h"
#include "rpc/channel.h"

namespace expanse::apps {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OperationsTest : public ProgramTest {
 protected:
  Result<platform::HttpResponse> Get(const std::string& url, const std::string& ca_file = "") {
    platform::HttpCall call;
    call.method = "GET";
    call.url = url;
    return platform::NewCurlHttpClient({ca_file, ""})->Do(call);
  }
  /// Asks until the answer holds the text: the other side is another process.
  std::string AwaitText(const std::string& url, const std::string& text,
                        const std::string& ca_file = "") {
    std::string last;
    for (int i = 0; i < 1000; ++i) {
      const auto answer = Get(url, ca_file);
      last = answer.ok() ? answer->body : answer.error().message();
      if (last.find(text) != std::string::npos) return last;
      std::this_thread::sleep_for(Millis(20));
    }
    ADD_FAILURE() << url << " never said " << text << ": " << last;
    return last;
  }
  void Bootstrap() {
    ASSERT_EQ(
        Run("expanse-control-plane",
            {"bootstrap", "--data-dir", Path("c"), "--organisation", "Labs", "--owner-email",
             "a@b.org", "--key-file", Path("owner.key"), "--plane-key-file", Path("plane.key")})
            .exit_code,
        0);
  }
};

TEST_F(OperationsTest, ThePlanesTalkTlsToEachOtherAndToTheirCallers) {
  const platform::TestAuthority authority(dir_.path());
  authority.Issue("server", "IP:127.0.0.1");
  const std::string ca = authority.certificate();
  const std::vector<std::string> tls{"--tls-certificate", Path("server.pem"), "--tls-key",
                                     Path("server.key"),  "--listen",         "127.0.0.1:0"};
  const auto with_tls = [&](std::vector<std::string> words) {
    words.insert(words.end(), tls.begin(), tls.end());
    return words;
  };
  Bootstrap();
  const pid_t control = Spawn("expanse-control-plane", with_tls({"--data-dir", Path("c")}));
  const std::string control_url = UrlOf("expanse-control-plane");
  EXPECT_THAT(control_url, testing::StartsWith("https://127.0.0.1:"));
  const pid_t data = Spawn("expanse-data-plane",
                           with_tls({"--data-dir", Path("d"), "--control-plane-url", control_url,
                                     "--plane-key-file", Path("plane.key"), "--ca-file", ca}));
  const std::string data_url = UrlOf("expanse-data-plane");

  const auto http = platform::NewCurlHttpClient({ca, ""});
  rpc::HttpChannel control_channel(*http, control_url);
  control::v1::MintSessionRequest request;
  request.set_api_key(ReadKeyFile(Path("owner.key"))->Reveal());
  const auto session = control::v1::AuthServiceClient(control_channel).MintSession("", request);
  ASSERT_TRUE(session.ok()) << session.error().message();
  // The data plane fetches the keys of sessions from the control plane, by TLS.
  rpc::HttpChannel data_channel(*http, data_url);
  const auto list =
      data::v1::ExecutionServiceClient(data_channel).ListExecutions(session->access_token(), {});
  EXPECT_TRUE(list.ok()) << list.error().message();
  EXPECT_FALSE(Get(data_url + "/healthz").ok()) << "without the authority";

  // The command line, with the authority by its own setting.
  platform::ProcessSpec login;
  login.argv = {std::string(EXPANSE_BIN_DIR) + "/expanse", "login", "--control-plane", control_url};
  login.env = {{"HOME", dir_.path()},
               {"EXPANSE_API_KEY", ReadKeyFile(Path("owner.key"))->Reveal()},
               {"EXPANSE_CA_FILE", ca}};
  const auto logged_in = runner_.Run(login);
  ASSERT_TRUE(logged_in.ok()) << logged_in.error().message();
  EXPECT_EQ(logged_in->exit_code, 0) << logged_in->err;
  EXPECT_THAT(logged_in->err, Not(HasSubstr("in the clear")));

  const std::string metrics = AwaitText(data_url + "/metrics", "ExecutionService", ca);
  EXPECT_THAT(platform::MetricsTextCheck::Problems(metrics), IsEmpty());
  for (const char* line :
       {"expanse_request_duration_seconds_bucket{method=\"/expanse.data.v1.ExecutionService/"
        "ListExecutions\",le=\"+Inf\"} 1\n",
        "expanse_tls_certificate_not_after_seconds", "expanse_http_queue_depth 0\n",
        "expanse_ingest_records_total{result=\"accepted\"} 0\n", "expanse_disk_free_bytes{",
        "process_cpu_seconds_total", "process_resident_memory_bytes"})
    EXPECT_THAT(metrics, HasSubstr(line));

  // A renewed pair, by SIGHUP and without a restart.
  ASSERT_TRUE(fs_.WriteAtomic(Path("server.key"), "broken\n", 0600).ok());
  ASSERT_EQ(::kill(data, SIGHUP), 0);
  AwaitText(data_url + "/metrics", "expanse_tls_reloads_total{result=\"failed\"} 1", ca);
  EXPECT_THAT(AwaitLine("expanse-data-plane.err", "tls.reload_failed"), HasSubstr("server.key"));
  authority.Issue("server", "IP:127.0.0.1");
  ASSERT_EQ(::kill(data, SIGHUP), 0);
  AwaitText(data_url + "/metrics", "expanse_tls_reloads_total{result=\"ok\"} 1", ca);
  ExpectEndsCleanly(data);
  ExpectEndsCleanly(control);
}

TEST_F(OperationsTest, ADeploymentInOneProcessServesTlsByItsPublicName) {
  const platform::TestAuthority authority(dir_.path());
  authority.Issue("server", "DNS:expanse.example.test");
  const pid_t up =
      Spawn("expanse-up", {"--data-dir", Path("d"), "--base-port=0", "--ready-file", Path("ready"),
                           "--tls-certificate", Path("server.pem"), "--tls-key", Path("server.key"),
                           "--public-host", "expanse.example.test"});
  const std::string url = AwaitLine("ready", "https://expanse.example.test:");
  platform::HttpCall call;
  call.method = "GET";
  call.url = url + "/readyz";
  const auto ready = platform::NewCurlHttpClient({authority.certificate(), "127.0.0.1"})->Do(call);
  ASSERT_TRUE(ready.ok()) << ready.error().message();
  EXPECT_EQ(ready->body, "ready\n");
  ExpectEndsCleanly(up);
  authority.Issue("other", "DNS:other.example.test");
  const auto wrong =
      Run("expanse-up",
          {"--data-dir", Path("d"), "--base-port=0", "--tls-certificate", Path("other.pem"),
           "--tls-key", Path("other.key"), "--public-host", "expanse.example.test"});
  EXPECT_EQ(wrong.exit_code, 1) << "nobody else could verify it either";
  EXPECT_THAT(wrong.err, HasSubstr("expanse.example.test"));
}

TEST_F(OperationsTest, ARequestThatHasBegunIsAnsweredAfterSigterm) {
  const pid_t control = Spawn("expanse-control-plane", {"--data-dir", Path("c"), "--listen",
                                                        "127.0.0.1:0", "--log-format", "json"});
  const std::string line = AwaitLine("expanse-control-plane.err", "\"event\":\"server.listening\"");
  const size_t port_at = line.rfind(':') + 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(line.substr(port_at))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string begin =
      "POST /expanse.control.v1.AuthService/MintSession HTTP/1.1\r\nHost: x\r\n"
      "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n";
  ASSERT_GT(::send(fd, begin.data(), begin.size(), MSG_NOSIGNAL), 0);
  // Another request after it: its answer says that the first one's head has been read.
  AwaitText("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/healthz", "ok");
  ASSERT_EQ(::kill(control, SIGTERM), 0);
  AwaitLine("expanse-control-plane.err", "server.stopping");
  ASSERT_GT(::send(fd, "{}", 2, MSG_NOSIGNAL), 0);
  char answer[1024] = {};
  ASSERT_GT(::recv(fd, answer, sizeof answer - 1, 0), 0);
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 401"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  ::close(fd);
  int status = -1;
  ASSERT_EQ(::waitpid(control, &status, 0), control);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  AwaitLine("expanse-control-plane.err", "server.stopped");
}

TEST_F(OperationsTest, APlaneWhoseDiskIsGoneLivesAndIsNotReady) {
  const pid_t control =
      Spawn("expanse-control-plane", {"--data-dir", Path("c"), "--listen", "127.0.0.1:0"});
  const std::string url = UrlOf("expanse-control-plane");
  AwaitText(url + "/readyz", "ready\n");
  ASSERT_TRUE(fs_.Rename(Path("c"), Path("away")).ok());
  EXPECT_THAT(AwaitText(url + "/readyz", "not ready"), HasSubstr("disk: " + Path("c")));
  EXPECT_EQ(Get(url + "/readyz")->status, 503);
  EXPECT_EQ(Get(url + "/healthz")->status, 200);
  ASSERT_TRUE(fs_.Rename(Path("away"), Path("c")).ok());
  EXPECT_EQ(Get(url + "/readyz")->status, 200);
  ExpectEndsCleanly(control);
}

TEST_F(OperationsTest, EveryProgramShowsWhereItsSettingsComeFromAndRefusesUnknownOnes) {
  struct Case {
    const char* program;
    std::vector<std::string> words;
    const char* file_flag;
    const char* variable;
    const char* key;
  };
  const Case cases[] = {
      {"expanse-control-plane", {}, "--config", "EXPANSE_CONTROL_LISTEN", "listen"},
      {"expanse-data-plane", {}, "--config", "EXPANSE_DATA_LISTEN", "listen"},
      {"expanse-intelligence", {}, "--config", "EXPANSE_INTELLIGENCE_LISTEN", "listen"},
      {"expanse-up", {}, "--config", "EXPANSE_DATA_DIR", "data-dir"},
      {"expanse-daemon", {"run"}, "--settings", "EXPANSE_NODE", "node"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.program);
    const std::string key = c.key;
    const auto run = [&](const std::string& file, bool environment, bool flag) {
      EXPECT_TRUE(fs_.WriteAtomic(Path("settings"), file, 0600).ok());
      platform::ProcessSpec spec;
      spec.argv = {std::string(EXPANSE_BIN_DIR) + "/" + c.program};
      spec.argv.insert(spec.argv.end(), c.words.begin(), c.words.end());
      spec.argv.insert(spec.argv.end(), {c.file_flag, Path("settings"), "--print-config"});
      if (flag) spec.argv.push_back("--" + key + "=by-flag");
      if (environment) spec.env = {{c.variable, "by-environment"}};
      const auto result = runner_.Run(spec);
      EXPECT_TRUE(result.ok());
      return result.ok() ? *result : platform::ProcessResult{};
    };
    const std::string file = "\n" + key + " = by-file\n";
    EXPECT_THAT(run(file, true, true).out, HasSubstr(key + " = by-flag  # flag\n"));
    EXPECT_THAT(run(file, true, false).out,
                HasSubstr(key + " = by-environment  # environment " + c.variable + "\n"));
    EXPECT_THAT(run(file, false, false).out,
                HasSubstr(key + " = by-file  # file " + Path("settings") + ":2\n"));
    EXPECT_THAT(run("", false, false).out, HasSubstr("log-format = text  # default\n"));
    const auto unknown = run("log-fromat = json\n", false, false);
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_THAT(unknown.err,
                HasSubstr(Path("settings") + ":1: unknown setting 'log-fromat'; did you mean "
                                             "'log-format'?"));
  }
}

TEST_F(OperationsTest, TheDaemonShowsItsCredentialFileWithoutTheCredential) {
  ASSERT_TRUE(fs_.WriteAtomic(Path("config.json"),
                              R"({"compute_id":"c1","credential":"exp_compute_s3cr3t",
                                  "data_plane_url":"https://d.example.org",
                                  "shared_prefix":"/srv/expanse"})",
                              0640)
                  .ok());
  const auto shown =
      Run("expanse-daemon", {"run", "--config", Path("config.json"), "--print-config"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("config.compute_id = c1  # file " + Path("config.json") + "\n"));
  EXPECT_THAT(shown.out, HasSubstr("config.credential = (set)  # file "));
  EXPECT_THAT(shown.out + shown.err, Not(HasSubstr("s3cr3t")));
}

TEST_F(OperationsTest, AWatchedDaemonServesItsMetricsByTls) {
  const platform::TestAuthority authority(dir_.path());
  authority.Issue("server", "IP:127.0.0.1");
  const std::string ca = authority.certificate();
  ASSERT_TRUE(fs_.MakeDirs(Path("shared")).ok());
  const pid_t sampler = Spawn(
      "expanse-daemon", {"run", "--role", "sampler", "--shared-prefix", Path("shared"), "--node",
                         "n1", "--hook-spool", Path("hooks"), "--metrics-listen", "127.0.0.1:0",
                         "--tls-certificate", Path("server.pem"), "--tls-key", Path("server.key")});
  const std::string url = UrlOf("expanse-daemon");
  EXPECT_THAT(AwaitText(url + "/healthz", "\"part\":\"spool\"", ca), HasSubstr("\"healthy\":true"));
  const std::string metrics = AwaitText(url + "/metrics", "part=\"spool\"", ca);
  EXPECT_THAT(platform::MetricsTextCheck::Problems(metrics), IsEmpty());
  EXPECT_EQ(Get(url + "/elsewhere", ca)->status, 404);
  EXPECT_EQ(platform::MetricsTextCheck::Problems(
                fs_.Read(Path("hooks/n1/metrics.prom")).value_or("absent")),
            std::vector<std::string>{});
  ExpectEndsCleanly(sampler);
}

}  // namespace
}  // namespace expanse::apps
