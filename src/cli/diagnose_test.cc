// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "cli/fakes.h"
#include "platform/crypto/crypto.h"
#include "rpc/json.h"

namespace expanse::cli {
namespace {

constexpr char kExecution[] = "01939000-0000-7000-8000-000000000003";

boost::json::value ParseJson(const std::string& text) {
  boost::json::error_code error;
  auto value = boost::json::parse(text, error);
  EXPECT_FALSE(error) << error.message();
  return value;
}

class DiagnoseCommand : public ::testing::Test {
 protected:
  DiagnoseCommand() {
    machine_.SignIn();
    auto& run = machine_.planes.diagnose_run;
    EXPECT_TRUE(rpc::FromJson(TestData("published/diagnose.json"), &run).ok());
  }
  intelligence::v1::DiagnoseResult& result() {
    return *machine_.planes.diagnose_run.mutable_result();
  }
  /// The published JSON shows two of the eight stages of the published text.
  void AddStages() {
    auto* pipeline = result().mutable_pipeline();
    pipeline->Clear();
    for (const auto& [name, summary] : {std::pair{"evidence", "execution record, scheduler status"},
                                        {"similar", "5 similar executions"},
                                        {"sources", "3 captured files, 2 fetched"},
                                        {"attribution", "4 regions, 12 frames"},
                                        {"metrics", "6 series, snapshot"},
                                        {"runbooks", "host_out_of_memory"},
                                        {"synthesis", "deterministic"},
                                        {"agent-prompt", "11k chars"}}) {
      auto* stage = pipeline->Add();
      stage->set_name(name);
      stage->set_status(intelligence::v1::PIPELINE_STAGE_STATUS_OK);
      stage->set_summary(summary);
    }
  }
  FakeMachine machine_;
};

TEST_F(DiagnoseCommand, PrintsThePublishedTextByteForByte) {
  AddStages();
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk) << machine_.terminal.err;
  EXPECT_EQ(machine_.terminal.out, TestData("published/diagnose.txt"));
  EXPECT_EQ(machine_.terminal.err, "");
}

TEST_F(DiagnoseCommand, PrintsThePublishedJson) {
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--json"}), kExitOk);
  EXPECT_EQ(ParseJson(machine_.terminal.out), ParseJson(TestData("published/diagnose.json")));
}

TEST_F(DiagnoseCommand, AJobNameOfAnyBytesIsOneRow) {
  const std::string name = "a;'\"\n  state  succeeded\x1b[2J \xC3\xA9";
  result().mutable_display()->set_job_name(name);
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk) << machine_.terminal.err;
  EXPECT_NE(machine_.terminal.out.find("a;'\"\\x0a  state  succeeded\\x1b[2J \xC3\xA9\n"),
            std::string::npos)
      << machine_.terminal.out;
  EXPECT_EQ(machine_.terminal.out.find('\x1b'), std::string::npos);
}

TEST_F(DiagnoseCommand, JsonIsTheSameEveryTime) {
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--json"}), kExitOk);
  const std::string first = machine_.terminal.out;
  for (int i = 0; i < 5; ++i) {
    machine_.terminal.out.clear();
    EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--json"}), kExitOk);
    EXPECT_EQ(machine_.terminal.out, first);
  }
}

TEST_F(DiagnoseCommand, PromptIsExactlyThatOfTheJson) {
  result().set_agent_prompt("# Job\n\nVerify first.\x1b[2J");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--prompt"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out, "# Job\n\nVerify first.\x1b[2J");
  machine_.terminal.out.clear();
  machine_.terminal.MakeInteractive();
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--prompt"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out, "# Job\n\nVerify first.\\x1b[2J\n");
}

TEST_F(DiagnoseCommand, OffersThePromptOnATerminalOnly) {
  result().set_agent_prompt("Verify first.");
  machine_.terminal.MakeInteractive();
  machine_.terminal.answers = {"y"};
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_TRUE(machine_.terminal.transcript.ends_with(
      "\nSuggested prompt for your agent? [y/n] y\nVerify first.\n"));
  machine_.terminal.transcript.clear();
  machine_.terminal.answers = {"maybe", "n"};
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_EQ(machine_.terminal.transcript.find("Verify first."), std::string::npos);
  machine_.terminal.in_tty = false;
  machine_.terminal.transcript.clear();
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_EQ(machine_.terminal.transcript.find("[y/n]"), std::string::npos);
}

TEST_F(DiagnoseCommand, ARunThatSucceededHasNoFailureSectionPromptOrQuestion) {
  auto& display = *result().mutable_display();
  display.set_state("succeeded");
  display.clear_failure_class();
  result().clear_agent_prompt();
  machine_.terminal.MakeInteractive();
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_EQ(machine_.terminal.out.find("FAILURE DETECTION"), std::string::npos);
  EXPECT_EQ(machine_.terminal.out.find("[y/n]"), std::string::npos);
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--prompt"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("did not fail"), std::string::npos);
}

TEST_F(DiagnoseCommand, TheFailureSectionFollowsWhatTheDiagnosisSaysAndNotTheClass) {
  auto& display = *result().mutable_display();
  display.set_state("cancelled");
  display.set_failure_class("job_cancelled");
  result().set_root_cause("What happened: it ended. Why: the job was requeued.");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_NE(machine_.terminal.err.find("the job was requeued"), std::string::npos);
  EXPECT_EQ(machine_.terminal.out.find("FAILURE DETECTION"), std::string::npos);
  EXPECT_NE(machine_.terminal.out.find("job_cancelled"), std::string::npos);
  machine_.terminal.out.clear();
  display.set_failure_class("gpu_idle_allocation");
  result().set_failed(true);
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find("FAILURE DETECTION"), std::string::npos);
}

TEST_F(DiagnoseCommand, UnknownsAreNamedWithTheirReasonsAndNeverZero) {
  auto& display = *result().mutable_display();
  display.clear_recurrence();
  display.clear_job_name();
  auto& snapshot = *display.mutable_resource_snapshot();
  snapshot.Clear();
  (*snapshot.mutable_unknown())["host_ram_observed_peak_bytes"] = "the job's cgroup was gone";
  (*snapshot.mutable_unknown())["gpu_type"] = "no GPU was allocated";
  snapshot.set_host_ram_requested_bytes(int64_t{24} << 30);
  auto* stage = result().add_pipeline();
  stage->set_name("attribution");
  stage->set_status(intelligence::v1::PIPELINE_STAGE_STATUS_SKIPPED);
  stage->set_summary("no stacks");
  stage = result().add_pipeline();
  stage->set_name("metrics");
  stage->set_status(intelligence::v1::PIPELINE_STAGE_STATUS_DEGRADED);
  stage->set_summary("1 of 2 nodes");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  ExpectGolden("diagnose_unknown.txt", machine_.terminal.out);
}

TEST_F(DiagnoseCommand, SaysWhichOfTheTwoMemoryNumbersThePeakIs) {
  result().mutable_display()->mutable_resource_snapshot()->set_host_ram_observed_peak_kind("need");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find("host_ram_observed_peak_gb  24 (need)\n"),
            std::string::npos);
}

TEST_F(DiagnoseCommand, ResolvesASchedulersIdToTheNewestRun) {
  for (const char* id : {kExecution, "01939000-0000-7000-8000-000000000001"}) {
    auto& e = machine_.planes.executions.emplace_back();
    e.set_execution_id(id);
    e.set_native_id("41982");
    e.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  }
  EXPECT_EQ(machine_.Run({"diagnose", "41982", "--source-type", "slurm"}), kExitOk);
  EXPECT_EQ(machine_.planes.diagnosed.execution_id(), kExecution);
  EXPECT_NE(machine_.terminal.err.find("01939000-0000-7000-8000-000000000001"), std::string::npos);
  EXPECT_EQ(machine_.Run({"diagnose", "41982"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("`expanse diagnose 41982 --source-type slurm`"),
            std::string::npos);
  EXPECT_EQ(machine_.Run({"diagnose", "7", "--source-type", "slurm"}), kExitFailed);
}

TEST_F(DiagnoseCommand, SendsTheSourcesItWasGiven) {
  machine_.WriteFile("a.py", "import nothing\n");
  machine_.WriteFile("b.py", std::string("\0\xff", 2));
  EXPECT_EQ(
      machine_.Run({"diagnose", kExecution, "--source", "a.py", "--source", "b.py", "--no-cache"}),
      kExitOk);
  ASSERT_EQ(machine_.planes.diagnosed.sources_size(), 2);
  EXPECT_EQ(machine_.planes.diagnosed.sources(0).path(), "a.py");
  EXPECT_EQ(machine_.planes.diagnosed.sources(0).sha256(), platform::Sha256Hex("import nothing\n"));
  EXPECT_EQ(machine_.planes.diagnosed.sources(1).content(), std::string("\0\xff", 2));
  EXPECT_TRUE(machine_.planes.diagnosed.no_cache());
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--source", "missing.py"}), kExitFailed);
  machine_.WriteFile("big.py", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--source", "big.py"}), kExitFailed);
}

TEST_F(DiagnoseCommand, ADiagnosisThatFailedExitsWithOne) {
  machine_.planes.diagnose_run.set_status(intelligence::v1::RUN_STATUS_FAILED);
  machine_.planes.diagnose_run.set_error("the data plane did not answer");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution}), kExitFailed);
  EXPECT_EQ(machine_.terminal.err,
            "expanse: diagnosis d41c8a7e-… ended as run_status_failed: the data plane did not "
            "answer\n");
}

TEST_F(DiagnoseCommand, NeverWritesAFile) {
  machine_.WriteFile("a.py", "x");
  EXPECT_EQ(machine_.Run({"diagnose", kExecution, "--source", "a.py"}), kExitOk);
  EXPECT_EQ(machine_.fs.List("/home/ada/work").value(), std::vector<std::string>{"a.py"});
  EXPECT_EQ(machine_.ReadFile("a.py"), "x");
}

}  // namespace
}  // namespace expanse::cli
