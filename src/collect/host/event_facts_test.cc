// SPDX-License-Identifier: Apache-2.0
#include "collect/host/event_facts.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace expanse::collect::host {
namespace {

namespace v1 = expanse::common::v1;

TEST(MeasureMemory, AnEndedCgroupWithoutCacheHasTwoExactNumbers) {
  PeakInput input;
  input.peak = 100 * kMiB;
  input.usage_now = 2 * kMiB;
  input.cache_now = 512 * kKiB;
  input.limit_hits = 0;
  input.oom_kills = 0;
  input.ended = true;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.value(), 100 * kMiB);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_EXACT);
  EXPECT_EQ(peak.need.value(), 100 * kMiB);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_EXACT);
}

TEST(MeasureMemory, CacheChargedAtTheEndIsTakenOffTheNeed) {
  PeakInput input;
  input.peak = 100 * kMiB;
  input.usage_now = 45 * kMiB;
  input.cache_now = 40 * kMiB;
  input.limit_hits = 0;
  input.ended = true;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_EXACT);
  EXPECT_EQ(peak.need.value(), 60 * kMiB);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
  EXPECT_FALSE(peak.need.reason().empty());
}

TEST(MeasureMemory, OnceTheLimitWasReachedTheCacheAtTheEndSaysNothing) {
  // Reclaim has taken cache away that was there at the peak: only what was sampled is a floor.
  PeakInput input;
  input.peak = 100 * kMiB;
  input.usage_now = 10 * kMiB;
  input.cache_now = 1 * kMiB;
  input.limit_hits = 7;
  input.need_floor = 55 * kMiB;
  input.ended = true;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.need.value(), 55 * kMiB);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
}

TEST(MeasureMemory, APeakAtTheLimitIsAFloorWhereKillsAreNotCounted) {
  // The job's cgroup on v1: no count of kills, and failcnt stays 0 on newer kernels.
  PeakInput input;
  input.peak = 100 * kMiB - 8 * 4096;
  input.limit = 100 * kMiB;
  input.limit_hits = 0;
  input.usage_now = 5 * kMiB;
  input.cache_now = 0;
  input.ended = true;
  MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_AT_LEAST);
  EXPECT_EQ(peak.need.value(), 5 * kMiB) << "how much was reclaimed is not known";
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
  input.oom_kills = 0;
  peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_EXACT) << "at the limit by cache, nobody was killed";
}

TEST(MeasureMemory, AKillMakesBothNumbersFloors) {
  PeakInput input;
  input.peak = 100 * kMiB;
  input.oom_kills = 1;
  input.ended = true;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_AT_LEAST);
  EXPECT_EQ(peak.need.value(), 100 * kMiB);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
}

TEST(MeasureMemory, ARunningCgroupHasFloorsOnly) {
  PeakInput input;
  input.peak = 100 * kMiB;
  input.usage_now = 100 * kMiB;
  input.cache_now = 0;
  input.limit_hits = 0;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_EQ(peak.enforced.bound(), v1::BOUND_AT_LEAST);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
}

TEST(MeasureMemory, WithoutAKernelPeakOnlyTheSampledNeedIsKnown) {
  PeakInput input;  // cgroup v2 before Linux 5.19 has no memory.peak
  input.need_floor = 30 * kMiB;
  input.ended = true;
  const MemoryPeak peak = MeasureMemory(input);
  EXPECT_FALSE(peak.enforced.has_value());
  EXPECT_EQ(peak.need.value(), 30 * kMiB);
  EXPECT_EQ(peak.need.bound(), v1::BOUND_AT_LEAST);
}

TEST(MeasureMemory, NothingSeenIsNothingSaid) {
  const MemoryPeak peak = MeasureMemory({});
  EXPECT_FALSE(peak.enforced.has_value());
  EXPECT_FALSE(peak.need.has_value());
}

hook::HookEvent Event(hook::HookKind kind) {
  hook::HookEvent event;
  event.kind = kind;
  event.time_ns = int64_t{1'796'073'456'395} * 1'000'000;
  event.environment = {{"SLURM_JOB_ID", "41"},           {"SLURM_JOB_RESTART_COUNT", "2"},
                       {"SLURM_JOB_NAME", "caf\xe9|\n"}, {"SLURM_JOB_EXIT_CODE2", "139:0"},
                       {"SLURM_ARRAY_JOB_ID", "40"},     {"SLURM_ARRAY_TASK_ID", "3"}};
  return event;
}

TEST(FactsOfEvent, APrologStartsTheRunToTheMillisecond) {
  const auto record = FactsOfEvent(Event(hook::HookKind::kProlog), "n1", {});
  EXPECT_EQ(record.node(), "n1");
  const auto& facts = record.facts();
  EXPECT_EQ(facts.origin(), data::v1::FACT_ORIGIN_HOOK_PROLOG);
  EXPECT_EQ(facts.key().native_id(), "41");
  EXPECT_EQ(facts.key().restart_count(), 2);
  EXPECT_FALSE(facts.key().has_submit_time_ms());
  EXPECT_EQ(facts.key().observed_time_ms(), 1'796'073'456'395);
  EXPECT_EQ(facts.execution().start_time_ms(), 1'796'073'456'395);
  EXPECT_EQ(facts.execution().group().array_task_id(), 3);
  EXPECT_EQ(facts.execution().job_name(), "caf\xef\xbf\xbd|\n");
}

TEST(FactsOfEvent, AnEpilogCarriesTheExitCodeAsSlurmctldHasIt) {
  const auto record = FactsOfEvent(Event(hook::HookKind::kEpilog), "n1", {});
  EXPECT_EQ(record.facts().execution().exit_code(), 139);
  EXPECT_FALSE(record.facts().execution().has_signal());
  EXPECT_EQ(record.facts().execution().end_time_ms(), 1'796'073'456'395);
}

TEST(FactsOfEvent, ATaskHooksEnvironmentTellsNeitherTheAttemptNorTheOwner) {
  // `sbatch` inside a requeued job hands its SLURM_RESTART_COUNT on to the new job; and users
  // export what they like. Believed, each would be a run that never was.
  for (const auto kind : {hook::HookKind::kTaskProlog, hook::HookKind::kTaskEpilog}) {
    auto event = Event(kind);
    event.step_id = "batch";
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"SLURM_RESTART_COUNT", "2"},
                                                          {"SLURM_JOB_START_TIME", "1500000000"},
                                                          {"SLURM_JOB_SLUID", "s00000000000FF"},
                                                          {"SLURM_JOB_USER", "bob"},
                                                          {"SLURM_JOB_WORK_DIR", "/root"}})
      event.environment[name] = value;
    const auto record = FactsOfEvent(event, "n1", {});
    const auto& key = record.facts().key();
    EXPECT_EQ(key.native_id(), "41");
    EXPECT_FALSE(key.has_restart_count());
    EXPECT_FALSE(key.has_start_time_ms());
    EXPECT_EQ(key.sluid(), "");
    EXPECT_EQ(record.facts().execution().user(), "");
    EXPECT_EQ(record.facts().execution().job_name(), "");
    EXPECT_EQ(record.facts().execution().work_dir(), "");
    EXPECT_FALSE(record.facts().execution().has_group());
  }
}

TEST(FactsOfEvent, ATaskEpilogCarriesTheStepsExactPeaksAndTheJobsAsFar) {
  auto event = Event(hook::HookKind::kTaskEpilog);
  event.step_id = "0";
  event.step.emplace();
  event.step->peak = 64 * kMiB;
  event.step->cpu_ns = 1'500'000'000;
  event.step->oom_kills = 0;
  event.job.emplace();
  event.job->peak = 70 * kMiB;
  event.job->cpu_ns = 2'000'000'000;
  auto record = FactsOfEvent(event, "n1", {.step = {.need = 50 * kMiB}, .step_ended = true});
  ASSERT_EQ(record.facts().execution().steps_size(), 1);
  const auto& step = record.facts().execution().steps(0);
  EXPECT_EQ(record.facts().step_id(), "0");
  EXPECT_EQ(step.memory_peak_enforced().value(), 64 * kMiB);
  EXPECT_EQ(step.memory_peak_enforced().bound(), v1::BOUND_EXACT);
  EXPECT_EQ(step.memory_need().value(), 50 * kMiB);
  EXPECT_EQ(step.memory_need().bound(), v1::BOUND_AT_LEAST);
  EXPECT_DOUBLE_EQ(step.cpu_seconds().value(), 1.5);
  EXPECT_EQ(step.oom_kills(), 0);
  EXPECT_EQ(step.nodes(0), "n1");
  EXPECT_EQ(record.facts().execution().memory_peak_enforced().bound(), v1::BOUND_AT_LEAST);
  event.step_id = "batch";
  record = FactsOfEvent(event, "n1", {});
  EXPECT_EQ(record.facts().execution().memory_peak_enforced().bound(), v1::BOUND_EXACT);
  EXPECT_DOUBLE_EQ(record.facts().execution().cpu_seconds().value(), 2.0);
}

TEST(FactsOfEvent, AStepWhoseOtherTasksGoOnHasFloorsAndNoEnd) {
  auto event = Event(hook::HookKind::kTaskEpilog);
  event.step_id = "0";
  event.step.emplace();
  event.step->peak = 64 * kMiB;
  event.step->cpu_ns = 1'500'000'000;
  const auto record = FactsOfEvent(event, "n1", {});
  const auto& step = record.facts().execution().steps(0);
  EXPECT_EQ(step.memory_peak_enforced().bound(), v1::BOUND_AT_LEAST);
  EXPECT_NE(step.memory_peak_enforced().reason(), "");
  EXPECT_EQ(step.cpu_seconds().bound(), v1::BOUND_AT_LEAST);
  EXPECT_FALSE(step.has_end_time_ms());
}

TEST(TasksOnNode, IsReadFromTheStepsLayout) {
  auto event = Event(hook::HookKind::kTaskEpilog);
  event.step_id = "0";
  EXPECT_EQ(TasksOnNode(event), std::nullopt);
  event.environment["SLURM_TASKS_PER_NODE"] = "2(x3),1";
  EXPECT_EQ(TasksOnNode(event), std::nullopt);
  event.environment["SLURM_NODEID"] = "2";
  EXPECT_EQ(TasksOnNode(event), 2);
  event.environment["SLURM_NODEID"] = "3";
  EXPECT_EQ(TasksOnNode(event), 1);
  event.environment["SLURM_NODEID"] = "4";
  EXPECT_EQ(TasksOnNode(event), std::nullopt);
  event.environment["SLURM_TASKS_PER_NODE"] = "2(x,";
  EXPECT_EQ(TasksOnNode(event), std::nullopt);
  event.step_id = "batch";
  EXPECT_EQ(TasksOnNode(event), 1);
}

TEST(FactsOfEvent, AJobWithAKilledStepHasAFloorOnly) {
  auto event = Event(hook::HookKind::kTaskEpilog);
  event.step_id = "batch";
  event.job.emplace();
  event.job->peak = 70 * kMiB;
  const auto record = FactsOfEvent(event, "n1", {.job_killed = true});
  EXPECT_EQ(record.facts().execution().memory_peak_enforced().bound(), v1::BOUND_AT_LEAST);
  EXPECT_EQ(record.facts().execution().memory_need().value(), 70 * kMiB);
}

TEST(MeasureMemory, CacheThatWentWithItsFileIsNoNeed) {
  PeakInput input;
  input.peak = 143 * kMiB;
  input.usage_now = kMiB;
  input.cache_now = 0;
  input.ended = true;
  input.need_floor = 30 * kMiB;
  input.cache_most = 220 * kMiB;
  EXPECT_EQ(MeasureMemory(input).need.value(), 30 * kMiB);
  EXPECT_EQ(MeasureMemory(input).need.bound(), v1::BOUND_AT_LEAST);
  input.cache_most.reset();
  input.cache_seen = 110 * kMiB;
  EXPECT_EQ(MeasureMemory(input).need.value(), 33 * kMiB);
  EXPECT_EQ(MeasureMemory(input).need.bound(), v1::BOUND_AT_LEAST);
}

TEST(MeasureMemory, AJobThatReadAndWroteNothingNeededItsPeak) {
  PeakInput input;
  input.peak = 148 * kMiB;
  input.usage_now = kMiB;
  input.cache_now = 0;
  input.cache_most = 4096;
  input.need_floor = 40 * kMiB;
  input.ended = true;
  EXPECT_EQ(MeasureMemory(input).need.value(), 148 * kMiB) << "a spike between two samples";
  EXPECT_EQ(MeasureMemory(input).need.bound(), v1::BOUND_EXACT);
}

}  // namespace
}  // namespace expanse::collect::host
