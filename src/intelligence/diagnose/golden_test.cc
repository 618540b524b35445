// SPDX-License-Identifier: Apache-2.0
// The published example of a diagnosis, from evidence that leads to it.
#include <fstream>
#include <sstream>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/units.h"
#include "intelligence/diagnose/diagnose.h"
#include "rpc/json.h"

namespace expanse::intelligence::diagnose {
namespace {

namespace json = boost::json;

constexpr char kDiagnosed[] = "7f3e9a2b-0000-7000-8000-000000000001";
constexpr char kSimilar[] = "5b8e1f04-0000-7000-8000-000000000002";

CaseInputs PublishedExample() {
  CaseInputs in;
  in.compute_name = "hpc-01";
  auto& run = in.execution;
  run.set_execution_id(kDiagnosed);
  run.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  run.set_job_name("train");
  run.set_scheduler_state("OUT_OF_MEMORY");
  run.set_status(common::v1::EXECUTION_STATUS_FAILED);
  run.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  run.set_ending_cause(common::v1::ENDING_CAUSE_MEMORY_LIMIT);
  run.mutable_runtime_seconds()->set_value(2531);
  run.mutable_requested()->set_memory_bytes(24 * kGiB);
  run.mutable_requested()->set_memory_form("mem");
  run.mutable_requested()->set_cpu_cores(16);
  run.mutable_requested()->set_gpu_count(1);
  run.set_gpu_model("NVIDIA H100 80GB HBM3");
  run.set_gpu_memory_total_bytes(85520809984);
  run.mutable_gpu_memory_peak_bytes()->set_value(33500000000);
  run.mutable_gpu_utilisation_pct()->set_value(91);
  run.mutable_memory_peak_enforced()->set_value(24 * kGiB);
  run.mutable_memory_peak_enforced()->set_bound(common::v1::BOUND_AT_LEAST);
  in.observations.push_back({"nvidia-smi", "cuda_version", "12.4"});
  for (int i = 0; i < 9; ++i) {
    auto& r = in.similar.emplace_back();
    r.set_basis("exact_bundle");
    r.set_similarity(1);
    auto* e = r.mutable_execution();
    e->set_execution_id(i == 0 ? kSimilar
                               : "5b8e1f04-0000-7000-8000-00000000001" + std::to_string(i));
    e->set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
    e->mutable_memory_need()->set_value(38869890560 + i * kMiB);  // 36.2 GiB
  }
  return in;
}

json::value Golden() {
  std::ifstream file(EXPANSE_TESTDATA "/published_example.json");
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// Every member of `part` is in `whole` with the same value; lists hold the wanted items in order.
bool Contains(const json::value& whole, const json::value& part, const std::string& path) {
  if (part.is_object()) {
    for (const auto& kv : part.as_object()) {
      const auto* member = whole.is_object() ? whole.as_object().if_contains(kv.key()) : nullptr;
      if (member == nullptr) {
        ADD_FAILURE() << path << "." << kv.key() << " is absent";
        return false;
      }
      if (!Contains(*member, kv.value(), path + "." + std::string(kv.key()))) return false;
    }
    return true;
  }
  const bool equal = part.is_number() && whole.is_number()
                         ? part.to_number<double>() == whole.to_number<double>()
                         : whole == part;
  EXPECT_TRUE(equal) << path << ": " << json::serialize(whole) << " instead of "
                     << json::serialize(part);
  return equal;
}

TEST(PublishedDiagnosis, HasItsWordsAndItsShape) {
  const auto result = Diagnose(PublishedExample());
  const json::value whole = json::parse(rpc::ToJson(result).value());
  const json::value golden = Golden();
  const json::object& want = golden.at("result").as_object();
  EXPECT_EQ(result.root_cause(), std::string(want.at("root_cause").as_string()));
  EXPECT_TRUE(Contains(whole.at("confidence"), want.at("confidence"), "confidence"));
  EXPECT_TRUE(Contains(whole.at("display"), want.at("display"), "display"));
  ASSERT_EQ(result.evidence_size(), 1);
  EXPECT_EQ(result.evidence(0).execution_id(), kSimilar);
  EXPECT_EQ(result.evidence(0).summary(), "9 similar workloads succeeded with 36G or more");
  // Exactly these rows have a status.
  EXPECT_EQ(whole.at("display").at("field_status").as_object().size(),
            want.at("display").at("field_status").as_object().size());
}

TEST(OutOfMemory, CallsAPeakSampledOnlyWhenItWas) {
  auto in = PublishedExample();
  auto& peak = *in.execution.mutable_memory_peak_enforced();
  EXPECT_NE(Diagnose(in).root_cause().find("The sampled peak of"), std::string::npos);
  peak.set_reason("killed at the memory limit");
  EXPECT_NE(Diagnose(in).root_cause().find("The recorded peak of"), std::string::npos);
}

TEST(Timeout, SaysHowLittleProcessorTimeWasUsedAndThatTheLimitComesLate) {
  CaseInputs in;
  auto& run = in.execution;
  run.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  run.set_scheduler_state("TIMEOUT");
  run.set_status(common::v1::EXECUTION_STATUS_FAILED);
  run.set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
  run.mutable_requested()->set_walltime_seconds(60);
  run.mutable_runtime_seconds()->set_value(61);
  run.mutable_cpu_seconds()->set_value(0.0097);
  EXPECT_NE(Diagnose(in).root_cause().find("used 0.01 s of"), std::string::npos);
  EXPECT_EQ(Diagnose(in).root_cause().find("with a delay"), std::string::npos);
  run.mutable_runtime_seconds()->set_value(85);
  EXPECT_NE(Diagnose(in).root_cause().find("with a delay"), std::string::npos);
}

TEST(Requeued, AnEndedAttemptNamesTheOneThatFollows) {
  CaseInputs in;
  auto& run = in.execution;
  run.set_scheduler_state("REQUEUED");
  run.set_status(common::v1::EXECUTION_STATUS_CANCELLED);
  run.set_outcome(common::v1::EXECUTION_OUTCOME_UNKNOWN);
  run.set_ending_cause(common::v1::ENDING_CAUSE_REQUEUED);
  run.set_attempt(1);
  EXPECT_NE(Diagnose(in).root_cause().find("put back into the queue; attempt 2 follows"),
            std::string::npos);
}

TEST(PublishedDiagnosis, PipelineSaysWhatEachStageFound) {
  const auto result = Diagnose(PublishedExample());
  const auto summary = [&](int i) { return result.pipeline(i).summary(); };
  EXPECT_EQ(summary(0), "execution record, scheduler status");
  EXPECT_EQ(summary(1), "9 similar executions");
  EXPECT_EQ(summary(3), "no stacks captured");
  EXPECT_EQ(result.pipeline(3).status(), v1::PIPELINE_STAGE_STATUS_SKIPPED);
  EXPECT_EQ(summary(5), "host_out_of_memory");
  EXPECT_EQ(summary(6), "deterministic");
}

TEST(PublishedDiagnosis, NamesWhatItCouldNotSeeAndInventsNoGpu) {
  CaseInputs in = PublishedExample();
  auto& run = in.execution;
  run.mutable_requested()->clear_gpu_count();
  run.clear_gpu_model();
  run.clear_gpu_memory_total_bytes();
  run.clear_gpu_memory_peak_bytes();
  run.clear_gpu_utilisation_pct();
  run.clear_memory_peak_enforced();
  (*run.mutable_unknown())["memory_peak_enforced"] = "the cgroup was gone";
  in.observations.clear();
  const auto display = Diagnose(in).display();
  const auto& s = display.resource_snapshot();
  EXPECT_FALSE(s.has_gpu_count());
  EXPECT_FALSE(s.has_gpu_utilisation_pct());
  EXPECT_EQ(s.unknown().count("gpu_utilisation_pct"), 0u);
  EXPECT_FALSE(s.has_host_ram_observed_peak_bytes());
  EXPECT_EQ(s.unknown().at("host_ram_observed_peak_bytes"), "the cgroup was gone");
  EXPECT_EQ(display.field_status().at("host_ram_observed_peak_gb"),
            v1::DIAGNOSE_FIELD_STATUS_UNKNOWN);
}

TEST(Recurrence, CountsOtherRunsOfTheSameSourceAndNeedsTwo) {
  CaseInputs in = PublishedExample();
  in.similar.resize(1);
  EXPECT_FALSE(Diagnose(in).display().has_recurrence());
  in.similar.push_back(in.similar[0]);
  in.similar[1].mutable_execution()->set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  in.similar.push_back(in.similar[0]);
  in.similar[2].mutable_execution()->set_outcome(common::v1::EXECUTION_OUTCOME_CANCELLED);
  in.similar.push_back(in.similar[0]);
  in.similar[3].set_basis("user_history");
  const auto recurrence = Diagnose(in).display().recurrence();
  EXPECT_DOUBLE_EQ(recurrence.mean(), 0.5);
  EXPECT_EQ(recurrence.success_count(), 1);
  EXPECT_EQ(recurrence.basis(), "exact_bundle");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
