// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/fakes.h"
#include "cli/labels.h"
#include "rpc/json.h"

namespace expanse::cli {
namespace {

common::v1::Execution Make(int n, common::v1::ExecutionStatus status,
                           common::v1::ExecutionOutcome outcome) {
  common::v1::Execution e;
  e.set_execution_id("01939000-0000-7000-8000-00000000000" + std::to_string(n));
  e.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  e.set_native_id(std::to_string(41980 + n));
  e.set_user("ada");
  e.set_status(status);
  e.set_outcome(outcome);
  e.set_start_time_ms(ToUnixMillis(ParseRfc3339("2026-11-30T20:00:00Z").value()) - n * 60'000);
  return e;
}

class Executions : public ::testing::Test {
 protected:
  Executions() {
    machine_.SignIn();
    using namespace common::v1;  // NOLINT(google-build-using-namespace)
    auto& list = machine_.planes.executions;
    list.push_back(Make(1, EXECUTION_STATUS_RUNNING, EXECUTION_OUTCOME_UNSPECIFIED));
    list.push_back(Make(2, EXECUTION_STATUS_SUCCEEDED, EXECUTION_OUTCOME_SUCCESS));
    list.push_back(Make(3, EXECUTION_STATUS_FAILED, EXECUTION_OUTCOME_OUT_OF_MEMORY));
    list.push_back(Make(4, EXECUTION_STATUS_CANCELLED, EXECUTION_OUTCOME_CANCELLED));
    list.push_back(Make(5, EXECUTION_STATUS_QUEUED, EXECUTION_OUTCOME_UNSPECIFIED));
    list.back().clear_start_time_ms();
    list.back().clear_user();
    list.back().set_native_id("41985_3");
    list.push_back(Make(6, EXECUTION_STATUS_UNKNOWN, EXECUTION_OUTCOME_UNKNOWN));
    list.back().set_user("eve\x1b[2J\n");
  }
  FakeMachine machine_;
};

TEST_F(Executions, PrintTheSevenColumns) {
  EXPECT_EQ(machine_.Run({"executions"}), kExitOk);
  ExpectGolden("executions.txt", machine_.terminal.out);
  EXPECT_EQ(machine_.terminal.err, "");
}

TEST_F(Executions, AreColouredOnATerminalOnly) {
  machine_.terminal.MakeInteractive();
  EXPECT_EQ(machine_.Run({"executions", "--limit", "3"}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find("\x1b[31mfailed\x1b[0m"), std::string::npos);
  machine_.terminal.out.clear();
  machine_.context.environment["NO_COLOR"] = "1";
  EXPECT_EQ(machine_.Run({"executions", "--limit", "3"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out.find('\x1b'), std::string::npos);
}

TEST_F(Executions, LinksFollowTheConsoleUrlOfTheEnvironment) {
  machine_.context.environment["EXPANSE_CONSOLE_URL"] = "https://mine.test/";
  EXPECT_EQ(machine_.Run({"executions", "--limit", "1"}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find(
                "https://mine.test/executions/01939000-0000-7000-8000-000000000001"),
            std::string::npos);
}

TEST_F(Executions, JsonIsTheWholeAnswerAndNothingElse) {
  EXPECT_EQ(machine_.Run({"executions", "--json"}), kExitOk);
  data::v1::ListExecutionsResponse parsed;
  ASSERT_TRUE(rpc::FromJson(machine_.terminal.out, &parsed).ok());
  EXPECT_EQ(parsed.executions_size(), 6);
  EXPECT_EQ(machine_.terminal.err, "");
}

TEST_F(Executions, FiltersReachTheServer) {
  machine_.planes.computes.emplace_back();
  machine_.planes.computes.back().set_name("hpc-01");
  machine_.planes.computes.back().set_compute_id("01939000-0000-7000-8000-0000000000c1");
  EXPECT_EQ(machine_.Run({"executions", "--user", "ada", "--mine", "--compute", "hpc-01"}),
            kExitOk);
  EXPECT_EQ(machine_.planes.listed.limit(), 25);
  EXPECT_EQ(machine_.planes.listed.user(), "ada");
  EXPECT_TRUE(machine_.planes.listed.mine());
  EXPECT_EQ(machine_.planes.listed.compute_id(), "01939000-0000-7000-8000-0000000000c1");
  EXPECT_EQ(machine_.Run({"executions", "--compute", "hpc-02"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("did you mean 'hpc-01'?"), std::string::npos);
}

TEST_F(Executions, EveryStatusAndOutcomeIsAWordOfItsFlag) {
  for (const auto word : kStatuses) {
    EXPECT_EQ(machine_.Run({"executions", "--status", std::string(word)}), kExitOk);
    EXPECT_EQ(StatusLabel(machine_.planes.listed.status()), word);
  }
  for (const auto word : kOutcomes) {
    EXPECT_EQ(machine_.Run({"executions", "--outcome", std::string(word)}), kExitOk);
    EXPECT_EQ(OutcomeLabel(machine_.planes.listed.outcome()), word);
  }
  EXPECT_EQ(machine_.Run({"executions", "--status", "faild"}), kExitUsage);
  EXPECT_NE(machine_.terminal.err.find("did you mean failed?"), std::string::npos);
}

TEST_F(Executions, MoreThanAPageIsFetchedPageByPage) {
  machine_.planes.page_size = 2;
  EXPECT_EQ(machine_.Run({"executions", "--limit", "5"}), kExitOk);
  EXPECT_EQ(std::count(machine_.terminal.out.begin(), machine_.terminal.out.end(), '\n'), 6);
}

TEST_F(Executions, AnEmptyListSaysSoOnStderr) {
  machine_.planes.executions.clear();
  EXPECT_EQ(machine_.Run({"executions"}), kExitOk);
  EXPECT_EQ(machine_.terminal.err, "No execution matches.\n");
  EXPECT_EQ(machine_.terminal.out, "EXECUTION ID  JOB ID  USER  STATUS  OUTCOME  START  CONSOLE\n");
}

}  // namespace
}  // namespace expanse::cli
