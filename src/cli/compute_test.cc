// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "cli/fakes.h"
#include "cli/labels.h"

namespace expanse::cli {
namespace {

class ComputeCommands : public ::testing::Test {
 protected:
  ComputeCommands() { machine_.SignIn(); }
  FakeMachine machine_;
};

TEST_F(ComputeCommands, RegisterPrintsTokenAndInstallCommand) {
  EXPECT_EQ(machine_.Run({"compute", "register", "--type", "slurm", "--name", "hpc-01", "--team-id",
                          "team-7"}),
            kExitOk);
  ExpectGolden("compute_register_slurm.txt", machine_.terminal.out);
  EXPECT_EQ(machine_.planes.registered.team_id(), "team-7");
}

TEST_F(ComputeCommands, TheTokenIsNeverPartOfACommand) {
  for (const auto type : kSourceTypes) {
    machine_.terminal.out.clear();
    EXPECT_EQ(machine_.Run({"compute", "register", "--type", std::string(type), "--json"}),
              kExitOk);
    const auto value = boost::json::parse(machine_.terminal.out);
    const std::string command(value.at("install_command").as_string());
    EXPECT_EQ(command.find("exp_install_"), std::string::npos);
    EXPECT_NE(command.find("--control-plane http://control.test:7701"), std::string::npos);
    EXPECT_NE(command.find("--data-plane http://data.test:7702"), std::string::npos);
    EXPECT_EQ(value.at("install_token").as_string().find("exp_install_"), 0U);
    EXPECT_EQ(ComputeTypeLabel(machine_.planes.registered.type()), type);
  }
}

TEST_F(ComputeCommands, RegisterNamesAComputeAfterTypeAndTime) {
  EXPECT_EQ(machine_.Run({"compute", "register", "--type", "vm"}), kExitOk);
  EXPECT_EQ(machine_.planes.registered.name(), "vm-20261130-210000");
}

TEST_F(ComputeCommands, RegisterAsksForTheKindOnATerminal) {
  EXPECT_EQ(machine_.Run({"compute", "register"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("--type slurm|kubernetes|nomad|vm"), std::string::npos);
  machine_.terminal.MakeInteractive();
  machine_.terminal.answers = {"pbs", " SLURM "};
  EXPECT_EQ(machine_.Run({"compute", "register"}), kExitOk);
  EXPECT_EQ(machine_.planes.registered.type(), control::v1::COMPUTE_TYPE_SLURM);
}

TEST_F(ComputeCommands, ABadKindIsAUsageError) {
  EXPECT_EQ(machine_.Run({"compute", "register", "--type", "slurn"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("did you mean slurm?"), std::string::npos);
}

TEST_F(ComputeCommands, ListShowsStatesAndWhatWasNotReportedAsADash) {
  auto& active = machine_.planes.computes.emplace_back();
  active.set_compute_id("01939000-0000-7000-8000-0000000000c1");
  active.set_name("hpc-01");
  active.set_type(control::v1::COMPUTE_TYPE_SLURM);
  active.set_state(control::v1::COMPUTE_STATE_ACTIVE);
  active.set_last_heartbeat_ms(ToUnixMillis(machine_.clock.Now()));
  active.set_nodes(2);
  active.set_gpus(0);
  active.set_daemon_version("0.1.0");
  auto& pending = machine_.planes.computes.emplace_back();
  pending.set_compute_id("01939000-0000-7000-8000-0000000000c2");
  pending.set_name("cloud");
  pending.set_type(control::v1::COMPUTE_TYPE_KUBERNETES);
  pending.set_state(control::v1::COMPUTE_STATE_PENDING);
  EXPECT_EQ(machine_.Run({"compute", "list"}), kExitOk);
  ExpectGolden("compute_list.txt", machine_.terminal.out);
}

TEST_F(ComputeCommands, TheWordAloneListsTheCommandsBelowIt) {
  EXPECT_EQ(machine_.Run({"compute"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("compute register"), std::string::npos);
  EXPECT_EQ(machine_.Run({"compute", "--help"}), kExitOk);
  EXPECT_EQ(machine_.Run({"compute", "lst"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("did you mean `expanse compute list`?"), std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
