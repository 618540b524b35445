// SPDX-License-Identifier: Apache-2.0
// Installations on a recorded machine: a file tree below a temporary directory, a scontrol that
// answers from its slurm.conf, a systemctl that keeps notes, a data plane that counts exchanges.
#include "install/installer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "expanse/data/v1/daemon.pb.h"
#include "expanse/data/v1/data.pb.h"
#include "install/slurm_conf.h"
#include "install/units.h"
#include "rpc/json.h"

namespace expanse::install {
namespace {

namespace stdfs = std::filesystem;

constexpr char kConf[] = "/etc/slurm/slurm.conf";
constexpr char kHookDir[] = "/var/lib/expanse/hooks";
constexpr char kConfig[] = "/var/lib/slurm/.expanse/config.json";

/// scontrol and systemctl of the recorded machine.
class FakeTools final : public platform::ProcessRunner {
 public:
  explicit FakeTools(const platform::Fs& fs) : fs_(fs) { Reload(); }
  Result<platform::ProcessResult> Run(const platform::ProcessSpec& spec) override {
    calls.push_back(Join(spec.argv, " "));
    for (const auto& word : spec.argv) seen_bytes += word + "\n";
    for (const auto& [key, value] : spec.env) seen_bytes += key + "=" + value + "\n";
    platform::ProcessResult result;
    const std::string& last = calls.back();
    if (std::find(failing.begin(), failing.end(), last) != failing.end()) {
      result.exit_code = 1;
      result.err = "made to fail";
    } else if (last == "scontrol show config") {
      result.out = ShowConfig();
    } else if (last == "scontrol show node") {
      for (const auto& [name, host] : nodes)
        result.out += "NodeName=" + name + " Arch=x86_64 \n   NodeAddr=x NodeHostName=" + host +
                      " Version=22.05\n\n";
    } else if (last == "scontrol reconfigure") {
      Reload();
    } else if (last == "systemctl restart expanse-daemon.service" && on_start) {
      on_start();
    }
    return result;
  }
  void Reload() { in_force_ = ParseSlurmConf(fs_.Read(kConf).value_or("")); }
  int Count(const std::string& call) const {
    return static_cast<int>(std::count(calls.begin(), calls.end(), call));
  }

  std::vector<std::string> calls;
  std::vector<std::string> failing;
  std::vector<std::pair<std::string, std::string>> nodes{{"n1", "head"}};
  std::function<void()> on_start;
  std::string seen_bytes;     // everything that stood in an argv or environment
  std::string sticky_prolog;  // SLURM does not take the change

 private:
  std::string ShowConfig() const {
    std::string out = "Configuration data as of 2026-11-30T21:14:33\n";
    for (const auto key : kHookKeys) {
      std::string value = Join(in_force_.Values(key), ",");
      if (key == "Prolog" && !sticky_prolog.empty()) value = sticky_prolog;
      out += std::string(key) + "   = " + (value.empty() ? "(null)" : value) + "\n";
    }
    return out + "ClusterName             = lab\nSLURM_CONF              = " + kConf +
           "\nSLURM_VERSION           = 22.05.8\n";
  }
  const platform::Fs& fs_;
  SlurmConf in_force_;
};

/// The data plane's enrolment.
class FakePlane final : public rpc::Channel {
 public:
  explicit FakePlane(FakePlane* counts = nullptr) : counts_(counts == nullptr ? this : counts) {}
  Status Call(std::string_view path, std::string_view credential,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline) override {
    if (path.ends_with("/ExchangeInstallToken")) {
      ++counts_->exchanges;
      const auto& r = static_cast<const data::v1::ExchangeInstallTokenRequest&>(request);
      counts_->identity = r.scheduler_identity();
      if (r.install_token() != "exp_install_good")
        return Error(Code::kUnauthenticated, "the install token is not known");
      auto* answer = static_cast<data::v1::ExchangeInstallTokenResponse*>(response);
      answer->set_compute_id("c-1");
      answer->set_compute_name("lab");
      answer->set_organisation("acme");
      answer->set_credential("exp_compute_secret");
      return {};
    }
    if (path.ends_with("/Deprovision")) {
      ++counts_->deprovisions;
      counts_->bearer = std::string(credential);
      return counts_->refuse_deprovision
                 ? Status(Error(Code::kUnavailable, "no connection to the data plane"))
                 : Status();
    }
    return Error(Code::kUnimplemented, std::string(path));
  }
  int exchanges = 0;
  int deprovisions = 0;
  bool refuse_deprovision = false;
  std::string identity;
  std::string bearer;

 private:
  FakePlane* counts_;
};

class InstallerTest : public ::testing::Test {
 protected:
  InstallerTest() : fs_(dir_.path() + "/root"), clock_(FromUnixMillis(1'800'000'000'000)) {
    const std::string me = std::to_string(::getuid()) + ":" + std::to_string(::getgid());
    Write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nslurm:x:" + me + "::/var/lib/slurm:/bin/sh\n");
    Write("/proc/sys/kernel/hostname", "head\n");
    Write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:50 / /srv rw - nfs4 server:/srv rw\n");
    Write("/opt/release/expanse-daemon",
          "\x7f"
          "ELF daemon");
    Write("/opt/release/expanse-hook",
          "\x7f"
          "ELF hook");
    Write(kConf, kBefore);
    stdfs::create_directories(fs_.Host("/srv"));
    stdfs::create_directories(fs_.Host("/var/lock"));
    stdfs::create_directories(fs_.Host("/var/lib/slurm"));
    stdfs::create_directories(fs_.Host("/etc/systemd/system"));
    tools_ = std::make_unique<FakeTools>(fs_);
    options_.shared_prefix = "/srv/expanse";
    options_.daemon_binary = "/opt/release/expanse-daemon";
    options_.control_plane = "https://control.example";
    options_.data_plane = "https://data.example";
    options_.patch_slurm_conf = true;
    options_.systemd = false;
    uninstall_.shared_prefix = "/srv/expanse";
  }
  void Write(const std::string& path, const std::string& bytes) {
    const stdfs::path host = fs_.Host(path);
    stdfs::create_directories(host.parent_path());
    std::ofstream(host) << bytes;
  }
  std::string Read(const std::string& path) { return fs_.Read(path).value_or("(none)"); }
  /// Every path below the root with its content: what "left nothing behind" means.
  std::map<std::string, std::string> Snapshot() {
    std::map<std::string, std::string> all;
    for (const auto& entry : stdfs::recursive_directory_iterator(fs_.Host("/"))) {
      const std::string path = entry.path().string().substr(fs_.root().size());
      if (path.starts_with("/var/lock")) continue;  // the lock file is left behind on purpose
      all[path] = entry.is_regular_file() ? fs_.Read(path).value_or("?") : "dir";
    }
    return all;
  }
  Machine MakeMachine() {
    Machine machine{.fs = fs_, .runner = *tools_, .clock = clock_};
    machine.environment = environment_;
    machine.program_directory = "/opt/release";
    machine.home = "/home/admin";
    machine.effective_uid = ::getuid();
    machine.open_channel = [this](const std::string& url) {
      dialled_ = url;
      return std::make_unique<FakePlane>(&plane_);
    };
    machine.install_token = [this]() -> Result<Secret> {
      ++token_asked_;
      return Secret(token_);
    };
    machine.print = [this](const std::string& line) {
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      printed_ += line + "\n";
    };
    machine.sleep = [this](Millis d) { clock_.Advance(d); };
    return machine;
  }
  Result<InstallReport> DoInstall() {
    Machine machine = MakeMachine();
    return Install(options_, machine);
  }
  Status DoUninstall() {
    Machine machine = MakeMachine();
    return Uninstall(uninstall_, machine);
  }

  static constexpr char kBefore[] =
      "ClusterName=lab\nProlog=/site/prolog.sh\nNodeName=n1 NodeHostname=head\n";
  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_;
  std::unique_ptr<FakeTools> tools_;
  FakePlane plane_;
  InstallOptions options_;
  UninstallOptions uninstall_;
  std::map<std::string, std::string> environment_;
  std::string token_ = "exp_install_good";
  std::string dialled_;
  std::string printed_;
  int token_asked_ = 0;
};

TEST_F(InstallerTest, AFreshControllerHasConfigProgramsHooksAndWiring) {
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->compute_id, "c-1");
  EXPECT_TRUE(report->hooks_wired);
  EXPECT_EQ(dialled_, "https://data.example");
  EXPECT_EQ(plane_.identity, "lab");

  data::v1::DaemonConfig config;
  ASSERT_TRUE(rpc::FromJson(Read(kConfig), &config).ok());
  EXPECT_EQ(config.credential(), "exp_compute_secret");
  EXPECT_EQ(config.shared_prefix(), "/srv/expanse");
  EXPECT_EQ(config.slurm_conf(), kConf);
  EXPECT_EQ(fs_.Stat(kConfig)->mode & 07777, 0640u);
  EXPECT_EQ(fs_.Stat("/var/lib/slurm/.expanse")->mode & 07777, 0750u);

  EXPECT_EQ(Read("/srv/expanse/bin/expanse-daemon"),
            "\x7f"
            "ELF daemon");
  EXPECT_EQ(fs_.Stat("/srv/expanse/bin/expanse-daemon")->mode & 07777, 0755u);
  EXPECT_TRUE(fs_.Exists("/srv/expanse/.expanse-preflight-sentinel"));
  data::v1::SamplerConfig sampler;
  ASSERT_TRUE(rpc::FromJson(Read("/srv/expanse/etc/sampler.json"), &sampler).ok());
  EXPECT_EQ(sampler.hook_spool(), "/var/lib/expanse/hook-spool");
  for (const auto* hook : {"prolog", "epilog", "task_prolog", "task_epilog"})
    EXPECT_EQ(fs_.Stat(std::string(kHookDir) + "/" + hook)->mode & 07777, 0755u) << hook;
  EXPECT_EQ(Read(std::string(kHookDir) + "/hook.conf"),
            "# Written by `expanse compute install`. Read by the hook programs in this directory.\n"
            "spool = /var/lib/expanse/hook-spool\nchain.prolog = /site/prolog.sh\n");
  EXPECT_NE(Read(kConf).find("Prolog=/var/lib/expanse/hooks/prolog\n"), std::string::npos);
  EXPECT_EQ(Read(std::string(kConf) + ".before-expanse"), kBefore);
  EXPECT_EQ(tools_->Count("scontrol reconfigure"), 1);
  EXPECT_NE(printed_.find("ExecStart=/srv/expanse/bin/expanse-daemon run --role controller"),
            std::string::npos)
      << "--systemd=false prints the unit";
}

TEST_F(InstallerTest, TheTokenIsNowhereButInTheExchange) {
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_EQ(tools_->seen_bytes.find("exp_install_"), std::string::npos);
  EXPECT_EQ(printed_.find("exp_install_"), std::string::npos);
  EXPECT_EQ(printed_.find("exp_compute_"), std::string::npos);
  for (const auto& [path, bytes] : Snapshot()) {
    EXPECT_EQ(bytes.find("exp_install_"), std::string::npos) << path;
    if (path != kConfig) {
      EXPECT_EQ(bytes.find("exp_compute_"), std::string::npos) << path;
    }
  }
}

TEST_F(InstallerTest, AFailedCheckAsksForNoTokenAndChangesNothing) {
  struct Case {
    const char* name;
    std::function<void()> break_it;
    const char* says;
  };
  const InstallOptions good = options_;
  const std::vector<Case> cases = {
      {"no account", [this] { options_.user = "nobody-here"; }, "does not exist"},
      {"no prefix", [this] { options_.shared_prefix = ""; }, "--shared-prefix"},
      {"relative prefix", [this] { options_.shared_prefix = "srv"; }, "absolute"},
      {"dotted prefix", [this] { options_.shared_prefix = "/srv/../etc"; }, "absolute"},
      {"no data plane", [this] { options_.data_plane = ""; }, "--data-plane"},
      {"bad url", [this] { options_.control_plane = "control.example"; }, "http"},
      {"no daemon", [this] { options_.daemon_binary = "/opt/none"; }, "/opt/none"},
      {"not a program", [this] { options_.daemon_binary = "/etc/passwd"; }, "not a Linux program"},
      {"both sources", [this] { options_.daemon_version = "v1"; }, "exclude"},
      {"config on the share", [this] { options_.config = "/srv/expanse/config.json"; }, "shared"},
      {"hooks on the share", [this] { environment_["EXPANSE_HOOK_DIR"] = "/srv/expanse/hooks"; },
       "node-local"},
      {"hooks on nfs", [this] { environment_["EXPANSE_HOOK_DIR"] = "/srv/hooks"; }, "nfs4"},
      {"foreign hooks without leave", [this] { options_.patch_slurm_conf = false; },
       "- Prolog=/site/prolog.sh"},
      {"scontrol fails", [this] { tools_->failing = {"scontrol show config"}; }, "made to fail"},
      {"prefix is a file", [this] { options_.shared_prefix = "/etc/passwd"; }, "/etc/passwd"},
      {"reinstall without identity", [this] { options_.reinstall = true; }, "saved identity"},
  };
  const auto before = Snapshot();
  for (const auto& c : cases) {
    options_ = good;
    environment_.clear();
    tools_->failing.clear();
    c.break_it();
    const auto report = DoInstall();
    ASSERT_FALSE(report.ok()) << c.name;
    EXPECT_NE(report.error().message().find(c.says), std::string::npos)
        << c.name << ": " << report.error().message();
    EXPECT_EQ(token_asked_, 0) << c.name;
    EXPECT_EQ(plane_.exchanges, 0) << c.name;
    EXPECT_EQ(Snapshot(), before) << c.name;
  }
}

TEST_F(InstallerTest, AnExistingConfigStopsEverythingAndIsNeverOverridden) {
  Write(kConfig, "{\"compute_id\":\"old\"}");
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Code::kAlreadyExists);
  EXPECT_NE(report.error().message().find("existing daemon config found"), std::string::npos);
  EXPECT_EQ(token_asked_, 0);
  EXPECT_EQ(Read(kConfig), "{\"compute_id\":\"old\"}");
}

TEST_F(InstallerTest, ARefusedTokenLeavesNothingBehind) {
  token_ = "exp_install_wrong";
  const auto before = Snapshot();
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(InstallerTest, AFailureWhileApplyingTakesEverythingBackAndReconfiguresAgain) {
  const auto before = Snapshot();
  tools_->sticky_prolog = "/elsewhere";  // SLURM reads another file than the one we patched
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("everything was taken back"), std::string::npos);
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(tools_->Count("scontrol reconfigure"), 2) << "the second makes SLURM forget our hooks";
}

TEST_F(InstallerTest, HookFilesStayWhenSlurmCouldNotBeToldToForgetThem) {
  tools_->failing = {"scontrol reconfigure"};
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(Read(kConf), kBefore);
  for (const auto* file : {"prolog", "epilog", "task_prolog", "task_epilog", "hook.conf"})
    EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/" + file)) << file;
  EXPECT_TRUE(fs_.Exists("/var/lib/expanse/hook-spool"));
  EXPECT_FALSE(fs_.Exists(kConfig)) << "what no hook needs is taken back";
  EXPECT_NE(report.error().message().find("left in place"), std::string::npos)
      << report.error().message();
}

TEST_F(InstallerTest, HookFilesStayWhileSlurmUsesThemAfterARollback) {
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  options_.systemd = true;
  tools_->failing = {"systemctl restart expanse-daemon.service"};
  tools_->sticky_prolog = std::string(kHookDir) + "/prolog";
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/prolog"));
  EXPECT_NE(report.error().message().find("SLURM still uses Prolog="), std::string::npos)
      << report.error().message();
}

TEST_F(InstallerTest, ASamplerThatDoesNotStartLeavesTheHookFilesOfAWiredNode) {
  ASSERT_TRUE(DoInstall().ok());
  stdfs::remove_all(fs_.Host(kHookDir));
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  Write("/proc/sys/kernel/hostname", "worker2\n");
  options_.role = Role::kSampler;
  options_.systemd = true;
  tools_->failing = {"systemctl restart expanse-sampler.service"};
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/prolog"));
  EXPECT_FALSE(fs_.Exists("/srv/expanse/etc/nodes/worker2"));
  EXPECT_FALSE(fs_.Exists("/etc/systemd/system/expanse-sampler.service"));
}

TEST_F(InstallerTest, AServiceThatDoesNotStartTakesEverythingBack) {
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  options_.systemd = true;
  tools_->failing = {"systemctl restart expanse-daemon.service"};
  const auto before = Snapshot();
  ASSERT_FALSE(DoInstall().ok());
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(tools_->Count("systemctl disable --now expanse-daemon.service"), 1);
}

TEST_F(InstallerTest, WithSystemdItWaitsForAnAcceptedHeartbeat) {
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  options_.systemd = true;
  tools_->on_start = [this] {
    Write("/var/lib/slurm/.expanse/state/accepted", "");
    const int64_t s = ToUnixMillis(clock_.Now()) / 1000;
    const timespec times[2] = {{s, 0}, {s, 0}};
    ::utimensat(AT_FDCWD, fs_.Host("/var/lib/slurm/.expanse/state/accepted").c_str(), times, 0);
  };
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(report->heartbeat_seen);
  EXPECT_NE(Read("/etc/systemd/system/expanse-daemon.service").find("CAP_SYS_PTRACE"),
            std::string::npos);
}

TEST_F(InstallerTest, EventsLiveInMemoryWhereSystemdMakesTheFolderAtBoot) {
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  stdfs::create_directories(fs_.Host("/etc/tmpfiles.d"));
  Write("/proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n25 22 0:24 / /run rw - tmpfs tmpfs rw\n");
  const auto before = Snapshot();
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_TRUE(fs_.Exists("/run/expanse/hook-spool"));
  EXPECT_NE(Read(std::string(kHookDir) + "/hook.conf").find("spool = /run/expanse/hook-spool"),
            std::string::npos);
  EXPECT_NE(Read("/etc/tmpfiles.d/expanse.conf").find("d /run/expanse/hook-spool 0755 slurm"),
            std::string::npos);
  ASSERT_TRUE(DoUninstall().ok());
  auto after = Snapshot();
  after.erase("/var/lib/expanse");
  EXPECT_EQ(after, before);
}

TEST_F(InstallerTest, WithoutAHeartbeatAFreshInstallIsTakenBack) {
  stdfs::create_directories(fs_.Host("/run/systemd/system"));
  options_.systemd = true;
  const auto before = Snapshot();
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(InstallerTest, ReinstallKeepsTheIdentityIgnoresTheTokenAndTheChainedHooksStay) {
  ASSERT_TRUE(DoInstall().ok());
  const std::string identity = Read(kConfig);
  const std::string conf = Read(kConf);
  Write("/opt/release/expanse-daemon",
        "\x7f"
        "ELF newer daemon");
  options_.reinstall = true;
  options_.data_plane = "";
  options_.control_plane = "";
  token_asked_ = 0;
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(token_asked_, 0);
  EXPECT_EQ(plane_.exchanges, 1);
  data::v1::DaemonConfig before;
  data::v1::DaemonConfig after;
  ASSERT_TRUE(rpc::FromJson(identity, &before).ok());
  ASSERT_TRUE(rpc::FromJson(Read(kConfig), &after).ok());
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString());
  EXPECT_EQ(Read("/srv/expanse/bin/expanse-daemon"),
            "\x7f"
            "ELF newer daemon");
  EXPECT_EQ(Read(kConf), conf);
  EXPECT_NE(Read(std::string(kHookDir) + "/hook.conf").find("chain.prolog = /site/prolog.sh"),
            std::string::npos);
}

TEST_F(InstallerTest, NodesWithoutHookFilesAreNotDrained) {
  tools_->nodes = {{"n1", "head"}, {"n2", "worker2"}};
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_FALSE(report->hooks_wired);
  EXPECT_EQ(Read(kConf), kBefore);
  EXPECT_EQ(tools_->Count("scontrol reconfigure"), 0);
  EXPECT_NE(printed_.find("worker2"), std::string::npos);
  // The worker is installed, then the controller once more.
  Write("/srv/expanse/etc/nodes/worker2", "hooks\n");
  options_.reinstall = true;
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_NE(Read(kConf).find("hooks/prolog"), std::string::npos);
}

TEST_F(InstallerTest, WithoutLeaveToPatchAndNoForeignHooksTheLinesArePrinted) {
  Write(kConf, "ClusterName=lab\n");
  tools_->Reload();
  options_.patch_slurm_conf = false;
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_FALSE(report->hooks_wired);
  EXPECT_EQ(Read(kConf), "ClusterName=lab\n");
  EXPECT_NE(printed_.find("+ TaskEpilog=/var/lib/expanse/hooks/task_epilog"), std::string::npos);
}

TEST_F(InstallerTest, AHookSetInAnIncludedFileIsNamed) {
  Write(kConf, "ClusterName=lab\nInclude /etc/slurm/hooks.conf\n");
  tools_->Reload();
  tools_->sticky_prolog = "/site/prolog.sh";
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("included file"), std::string::npos);
  EXPECT_EQ(token_asked_, 0);
}

TEST_F(InstallerTest, WithoutReconfigureTheCommandIsPrinted) {
  options_.reconfigure = false;
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_EQ(tools_->Count("scontrol reconfigure"), 0);
  EXPECT_NE(printed_.find("scontrol reconfigure"), std::string::npos);
}

TEST_F(InstallerTest, WithoutTheProfilingAgentTaskPrologIsLeftAlone) {
  options_.profiling_agent = false;
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_EQ(Read(kConf).find("TaskProlog"), std::string::npos);
}

TEST_F(InstallerTest, TheServiceEnvironmentKeepsItsEntries) {
  Write("/etc/expanse/daemon.env", "EXPANSE_DCGM_HOST=gpu1:5555\nHTTPS_PROXY=http://old:3128");
  environment_["HTTPS_PROXY"] = "http://new:3128";
  environment_["NO_PROXY"] = "localhost";
  ASSERT_TRUE(DoInstall().ok());
  EXPECT_EQ(Read("/etc/expanse/daemon.env"),
            "EXPANSE_DCGM_HOST=gpu1:5555\nHTTPS_PROXY=http://old:3128\nNO_PROXY=localhost\n");
}

TEST_F(InstallerTest, ASecondInstallerIsRefusedWhileOneRuns) {
  const std::string path = fs_.Host("/var/lock/expanse-install.lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("open install lock"), std::string::npos);
  ::close(fd);
  EXPECT_TRUE(DoInstall().ok()) << "a lock file that nobody holds means nothing";
}

TEST_F(InstallerTest, UninstallGivesTheMachineBack) {
  Write("/etc/expanse/daemon.env", "A=1\n");
  const auto before = Snapshot();
  ASSERT_TRUE(DoInstall().ok());
  const Status removed = DoUninstall();
  ASSERT_TRUE(removed.ok()) << removed.error().message();
  EXPECT_EQ(Read(kConf), kBefore);
  EXPECT_EQ(plane_.deprovisions, 1);
  EXPECT_EQ(plane_.bearer, "exp_compute_secret");
  auto after = Snapshot();
  // /var/lib/expanse is the installer's, and may hold what other roles put there.
  after.erase("/var/lib/expanse");
  EXPECT_EQ(after, before);
}

TEST_F(InstallerTest, UninstallKeepsTheHookFilesWhileSlurmUsesThem) {
  ASSERT_TRUE(DoInstall().ok());
  tools_->sticky_prolog = std::string(kHookDir) + "/prolog";
  const Status removed = DoUninstall();
  ASSERT_FALSE(removed.ok());
  EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/prolog"));
  EXPECT_TRUE(fs_.Exists(kConfig)) << "the identity stays as well: nothing was deprovisioned";
  EXPECT_EQ(plane_.deprovisions, 0);
}

TEST_F(InstallerTest, UninstallUnwiresBeforeItRemoves) {
  ASSERT_TRUE(DoInstall().ok());
  plane_.refuse_deprovision = true;
  ASSERT_FALSE(DoUninstall().ok());
  EXPECT_EQ(Read(kConf), kBefore) << "unwired first";
  EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/prolog")) << "removed last";
  plane_.refuse_deprovision = false;
  EXPECT_TRUE(DoUninstall().ok()) << "goes on where it stopped";
  EXPECT_FALSE(fs_.Exists(std::string(kHookDir) + "/prolog"));
}

TEST_F(InstallerTest, UninstallWithKeepIdentityKeepsTheConfig) {
  ASSERT_TRUE(DoInstall().ok());
  uninstall_.keep_identity = true;
  ASSERT_TRUE(DoUninstall().ok());
  EXPECT_TRUE(fs_.Exists(kConfig));
  EXPECT_EQ(plane_.deprovisions, 0);
}

TEST_F(InstallerTest, SamplersGoFirst) {
  ASSERT_TRUE(DoInstall().ok());
  Write("/srv/expanse/etc/nodes/worker2", "hooks\n");
  const Status removed = DoUninstall();
  ASSERT_FALSE(removed.ok());
  EXPECT_NE(removed.error().message().find("worker2"), std::string::npos);
  EXPECT_NE(Read(kConf), kBefore);
}

TEST_F(InstallerTest, ASamplerNeedsNoTokenAndRegistersItsHost) {
  ASSERT_TRUE(DoInstall().ok());
  token_asked_ = 0;
  // Another host: its own root, the same shared prefix.
  stdfs::remove_all(fs_.Host(kHookDir));
  Write("/proc/sys/kernel/hostname", "worker2\n");
  options_.role = Role::kSampler;
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(token_asked_, 0);
  EXPECT_TRUE(fs_.Exists("/srv/expanse/etc/nodes/worker2"));
  EXPECT_EQ(fs_.Stat(std::string(kHookDir) + "/prolog")->mode & 07777, 0755u);
  EXPECT_NE(Read(std::string(kHookDir) + "/hook.conf").find("chain.prolog = /site/prolog.sh"),
            std::string::npos)
      << "the site's own hooks run on workers too";
  EXPECT_NE(printed_.find("run --role sampler --shared-prefix /srv/expanse"), std::string::npos);
  // While slurm.conf is wired its hook files stay, because SLURM would drain the node.
  uninstall_.role = Role::kSampler;
  ASSERT_TRUE(DoUninstall().ok());
  EXPECT_FALSE(fs_.Exists("/srv/expanse/etc/nodes/worker2"));
  EXPECT_TRUE(fs_.Exists(std::string(kHookDir) + "/prolog"));
}

TEST_F(InstallerTest, ASamplerOnAnotherMountIsRefused) {
  options_.role = Role::kSampler;
  const auto report = DoInstall();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find(".expanse-preflight-sentinel"), std::string::npos);
}

TEST_F(InstallerTest, WriteConfigOnlyTouchesNothingElse) {
  options_.write_config_only = true;
  const auto before = Snapshot();
  ASSERT_TRUE(DoInstall().ok());
  auto after = Snapshot();
  EXPECT_EQ(after.erase(kConfig), 1u);
  after.erase("/var/lib/slurm/.expanse");
  after.erase("/var/lib/slurm/.expanse/state");
  EXPECT_EQ(after, before);
  EXPECT_EQ(fs_.Stat(kConfig)->mode & 07777, 0640u);
}

TEST_F(InstallerTest, AnUnsetTypeWritesThePersonsOwnConfig) {
  options_.type = "";
  stdfs::create_directories(fs_.Host("/home/admin"));
  const auto report = DoInstall();
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->config_path, "/home/admin/.expanse/config.json");
  EXPECT_EQ(fs_.Stat("/home/admin/.expanse/config.json")->mode & 07777, 0600u);
}

}  // namespace
}  // namespace expanse::install
