// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/analyser.h"

#include <fstream>
#include <map>
#include <sstream>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intelligence/analyse/analyser_fixture.h"
#include "rpc/json.h"
#include "submission/patch/byte_edit.h"

namespace expanse::intelligence::analyse {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

AnalyseAnswer Answer(const AnalyseInputs& inputs) {
  auto answer = Analyse(inputs);
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
  return std::move(answer).value();
}
std::vector<std::string> Warnings(const AnalyseAnswer& answer) {
  return {answer.result.warnings().begin(), answer.result.warnings().end()};
}
std::string Patched(const AnalyseInputs& inputs, const AnalyseAnswer& answer) {
  const auto& script = inputs.request.bundle().files(0).content();
  if (!answer.patch) return script;
  std::vector<submission::ByteEdit> edits;
  for (const auto& edit : answer.patch->edits()) {
    edits.push_back({static_cast<size_t>(edit.offset()), static_cast<size_t>(edit.length()),
                     edit.replacement()});
  }
  auto after = submission::ApplyEdits(script, edits);
  EXPECT_TRUE(after.ok());
  EXPECT_EQ(platform::Sha256Hex(*after), answer.patch->result_sha256());
  return *after;
}

const char kTrain[] =
    "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --cpus-per-task=16\n"
    "#SBATCH --gres=gpu:h100:1\n#SBATCH --mem=128G\n#SBATCH --time=02:00:00\n\n"
    "srun python train.py\n";

std::vector<data::v1::RecordedRun> PublishedRuns() {
  const struct {
    const char* id;
    double gib;
    int64_t seconds;
    int64_t gpu_peak;
    double utilisation;
  } rows[] = {{"4404", 11.6, 6580, 32'500'000'000, 92},
              {"4403", 11.9, 6600, 33'500'000'000, 91},
              {"4402", 11.7, 6540, 31'998'000'000, 90},
              {"4401", 11.8, 6570, 33'100'000'000, 91}};
  std::vector<data::v1::RecordedRun> runs;
  for (const auto& row : rows) {
    auto run = Ran(row.id, row.gib, row.seconds);
    run.set_similarity(0.98);
    auto* e = run.mutable_execution();
    e->mutable_cpu_cores_used_peak()->set_value(15.8);
    e->set_gpu_model("NVIDIA H100 80GB HBM3");
    e->set_gpu_memory_total_bytes(85'520'809'984);
    e->mutable_gpu_memory_peak_bytes()->set_value(row.gpu_peak);
    e->mutable_gpu_utilisation_pct()->set_value(row.utilisation);
    runs.push_back(run);
  }
  return runs;
}

/// Every key of the published value is in ours, with an equal value unless it is elided there.
void ExpectContains(const boost::json::value& ours, const boost::json::value& published,
                    const std::string& path) {
  if (published.is_object()) {
    ASSERT_TRUE(ours.is_object()) << path;
    for (const auto& [key, value] : published.as_object()) {
      const auto* mine = ours.as_object().if_contains(key);
      ASSERT_NE(mine, nullptr) << path << "." << std::string(key);
      ExpectContains(*mine, value, path + "." + std::string(key));
    }
    return;
  }
  if (published.is_array()) {
    ASSERT_TRUE(ours.is_array()) << path;
    ASSERT_EQ(ours.as_array().size(), published.as_array().size()) << path;
    for (size_t i = 0; i < published.as_array().size(); ++i)
      ExpectContains(ours.as_array()[i], published.as_array()[i], path + "[]");
    return;
  }
  if (published.is_string()) {
    ASSERT_TRUE(ours.is_string()) << path;
    const std::string want(published.as_string());
    const std::string elided = "\xE2\x80\xA6";
    const size_t at = want.find(elided);
    EXPECT_EQ(std::string(ours.as_string()).substr(0, at), want.substr(0, at)) << path;
    return;
  }
  // 1 and 1.0 are one number in JSON.
  ASSERT_TRUE(ours.is_number() || ours.is_bool()) << path;
  if (published.is_bool()) {
    EXPECT_EQ(ours, published) << path;
  } else {
    EXPECT_EQ(ours.to_number<double>(), published.to_number<double>()) << path;
  }
}

TEST(Analyser, ReproducesThePublishedExampleFieldForField) {
  const auto inputs = Question(kTrain, PublishedRuns());
  const auto answer = Answer(inputs);
  v1::AnalyseRun run;
  run.set_run_id("8b2f4c1e-0000-7000-8000-000000000000");
  run.set_status(v1::RUN_STATUS_SUCCEEDED);
  *run.mutable_result() = answer.result;
  std::ifstream file(EXPANSE_TESTDATA "/analyse/published.json");
  std::stringstream text;
  text << file.rdbuf();
  ExpectContains(boost::json::parse(*rpc::ToJson(run)), boost::json::parse(text.str()), "");

  // Rows of the text form that the published JSON leaves out.
  EXPECT_EQ(answer.job_name, "train");
  EXPECT_EQ(FormatGbRow(Bytes{answer.result.recommended_resources().gpu_memory_floor_bytes()}),
            "29.8");
  EXPECT_EQ(FormatGbRow(Bytes{answer.result.recommended_resources().host_ram_requested_bytes()}),
            "128");
  ASSERT_EQ(answer.result.evidence_size(), 4);
  EXPECT_EQ(answer.result.evidence(3).scheduler_job_id(), "4401");
  EXPECT_EQ(answer.result.failure_risk_size(), 0);
  EXPECT_EQ(Patched(inputs, answer),
            "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --cpus-per-task=16\n"
            "#SBATCH --gres=gpu:h100:1\n#SBATCH --mem=15G\n#SBATCH --time=02:30:00\n\n"
            "srun python train.py\n");
}

TEST(Analyser, WithoutHistoryNothingIsInvented) {
  const auto answer = Answer(Question(kTrain));
  const auto& r = answer.result.recommended_resources();
  EXPECT_EQ(r.memory_bytes(), 128 * kGiB);
  EXPECT_EQ(r.walltime_seconds(), 7200);
  EXPECT_EQ(r.cpu_cores(), 16);
  EXPECT_EQ(r.gpu_count(), 1);
  EXPECT_EQ(answer.result.confidence(), v1::CONFIDENCE_LABEL_LOW);
  EXPECT_FALSE(answer.result.has_confidence_score());
  EXPECT_FALSE(answer.result.has_completion_probability());
  EXPECT_TRUE(answer.result.has_completion_probability_known());
  EXPECT_FALSE(answer.result.completion_probability_known());
  EXPECT_EQ(answer.result.right_size().class_(), "none");
  EXPECT_FALSE(answer.patch.has_value());
  EXPECT_TRUE(r.has_gpu_utilisation_known());
  EXPECT_FALSE(r.gpu_utilisation_known());
  EXPECT_FALSE(r.has_gpu_memory_peak_bytes());
  EXPECT_EQ(answer.result.unknown().count("gpu_memory_peak_bytes"), 1u);
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("no recorded run of this source")));
}

TEST(Analyser, WhatWasNeitherRequestedNorMeasuredIsUnknown) {
  const auto answer = Answer(Question("#!/bin/bash\necho\n"));
  EXPECT_FALSE(answer.result.recommended_resources().has_memory_bytes());
  EXPECT_FALSE(answer.result.recommended_resources().has_walltime_seconds());
  EXPECT_THAT(answer.result.unknown().at("memory_bytes"), HasSubstr("partition's default"));
  EXPECT_EQ(answer.result.unknown().count("walltime_seconds"), 1u);
  EXPECT_FALSE(answer.result.recommended_resources().has_gpu_count());
  EXPECT_FALSE(answer.result.recommended_resources().has_gpu_utilisation_known());
}

TEST(Analyser, AnOverRequestIsLoweredToThePeakAndAMargin) {
  const auto inputs =
      Question("#!/bin/bash\n#SBATCH --mem=512M  # plenty\n#SBATCH -t 20\npython x.py\n",
               {Ran("3", 0.119, 5), Ran("2", 0.118, 5), Ran("1", 0.120, 6)});
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.right_size().class_(), "memory_lower+walltime_lower");
  EXPECT_TRUE(answer.result.right_size().review_required());
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 160 * kMiB);
  EXPECT_EQ(answer.result.recommended_resources().walltime_seconds(), 60);
  EXPECT_EQ(Patched(inputs, answer),
            "#!/bin/bash\n#SBATCH --mem=160M  # plenty\n#SBATCH -t 1\npython x.py\n");
  EXPECT_THAT(answer.patch->content(), HasSubstr("+#SBATCH --mem=160M  # plenty"));
  EXPECT_EQ(answer.patch->source_file(), "train.slurm");
}

TEST(Analyser, AKillAtALimitIsAFloorNotTheDemand) {
  const auto inputs = Question("#!/bin/bash\n#SBATCH --mem=1G -t 10\n", {OutOfMemoryRun("1", 1)});
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 2 * kGiB);
  EXPECT_EQ(answer.result.right_size().class_(), "memory_raise");
  EXPECT_FALSE(answer.result.right_size().review_required());
  ASSERT_EQ(answer.result.failure_risk_size(), 1);
  EXPECT_EQ(answer.result.failure_risk(0).class_(), "host_out_of_memory");
  EXPECT_THAT(answer.result.failure_risk(0).reason(), HasSubstr("job 1"));
  EXPECT_THAT(answer.result.recommended_resources().rationale(), HasSubstr("killed at 1.0 GiB"));
}

TEST(Analyser, ALargerMeasuredNeedOverrulesAnEarlierKill) {
  const auto answer =
      Answer(Question("#!/bin/bash\n#SBATCH --mem=8G -t 10\n",
                      {Ran("3", 1.5, 60), Ran("2", 1.5, 60), OutOfMemoryRun("1", 1)}));
  const auto& r = answer.result.recommended_resources();
  EXPECT_GE(r.memory_bytes(), 3 * kGiB / 2 * 11 / 10);
  EXPECT_LE(r.memory_bytes(), 3 * kGiB);
}

TEST(Analyser, NothingIsLoweredOnFloorsAlone) {
  const auto failed = Ended(Ran("1", 0.1, 2), common::v1::EXECUTION_OUTCOME_FAILURE);
  const auto answer = Answer(Question("#!/bin/bash\n#SBATCH --mem=8G -t 10\n", {failed}));
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 8 * kGiB);
  EXPECT_EQ(answer.result.recommended_resources().walltime_seconds(), 600);
  EXPECT_FALSE(answer.patch.has_value());
  EXPECT_THAT(answer.result.recommended_resources().rationale(), HasSubstr("not lowered"));
}

TEST(Analyser, ATimeoutRaisesTheWalltime) {
  auto run = Ran("1", 0.5, 60);
  run.mutable_execution()->set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
  run.mutable_execution()->mutable_requested()->set_walltime_seconds(60);
  const auto answer = Answer(Question("#!/bin/bash\n#SBATCH --mem=1G -t 1\n", {run}));
  EXPECT_EQ(answer.result.recommended_resources().walltime_seconds(), 120);
  EXPECT_EQ(answer.result.right_size().class_(), "walltime_raise");
  ASSERT_EQ(answer.result.failure_risk_size(), 1);
  EXPECT_EQ(answer.result.failure_risk(0).class_(), "walltime_exceeded");
}

TEST(Analyser, CancelledAndUnknownRunsAreNotCounted) {
  const auto answer =
      Answer(Question(kTrain, {Ran("4", 10, 100), Ran("3", 10, 100),
                               Ended(Ran("2", 1, 1), common::v1::EXECUTION_OUTCOME_CANCELLED),
                               Ended(Ran("1", 1, 1), common::v1::EXECUTION_OUTCOME_UNKNOWN),
                               Ended(Ran("0", 1, 1), common::v1::EXECUTION_OUTCOME_UNSPECIFIED)}));
  EXPECT_EQ(answer.result.excluded_runs(), 2);
  EXPECT_EQ(answer.result.completion_probability().success_count(), 2);
  EXPECT_EQ(answer.result.evidence_size(), 2);
  EXPECT_EQ(answer.result.confidence_score_runs(), 2);
}

TEST(Analyser, FailuresLowerTheCompletionProbabilityAndAreClassed) {
  const auto answer = Answer(Question(
      kTrain, {Ran("4", 10, 100), Ran("3", 10, 100), Ran("2", 10, 100), OutOfMemoryRun("1", 4)}));
  EXPECT_EQ(answer.result.completion_probability().success_count(), 3);
  EXPECT_EQ(answer.result.completion_probability().mean(), 0.7);
  EXPECT_EQ(answer.result.residual_failure_risk().class_(), "host_out_of_memory");
  EXPECT_EQ(answer.result.residual_failure_risk().probability().mean(), 0.3);
  // Whether the killed run fits cannot be said: it is no measured run.
  EXPECT_EQ(answer.result.confidence_score_runs(), 3);
  EXPECT_EQ(answer.result.confidence_score_fit(), 3);
}

TEST(Analyser, SaysInHowManyOfTheRunsThatFitMemoryWasMeasured) {
  const auto measured = Answer(Question(kTrain, {Ran("2", 4, 100), Ran("1", 4, 100)}));
  EXPECT_THAT(Warnings(measured), Not(Contains(HasSubstr("only a floor"))));
  auto floor = Ran("1", 3, 100);
  floor.mutable_execution()->mutable_memory_need()->set_bound(common::v1::BOUND_AT_LEAST);
  floor.mutable_execution()->mutable_runtime_seconds()->set_value(2);
  const auto answer = Answer(Question(kTrain, {Ran("3", 4, 100), Ran("2", 4, 100), floor}));
  EXPECT_EQ(answer.result.confidence_score_fit(), 3);
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("3 runs fit; memory was measured in 2")));
}

TEST(Analyser, NamesTheLeastMarginWhenItDecidedAndNotThePercentOfIt) {
  const auto small = Answer(Question(kTrain, {Ran("1", 0.05, 4000)}));
  EXPECT_THAT(small.result.recommended_resources().rationale(),
              HasSubstr("32.0 MiB above it, the least margin"));
  const auto large = Answer(Question(kTrain, {Ran("1", 4, 4000)}));
  EXPECT_THAT(large.result.recommended_resources().rationale(), HasSubstr("50 % above it"));
}

TEST(Analyser, SimilarRunsMakeItMediumAndNameTheArguments) {
  auto run = Ran("1", 4, 100, "similar_bundle");
  run.add_arguments("--epochs");
  run.add_arguments("3");
  const auto answer = Answer(Question(kTrain, {run, Ran("0", 4, 100, "similar_bundle")}));
  EXPECT_EQ(answer.result.confidence(), v1::CONFIDENCE_LABEL_MEDIUM);
  EXPECT_EQ(answer.result.completion_probability().basis(), "similar_bundle");
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("--epochs 3")));
  const auto exact = Answer(Question(kTrain, {Ran("1", 4, 100), Ran("0", 4, 100)}));
  EXPECT_GT(answer.result.recommended_resources().memory_bytes(),
            exact.result.recommended_resources().memory_bytes());
}

TEST(Analyser, RunsOfAnotherSourceOfTheUserOnlyEverRaise) {
  const auto low = Answer(
      Question(kTrain, {Ran("1", 4, 100, "user_history"), Ran("2", 4, 100, "user_history")}));
  EXPECT_EQ(low.result.confidence(), v1::CONFIDENCE_LABEL_LOW);
  EXPECT_EQ(low.result.recommended_resources().memory_bytes(), 128 * kGiB);
  EXPECT_FALSE(low.result.has_completion_probability());
  EXPECT_FALSE(low.patch.has_value());
  auto oom = OutOfMemoryRun("1", 128);
  oom.set_basis("user_history");
  const auto raised = Answer(Question(kTrain, {oom}));
  EXPECT_GT(raised.result.recommended_resources().memory_bytes(), 128 * kGiB);
}

TEST(Analyser, ExactRunsSpeakBeforeSimilarOnes) {
  const auto answer =
      Answer(Question(kTrain, {Ran("2", 40, 100, "similar_bundle"), Ran("1", 4, 100)}));
  EXPECT_EQ(answer.result.evidence_size(), 1);
  EXPECT_LT(answer.result.recommended_resources().memory_bytes(), 10 * kGiB);
}

TEST(Analyser, EnforcedPeaksStandInForNeedAndThatIsSaid) {
  auto run = Ran("1", 2, 30);
  run.mutable_execution()->mutable_memory_need()->set_bound(common::v1::BOUND_AT_LEAST);
  run.mutable_execution()->mutable_memory_peak_enforced()->set_value(3 * kGiB);
  run.mutable_execution()->mutable_memory_peak_enforced()->set_bound(common::v1::BOUND_EXACT);
  const auto answer = Answer(Question(kTrain, {run}));
  EXPECT_GE(answer.result.recommended_resources().memory_bytes(), 4 * kGiB);
  EXPECT_THAT(answer.result.recommended_resources().rationale(), HasSubstr("page cache included"));
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("page cache")));
  // A long run was sampled often enough to stand on its need, bounded by the exact peak.
  run.mutable_execution()->mutable_runtime_seconds()->set_value(3600);
  const auto longer = Answer(Question(kTrain, {run}));
  EXPECT_LT(longer.result.recommended_resources().memory_bytes(), 9 * kGiB / 2);
}

TEST(Analyser, RiskToleranceMovesTheMargin) {
  auto inputs = Question(kTrain, {Ran("2", 10, 1000), Ran("1", 10, 1000)});
  std::map<v1::RiskTolerance, int64_t> memory;
  for (const auto risk :
       {v1::RISK_TOLERANCE_LOW, v1::RISK_TOLERANCE_MEDIUM, v1::RISK_TOLERANCE_HIGH}) {
    inputs.request.set_risk(risk);
    memory[risk] = Answer(inputs).result.recommended_resources().memory_bytes();
  }
  EXPECT_GT(memory[v1::RISK_TOLERANCE_LOW], memory[v1::RISK_TOLERANCE_MEDIUM]);
  EXPECT_GT(memory[v1::RISK_TOLERANCE_MEDIUM], memory[v1::RISK_TOLERANCE_HIGH]);
  EXPECT_GT(memory[v1::RISK_TOLERANCE_HIGH], 10 * kGiB);
}

TEST(Analyser, ARequestThatSufficesIsNeverRaised) {
  const auto answer = Answer(
      Question("#!/bin/bash\n#SBATCH --mem=11G -t 10\n", {Ran("2", 10, 500), Ran("1", 10, 500)}));
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 11 * kGiB);
  EXPECT_EQ(answer.result.recommended_resources().walltime_seconds(), 600);
  EXPECT_EQ(answer.result.right_size().class_(), "none");
}

TEST(Analyser, FiguresOfTheCommandLineStandForTheScripts) {
  auto inputs = Question(kTrain, {Ran("2", 10, 500), Ran("1", 10, 500)});
  inputs.request.set_memory_bytes(4 * kGiB);
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.recommended_resources().host_ram_requested_bytes(), 4 * kGiB);
  ASSERT_EQ(answer.result.failure_risk_size(), 1);
  EXPECT_THAT(Patched(inputs, answer), HasSubstr("--mem=14G"));
}

TEST(Analyser, CoresAreLoweredToTheirMeasuredPeak) {
  auto run = Ran("1", 1, 100);
  run.mutable_execution()->mutable_cpu_cores_used_peak()->set_value(3.1);
  const auto answer = Answer(Question("#!/bin/bash\n#SBATCH -c 8 --mem-per-cpu=1G -t 5\n", {run}));
  EXPECT_EQ(answer.result.recommended_resources().cpu_cores(), 3);
  EXPECT_EQ(answer.result.right_size().class_(), "memory_lower+cpu_lower+walltime_lower");
  const auto inputs = Question("#!/bin/bash\n#SBATCH -n 8 --mem=1600M -t 5\n", {run});
  EXPECT_EQ(Answer(inputs).result.recommended_resources().cpu_cores(), 8) << "tasks keep a core";
}

TEST(Analyser, NoPatchGivesNumbersOnly) {
  auto inputs = Question(kTrain, PublishedRuns());
  inputs.request.set_no_patch(true);
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 15 * kGiB);
  EXPECT_EQ(answer.result.right_size().class_(), "none");
  EXPECT_EQ(answer.result.artifacts_size(), 0);
  EXPECT_FALSE(answer.patch.has_value());
}

TEST(Analyser, PartitionDefaultsAndLimitsAreUsedWhenKnown) {
  auto inputs = Question("#!/bin/bash\n#SBATCH -c 4\n", {Ran("1", 2, 7000)});
  inputs.facts.emplace();
  auto* partition = inputs.facts->add_partitions();
  partition->set_name("main");
  partition->set_is_default(true);
  partition->set_default_memory_per_cpu_bytes(kGiB);
  partition->set_default_walltime_seconds(3600);
  partition->set_max_walltime_seconds(7200);
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.recommended_resources().host_ram_requested_bytes(), 4 * kGiB);
  EXPECT_EQ(answer.result.recommended_resources().walltime_seconds(), 7200);
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("allows at most")));
}

TEST(Analyser, QuantilesNeedFiveMeasuredRuns) {
  std::vector<data::v1::RecordedRun> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(Ran(std::to_string(i), 4 + 0.1 * i, 100 + i));
  EXPECT_EQ(Answer(Question(kTrain, runs)).result.quantiles_size(), 0);
  runs.push_back(Ran("9", 4.2, 102));
  const auto answer = Answer(Question(kTrain, runs));
  ASSERT_EQ(answer.result.quantiles_size(), 2);
  const auto& q = answer.result.quantiles(0);
  EXPECT_EQ(q.resource(), "host_ram_bytes");
  EXPECT_LT(q.p10(), q.p50());
  EXPECT_LT(q.p50(), q.p90());
  EXPECT_FALSE(q.has_p99());
}

TEST(Analyser, ScriptsThatSbatchWouldRefuseAreToldSo) {
  const auto answer = Answer(Question("#!/bin/bash\n#SBATCH --mem=4GiB\n#SBATCH --tine=5\necho\n"));
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("line 2: sbatch would refuse")));
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("did you mean --time?")));
}

TEST(Analyser, AMultiNodeJobIsSizedByNode) {
  const auto inputs = Question("#!/bin/bash\n#SBATCH -N 2 --mem=64G -t 60\n",
                               {Ran("2", 10, 3000), Ran("1", 10, 3000)});
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.recommended_resources().host_ram_requested_bytes(), 128 * kGiB);
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 28 * kGiB);
  EXPECT_THAT(Patched(inputs, answer), HasSubstr("--mem=14G"));
}

TEST(Analyser, ASourceFileGetsAnHonestAnswer) {
  auto inputs = Question("import torch\n", {}, "train.py");
  inputs.request.set_memory_bytes(8 * kGiB);
  const auto answer = Answer(inputs);
  EXPECT_EQ(answer.result.confidence(), v1::CONFIDENCE_LABEL_LOW);
  EXPECT_EQ(answer.result.recommended_resources().memory_bytes(), 8 * kGiB);
  EXPECT_FALSE(answer.result.recommended_resources().has_cpu_cores());
  EXPECT_THAT(Warnings(answer), Contains(HasSubstr("a source file carries no resource request")));
}

TEST(Analyser, OtherManifestsAndDamagedBundlesAreErrors) {
  auto inputs = Question("kind: Job\n", {}, "job.yaml");
  inputs.request.mutable_bundle()->mutable_key()->set_source_type(
      common::v1::SOURCE_TYPE_KUBERNETES);
  EXPECT_EQ(Analyse(inputs).error().code(), Code::kUnimplemented);
  auto damaged = Question(kTrain);
  damaged.request.mutable_bundle()->mutable_files(0)->set_content("other");
  EXPECT_EQ(Analyse(damaged).error().code(), Code::kInvalidArgument);
  AnalyseInputs empty;
  EXPECT_EQ(Analyse(empty).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace expanse::intelligence::analyse
