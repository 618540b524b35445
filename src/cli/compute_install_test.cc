// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/fakes.h"

namespace expanse::cli {
namespace {

constexpr char kToken[] = "exp_install_0123456789012345678901234567890123456789012";

TEST(ComputeInstall, EveryFlagReachesTheInstaller) {
  FakeMachine machine;
  machine.context.environment["EXPANSE_INSTALL_TOKEN"] = kToken;
  EXPECT_EQ(machine.Run({"compute",
                         "install",
                         "--type",
                         "slurm",
                         "--role",
                         "controller",
                         "--shared-prefix",
                         "/srv/expanse",
                         "--daemon-binary",
                         "build/expanse-daemon",
                         "--control-plane",
                         "http://c",
                         "--data-plane",
                         "http://d",
                         "--config",
                         "/etc/c.json",
                         "--user",
                         "hpc",
                         "--slurm-conf",
                         "/etc/slurm/slurm.conf",
                         "--patch-slurm-conf=true",
                         "--reconfigure=false",
                         "--systemd=false",
                         "--heartbeat-timeout",
                         "90s",
                         "--sampler-bootstrap",
                         "off",
                         "--cupti-variant",
                         "cuda1300",
                         "--profiling-agent=false",
                         "--bundled-pyspy=false",
                         "--releases-url",
                         "https://mirror",
                         "--cosign-key",
                         "/k.pem",
                         "--write-config-only",
                         "--verbose"}),
            kExitOk)
      << machine.terminal.err;
  const auto& o = machine.installed;
  EXPECT_EQ(o.type, "slurm");
  EXPECT_EQ(o.shared_prefix, "/srv/expanse");
  EXPECT_EQ(o.daemon_binary, "/home/ada/work/build/expanse-daemon");
  EXPECT_EQ(o.control_plane, "http://c");
  EXPECT_EQ(o.data_plane, "http://d");
  EXPECT_EQ(o.config, "/etc/c.json");
  EXPECT_EQ(o.user, "hpc");
  EXPECT_EQ(o.slurm_conf, "/etc/slurm/slurm.conf");
  EXPECT_TRUE(o.patch_slurm_conf);
  EXPECT_FALSE(o.reconfigure);
  EXPECT_FALSE(o.systemd);
  EXPECT_EQ(o.heartbeat_timeout, Millis(90'000));
  EXPECT_FALSE(o.sampler_bootstrap);
  EXPECT_EQ(o.cupti_variant, "cuda1300");
  EXPECT_FALSE(o.profiling_agent);
  EXPECT_FALSE(o.bundled_pyspy);
  EXPECT_EQ(o.releases_url, "https://mirror");
  EXPECT_EQ(o.cosign_key, "/k.pem");
  EXPECT_TRUE(o.write_config_only);
  EXPECT_TRUE(o.verbose);
  EXPECT_EQ(machine.install_token.Reveal(), kToken);
  EXPECT_EQ(machine.terminal.transcript.find(kToken), std::string::npos);
}

TEST(ComputeInstall, DefaultsAreTheReferences) {
  FakeMachine machine;
  machine.context.environment["EXPANSE_INSTALL_TOKEN"] = kToken;
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitOk);
  const auto& o = machine.installed;
  EXPECT_EQ(o.type, "");
  EXPECT_EQ(o.role, install::Role::kController);
  EXPECT_EQ(o.user, "slurm");
  EXPECT_FALSE(o.patch_slurm_conf);
  EXPECT_TRUE(o.reconfigure);
  EXPECT_TRUE(o.systemd);
  EXPECT_EQ(o.heartbeat_timeout, Millis(60'000));
  EXPECT_TRUE(o.sampler_bootstrap);
  EXPECT_TRUE(o.profiling_agent);
  EXPECT_TRUE(o.bundled_pyspy);
  EXPECT_EQ(o.releases_url, "https://releases.expanse.sh");
  EXPECT_FALSE(o.reinstall);
}

TEST(ComputeInstall, TheEnvironmentsTokenWinsOverThePrompt) {
  FakeMachine machine;
  machine.terminal.MakeInteractive();
  machine.terminal.answers = {"exp_install_typed"};
  machine.context.environment["EXPANSE_INSTALL_TOKEN"] = kToken;
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitOk);
  EXPECT_EQ(machine.install_token.Reveal(), kToken);
  EXPECT_EQ(machine.terminal.hidden_reads, 0);
}

TEST(ComputeInstall, AsksForTheTokenHidden) {
  FakeMachine machine;
  machine.terminal.MakeInteractive();
  machine.terminal.answers = {"exp_install_typed"};
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitOk);
  EXPECT_EQ(machine.install_token.Reveal(), "exp_install_typed");
  EXPECT_EQ(machine.terminal.hidden_reads, 1);
  EXPECT_TRUE(machine.terminal.transcript.starts_with("Expanse install token: \n"));
  EXPECT_EQ(machine.terminal.transcript.find("exp_install_typed"), std::string::npos);
  // A typed token is not carried to the next call.
  machine.terminal.answers = {};
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitFailed);
}

TEST(ComputeInstall, WithoutTerminalAndTokenSaysWhereOneComesFrom) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitFailed);
  EXPECT_NE(machine.terminal.err.find("expanse compute register"), std::string::npos);
}

TEST(ComputeInstall, AnotherKindOfSecretIsRefusedWithoutPrintingIt) {
  FakeMachine machine;
  machine.context.environment["EXPANSE_INSTALL_TOKEN"] = "exp_user_mistake";
  EXPECT_EQ(machine.Run({"compute", "install"}), kExitFailed);
  EXPECT_EQ(machine.terminal.err.find("exp_user_mistake"), std::string::npos);
}

TEST(ComputeInstall, ReinstallAndSamplerTakeNoToken) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"compute", "install", "--type", "slurm", "--force"}), kExitOk);
  EXPECT_TRUE(machine.installed.reinstall);
  EXPECT_EQ(machine.Run({"compute", "install", "--type", "slurm", "--role", "sampler",
                         "--shared-prefix", "/srv/expanse"}),
            kExitOk);
  EXPECT_EQ(machine.installed.role, install::Role::kSampler);
  EXPECT_TRUE(machine.install_token.empty());
}

TEST(ComputeInstall, MistakesAreUsageErrorsBeforeAnythingHappens) {
  FakeMachine machine;
  machine.context.environment["EXPANSE_INSTALL_TOKEN"] = kToken;
  const std::vector<std::vector<std::string>> mistakes{
      {"--shared-prefix", "srv/expanse"},
      {"--slurm-conf", "slurm.conf"},
      {"--daemon-version", "v1", "--daemon-binary", "/d"},
      {"--role", "sampler"},
      {"--type", "pbs"},
      {"--sampler-bootstrap", "never"},
      {"--token", kToken},
      {kToken},
  };
  for (auto words : mistakes) {
    words.insert(words.begin(), {"compute", "install"});
    EXPECT_EQ(machine.Run(words), kExitUsage) << words[2];
  }
  EXPECT_TRUE(machine.install_token.empty());
}

TEST(ComputeUninstall, PassesItsFlagsOn) {
  FakeMachine machine;
  EXPECT_EQ(machine.Run({"compute", "uninstall", "--type", "slurm", "--role", "sampler",
                         "--shared-prefix", "/srv/expanse", "--slurm-conf", "/s.conf", "--user",
                         "hpc", "--config", "/c.json", "--keep-identity"}),
            kExitOk);
  EXPECT_EQ(machine.uninstalled.role, install::Role::kSampler);
  EXPECT_EQ(machine.uninstalled.shared_prefix, "/srv/expanse");
  EXPECT_EQ(machine.uninstalled.slurm_conf, "/s.conf");
  EXPECT_EQ(machine.uninstalled.user, "hpc");
  EXPECT_EQ(machine.uninstalled.config, "/c.json");
  EXPECT_TRUE(machine.uninstalled.keep_identity);
  EXPECT_EQ(machine.Run({"compute", "uninstall", "--shared-prefix", "relative"}), kExitUsage);
}

}  // namespace
}  // namespace expanse::cli
