// SPDX-License-Identifier: Apache-2.0
// The server programs, in their own processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program_fixture.h"
#include "apps/settings.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "rpc/channel.h"

namespace expanse::apps {
namespace {

using testing::HasSubstr;

class UpProgram : public ProgramTest {};

TEST_F(UpProgram, SaysWhatItListensOnAndEndsCleanlyOnSigterm) {
  ASSERT_TRUE(fs_.WriteAtomic(Path("ready"), "stale", 0644).ok());
  const std::string data = Path("da ta");
  const pid_t pid = Spawn("expanse-up", {"--data-dir", data, "--base-port=0", "--ready-file",
                                         Path("ready"), "--log-level", "error"});
  AwaitLine("ready", "http://");
  const std::string out = fs_.Read(Path("expanse-up.out")).value();
  for (const char* text : {"control plane       http://127.0.0.1:", "data plane          http://",
                           "intelligence plane  http://", "expanse login --control-plane"})
    EXPECT_THAT(out, HasSubstr(text));
  EXPECT_THAT(out, HasSubstr("$(cat '" + data + "/owner.key')"));
  const Secret key = ReadKeyFile(data + "/owner.key").value();
  EXPECT_THAT(out, testing::Not(HasSubstr(key.Reveal())));
  ExpectEndsCleanly(pid);
  EXPECT_FALSE(fs_.Exists(Path("ready")));
}

TEST_F(UpProgram, RefusesWordsItDoesNotKnow) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--data-dri", "x"}, {"extra"}, {"--base-port", "70000"}, {"--log-level", "loud"}}) {
    std::vector<std::string> all{"--data-dir", Path("d")};
    all.insert(all.end(), words.begin(), words.end());
    const auto result = Run("expanse-up", all);
    EXPECT_EQ(result.exit_code, 2) << words.front();
    EXPECT_FALSE(result.err.empty());
    EXPECT_FALSE(fs_.Exists(Path("d"))) << "nothing was made";
  }
}

/// The three planes as three programs, as when apart.
class PlanePrograms : public ProgramTest {};

TEST_F(PlanePrograms, WorkApartAndSessionsOutliveAnAbsentControlPlane) {
  ASSERT_EQ(Run("expanse-control-plane",
                {"bootstrap", "--data-dir", Path("c"), "--organisation", "Labs", "--owner-email",
                 "a@b.org", "--key-file", Path("owner.key"), "--plane-key-file", Path("plane.key")})
                .exit_code,
            0);
  const pid_t control =
      Spawn("expanse-control-plane", {"--data-dir", Path("c"), "--listen", "127.0.0.1:0",
                                      "--data-plane-url", "http://data.example.org"});
  const std::string control_url = UrlOf("expanse-control-plane");
  const pid_t data = Spawn("expanse-data-plane", {"--data-dir", Path("d"), "--listen",
                                                  "127.0.0.1:0", "--control-plane-url", control_url,
                                                  "--plane-key-file", Path("plane.key")});
  const std::string data_url = UrlOf("expanse-data-plane");
  const pid_t intelligence = Spawn(
      "expanse-intelligence", {"--data-dir", Path("i"), "--listen", "127.0.0.1:0",
                               "--control-plane-url", control_url, "--data-plane-url", data_url});
  const std::string intelligence_url = UrlOf("expanse-intelligence");

  const auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel control_channel(*http, control_url);
  rpc::HttpChannel data_channel(*http, data_url);
  rpc::HttpChannel intelligence_channel(*http, intelligence_url);
  control::v1::MintSessionRequest request;
  request.set_api_key(ReadKeyFile(Path("owner.key"))->Reveal());
  const auto session = control::v1::AuthServiceClient(control_channel).MintSession("", request);
  ASSERT_TRUE(session.ok()) << session.error().message();
  EXPECT_EQ(session->endpoints().data_plane_url(), "http://data.example.org");
  const data::v1::ExecutionServiceClient executions(data_channel);
  const intelligence::v1::DiagnoseServiceClient diagnose(intelligence_channel);
  const std::string& token = session->access_token();
  EXPECT_TRUE(executions.ListExecutions(token, {}).ok());
  EXPECT_NE(diagnose.GetDiagnoseRun(token, {}).error().code(), Code::kUnauthenticated);

  ExpectEndsCleanly(control);
  const auto away = executions.ListExecutions(token, {});
  EXPECT_TRUE(away.ok()) << away.error().message();
  ExpectEndsCleanly(data);
  const pid_t restarted =
      Spawn("expanse-data-plane",
            {"--data-dir", Path("d"), "--listen", "127.0.0.1:0", "--control-plane-url", control_url,
             "--plane-key-file", Path("plane.key")});
  rpc::HttpChannel restarted_channel(*http, UrlOf("expanse-data-plane"));
  const auto still = data::v1::ExecutionServiceClient(restarted_channel).ListExecutions(token, {});
  EXPECT_TRUE(still.ok()) << "keys are kept on disk: " << still.error().message();
  ExpectEndsCleanly(restarted);
  ExpectEndsCleanly(intelligence);
}

TEST_F(PlanePrograms, SayWhatIsWrongWithTheirSettings) {
  const auto no_key = Run("expanse-data-plane", {"--data-dir", Path("d"), "--listen", "127.0.0.1:0",
                                                 "--plane-key-file", Path("no")});
  EXPECT_EQ(no_key.exit_code, 1);
  EXPECT_THAT(no_key.err, HasSubstr(Path("no")));
  ASSERT_TRUE(fs_.WriteAtomic(Path("open.key"), "exp_plane_x\n", 0644).ok());
  const auto open = Run("expanse-data-plane", {"--data-dir", Path("d"), "--listen", "127.0.0.1:0",
                                               "--plane-key-file", Path("open.key")});
  EXPECT_EQ(open.exit_code, 1);
  EXPECT_THAT(open.err, HasSubstr("can be read by others"));
  EXPECT_EQ(Run("expanse-intelligence", {"--listen", "x"}).exit_code, 2);
}

/// expanse-control-plane's subcommands.
class ControlPlaneProgram : public ProgramTest {
 protected:
  platform::ProcessResult Control(std::vector<std::string> words) {
    return Run("expanse-control-plane", std::move(words));
  }
  std::vector<std::string> Bootstrap(const std::string& key_file) const {
    return {"bootstrap",     "--data-dir", Path("c"),    "--organisation", "Labs",
            "--owner-email", "a@b.org",    "--key-file", key_file};
  }
};

TEST_F(ControlPlaneProgram, BootstrapWritesTheKeyAndDoesNotShowIt) {
  const std::string file = dir_.path() + "/keys/owner.key";
  const auto made = Control(Bootstrap(file));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(fs_.Stat(file)->mode & 0777, 0600U);
  const Secret key = ReadKeyFile(file).value();
  EXPECT_THAT(made.err, testing::Not(HasSubstr(key.Reveal())));
  EXPECT_EQ(Control(Bootstrap(file)).exit_code, 1) << "never overwrites a key file";
  const auto again = Control(Bootstrap(dir_.path() + "/other.key"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  EXPECT_FALSE(fs_.Exists(dir_.path() + "/other.key"));

  const auto printed = Control({"owner-key", "--data-dir", dir_.path() + "/c", "--organisation",
                                "Labs", "--owner-email", "A@b.org", "--print-key"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out.rfind("exp_user_", 0), 0U);
  const std::string plane = dir_.path() + "/plane.key";
  ASSERT_EQ(Control({"plane-key", "--data-dir", dir_.path() + "/c", "--organisation", "Labs",
                     "--plane-key-file", plane})
                .exit_code,
            0);
  EXPECT_EQ(ReadKeyFile(plane)->Reveal().rfind("exp_plane_", 0), 0U);
}

TEST_F(ControlPlaneProgram, UsageErrorsAreTwoAndMakeNothing) {
  EXPECT_EQ(Control({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(Control({"bootstrap", "--data-dir", dir_.path() + "/c"}).exit_code, 2);
  EXPECT_EQ(Control({"bootstrap", "--data-dir", dir_.path() + "/c", "--organisation", "L",
                     "--owner-email", "a@b.org"})
                .exit_code,
            2)
      << "where should the key go?";
  EXPECT_EQ(Control({"--listen", "nonsense"}).exit_code, 2);
  EXPECT_EQ(Control({"--tls-key", "/k"}).exit_code, 2);
  EXPECT_EQ(Control({"--session-lifetime", "0s", "--listen", "127.0.0.1:0"}).exit_code, 2);
  EXPECT_EQ(Control({"--degraded-after-missed=-1", "--listen", "127.0.0.1:0"}).exit_code, 2);
  EXPECT_FALSE(fs_.Exists(dir_.path() + "/c"));
  EXPECT_EQ(Control({"--help"}).exit_code, 0);
  EXPECT_THAT(Control({"--print-config"}).out, HasSubstr("listen = 127.0.0.1:7701  # default"));
}

TEST(ParseListen, TakesAddressesOfBothFamilies) {
  EXPECT_EQ(ParseListen("127.0.0.1:7701")->port, 7701);
  EXPECT_EQ(ParseListen("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseListen(":80")->host, "0.0.0.0");
  for (const char* bad : {"", "7701", "a:", "a:-1", "a:65536", "a:b"})
    EXPECT_FALSE(ParseListen(bad).ok()) << bad;
}

}  // namespace
}  // namespace expanse::apps
