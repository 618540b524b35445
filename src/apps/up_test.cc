// SPDX-License-Identifier: Apache-2.0
// The whole deployment in one process, over its real ports; and the real program.
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/settings.h"
#include "apps/up_stack.h"
#include "expanse/control/v1/control.rpc.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "rpc/channel.h"

namespace expanse::apps {
namespace {

using testing::HasSubstr;

class UpStackTest : public testing::Test {
 protected:
  UpOptions Options() const {
    UpOptions options;
    options.data_dir = dir_.path() + "/data";
    options.base_port = 0;
    return options;
  }
  std::unique_ptr<UpStack> Start() {
    auto stack = UpStack::Start(Options());
    EXPECT_TRUE(stack.ok()) << stack.error().message();
    return stack.ok() ? std::move(stack).value() : nullptr;
  }
  Result<control::v1::MintSessionResponse> SignIn(const UpStack& stack) {
    EXPANSE_TRY(const Secret key, ReadKeyFile(stack.owner_key_file()));
    rpc::HttpChannel channel(*http_, stack.urls().control_plane);
    control::v1::MintSessionRequest request;
    request.set_api_key(key.Reveal());
    return control::v1::AuthServiceClient(channel).MintSession("", request);
  }
  std::string Get(const std::string& url) {
    platform::HttpCall call;
    call.method = "GET";
    call.url = url;
    const auto response = http_->Do(call);
    return response.ok() ? response->body : response.error().message();
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  std::unique_ptr<platform::HttpClient> http_ = platform::NewCurlHttpClient();
};

TEST_F(UpStackTest, FirstStartMakesAnOwnerWhoCanSignInAndIsToldWhereThePlanesAre) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(stack->CheckHealth().ok());
  for (const char* file : {"/data/owner.key", "/data/plane.key", "/data/control/control.db"})
    EXPECT_EQ(fs_.Stat(dir_.path() + file)->mode & 0777, 0600U) << file;
  const auto session = SignIn(*stack);
  ASSERT_TRUE(session.ok()) << session.error().message();
  EXPECT_EQ(session->identity().organisation(), "local");
  EXPECT_EQ(session->identity().role(), "Owner");
  EXPECT_EQ(session->endpoints().control_plane_url(), stack->urls().control_plane);
  EXPECT_EQ(session->endpoints().data_plane_url(), stack->urls().data_plane);
  EXPECT_EQ(session->endpoints().intelligence_url(), stack->urls().intelligence);
}

TEST_F(UpStackTest, EveryPlaneHasHealthAndMetrics) {
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  const auto& urls = stack->urls();
  for (const auto& url : {urls.control_plane, urls.data_plane, urls.intelligence}) {
    EXPECT_EQ(Get(url + "/healthz"), "ok\n") << url;
    EXPECT_THAT(Get(url + "/metrics"),
                HasSubstr("expanse_requests_total{code=\"200\",method=\"/healthz\""));
    Get(url + "/invented/by/the/caller");
    EXPECT_THAT(Get(url + "/metrics"), HasSubstr("code=\"501\",method=\"other\""));
    EXPECT_THAT(Get(url + "/metrics"), testing::Not(HasSubstr("invented")));
  }
}

TEST_F(UpStackTest, LaterStartsKeepTheOrganisationAndItsKeys) {
  std::string organisation;
  std::string key;
  {
    const auto stack = Start();
    ASSERT_NE(stack, nullptr);
    organisation = SignIn(*stack)->identity().organisation_id();
    key = fs_.Read(stack->owner_key_file()).value();
  }
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(fs_.Read(stack->owner_key_file()).value(), key);
  EXPECT_EQ(SignIn(*stack)->identity().organisation_id(), organisation);
}

TEST_F(UpStackTest, LostOrDeadKeyFilesAreReplaced) {
  { ASSERT_NE(Start(), nullptr); }
  ASSERT_TRUE(fs_.Remove(dir_.path() + "/data/owner.key").ok());
  const Secret foreign("exp_plane_" + std::string(43, 'A'));
  ASSERT_TRUE(WriteKeyFile(dir_.path() + "/data/plane.key", foreign).ok());
  const auto stack = Start();
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(SignIn(*stack).ok());
  EXPECT_NE(ReadKeyFile(dir_.path() + "/data/plane.key")->Reveal(), foreign.Reveal());
}

TEST_F(UpStackTest, KeyFileThatOthersCanReadIsRefused) {
  { ASSERT_NE(Start(), nullptr); }
  ASSERT_TRUE(fs_.Chmod(dir_.path() + "/data/owner.key", 0644).ok());
  const auto stack = UpStack::Start(Options());
  ASSERT_FALSE(stack.ok());
  EXPECT_THAT(stack.error().message(), HasSubstr("can be read by others"));
}

TEST_F(UpStackTest, SecondOnTheSameDataDirectoryIsRefused) {
  const auto stack = Start();
  const auto second = UpStack::Start(Options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(second.error().message(), HasSubstr("running on this data directory already"));
}

TEST_F(UpStackTest, RecordsWhatTheControlPlaneReceives) {
  UpOptions options = Options();
  options.record_received_by_control = dir_.path() + "/received";
  const auto stack = UpStack::Start(options);
  ASSERT_TRUE(stack.ok()) << stack.error().message();
  ASSERT_TRUE(SignIn(**stack).ok());
  const std::string received = fs_.Read(dir_.path() + "/received").value();
  EXPECT_THAT(received, HasSubstr("POST /expanse.control.v1.AuthService/MintSession\n"));
  EXPECT_EQ(fs_.Stat(dir_.path() + "/received")->mode & 0777, 0600U);
}

/// The program itself, in its own process.
class UpProgram : public testing::Test {
 protected:
  pid_t Spawn(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(EXPANSE_BIN_DIR) + "/expanse-up");
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string out = dir_.path() + "/out";
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  /// Polls, since the other side is another process: up to 20 s.
  bool Appears(const std::string& path) {
    for (int i = 0; i < 2000 && !fs_.Exists(path); ++i) std::this_thread::sleep_for(Millis(10));
    return fs_.Exists(path);
  }

  platform::TempDir dir_;
  platform::Fs fs_;
};

TEST_F(UpProgram, SaysWhatItListensOnAndEndsCleanlyOnSigterm) {
  const std::string ready = dir_.path() + "/ready";
  ASSERT_TRUE(fs_.WriteAtomic(ready, "stale", 0644).ok());
  const std::string data = dir_.path() + "/da ta";
  const pid_t pid =
      Spawn({"--data-dir", data, "--base-port=0", "--ready-file", ready, "--log-level", "error"});
  for (int i = 0; i < 2000 && fs_.Read(ready).value_or("stale") == "stale"; ++i)
    std::this_thread::sleep_for(Millis(10));
  ASSERT_TRUE(Appears(ready));
  const std::string out = fs_.Read(dir_.path() + "/out").value();
  for (const char* text : {"control plane       http://127.0.0.1:", "data plane          http://",
                           "intelligence plane  http://", "expanse login --control-plane"})
    EXPECT_THAT(out, HasSubstr(text));
  EXPECT_THAT(out, HasSubstr("$(cat '" + data + "/owner.key')"));
  const Secret key = ReadKeyFile(data + "/owner.key").value();
  EXPECT_THAT(out, testing::Not(HasSubstr(key.Reveal())));
  ASSERT_EQ(::kill(pid, SIGTERM), 0);
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(fs_.Exists(ready));
}

TEST_F(UpProgram, RefusesWordsItDoesNotKnow) {
  platform::SystemProcessRunner runner;
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--data-dri", "x"}, {"extra"}, {"--base-port", "70000"}, {"--log-level", "loud"}}) {
    platform::ProcessSpec spec;
    spec.argv = {std::string(EXPANSE_BIN_DIR) + "/expanse-up", "--data-dir", dir_.path() + "/d"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    const auto result = runner.Run(spec);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(result->exit_code, 2) << words.front();
    EXPECT_FALSE(result->err.empty());
    EXPECT_FALSE(fs_.Exists(dir_.path() + "/d")) << "nothing was made";
  }
}

/// expanse-control-plane's subcommands.
class ControlPlaneProgram : public testing::Test {
 protected:
  platform::ProcessResult Run(std::vector<std::string> words) {
    platform::ProcessSpec spec;
    spec.argv = {std::string(EXPANSE_BIN_DIR) + "/expanse-control-plane"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    auto result = runner_.Run(spec);
    EXPECT_TRUE(result.ok()) << result.error().message();
    return result.ok() ? std::move(result).value() : platform::ProcessResult{};
  }
  std::vector<std::string> Bootstrap(const std::string& key_file) const {
    return {"bootstrap",     "--data-dir", dir_.path() + "/c", "--organisation", "Labs",
            "--owner-email", "a@b.org",    "--key-file",       key_file};
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::SystemProcessRunner runner_;
};

TEST_F(ControlPlaneProgram, BootstrapWritesTheKeyAndDoesNotShowIt) {
  const std::string file = dir_.path() + "/keys/owner.key";
  const auto made = Run(Bootstrap(file));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(fs_.Stat(file)->mode & 0777, 0600U);
  const Secret key = ReadKeyFile(file).value();
  EXPECT_THAT(made.err, testing::Not(HasSubstr(key.Reveal())));
  EXPECT_EQ(Run(Bootstrap(file)).exit_code, 1) << "never overwrites a key file";
  const auto again = Run(Bootstrap(dir_.path() + "/other.key"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  EXPECT_FALSE(fs_.Exists(dir_.path() + "/other.key"));

  const auto printed = Run({"owner-key", "--data-dir", dir_.path() + "/c", "--organisation", "Labs",
                            "--owner-email", "A@b.org", "--print-key"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out.rfind("exp_user_", 0), 0U);
  const std::string plane = dir_.path() + "/plane.key";
  ASSERT_EQ(Run({"plane-key", "--data-dir", dir_.path() + "/c", "--organisation", "Labs",
                 "--plane-key-file", plane})
                .exit_code,
            0);
  EXPECT_EQ(ReadKeyFile(plane)->Reveal().rfind("exp_plane_", 0), 0U);
}

TEST_F(ControlPlaneProgram, UsageErrorsAreTwoAndMakeNothing) {
  EXPECT_EQ(Run({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(Run({"bootstrap", "--data-dir", dir_.path() + "/c"}).exit_code, 2);
  EXPECT_EQ(Run({"bootstrap", "--data-dir", dir_.path() + "/c", "--organisation", "L",
                 "--owner-email", "a@b.org"})
                .exit_code,
            2)
      << "where should the key go?";
  EXPECT_EQ(Run({"--listen", "nonsense"}).exit_code, 2);
  EXPECT_EQ(Run({"--tls-key", "/k"}).exit_code, 2);
  EXPECT_FALSE(fs_.Exists(dir_.path() + "/c"));
  EXPECT_EQ(Run({"--help"}).exit_code, 0);
  EXPECT_THAT(Run({"--print-config"}).out, HasSubstr("listen = 127.0.0.1:7701  # default"));
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
