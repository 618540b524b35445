// SPDX-License-Identifier: Apache-2.0
#include "collect/host/cgroup_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "collect/host/node_reader.h"

namespace expanse::collect::host {
namespace {

using platform::Fs;

Fs Tree(const std::string& name) { return Fs(std::string(EXPANSE_TESTDATA "/host/") + name); }

std::vector<CgroupUnit> ListUnits(CgroupReader& reader) {
  EXPECT_TRUE(reader.Refresh().ok());
  return reader.units();
}

CgroupUnit FindUnit(CgroupReader& reader, const std::string& job, const std::string& step) {
  for (const auto& unit : ListUnits(reader))
    if ((unit.job_id == job || unit.sluid == job) && unit.step_id == step) return unit;
  ADD_FAILURE() << "no unit " << job << " " << step;
  return {};
}

TEST(CgroupV1, FindsJobsAndStepsOfItsOwnNodeOnly) {
  const Fs fs = Tree("cgroup-v1");
  const auto reader = *CgroupReader::Detect(fs, "nd1");
  EXPECT_EQ(reader->version(), 1);
  const auto units = ListUnits(*reader);
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[0].job_id, "1");
  EXPECT_EQ(units[0].step_id, "") << "the job comes before its steps";
  EXPECT_EQ(units[0].uid, 1001u);
  EXPECT_EQ(units[1].step_id, "0");
  EXPECT_EQ(units[2].step_id, "batch");
  EXPECT_EQ(units[3].step_id, "extern");
  const auto other = *CgroupReader::Detect(fs, "nd2");
  EXPECT_TRUE(ListUnits(*other).empty());
}

TEST(CgroupV1, ReadsARecordedStepThatAllocatedAndWroteAFile) {
  // 60 MiB allocated and 20 MiB written: the charge holds both, the need only the first.
  const Fs fs = Tree("cgroup-v1");
  const auto reader = *CgroupReader::Detect(fs, "nd1");
  const CgroupUsage usage = reader->Read(FindUnit(*reader, "1", "0"), Depth::kAll);
  EXPECT_EQ(usage.usage, 91553792);
  EXPECT_EQ(usage.peak, 91676672);
  EXPECT_EQ(usage.limit, 157286400);
  EXPECT_EQ(usage.anon, 66023424);
  EXPECT_EQ(usage.shmem, 0);
  EXPECT_EQ(usage.file, 24330240);
  EXPECT_EQ(usage.reclaimable, 24330240);
  EXPECT_EQ(usage.Need(), 67223552);
  EXPECT_EQ(usage.oom_kills, 0);
  EXPECT_GT(usage.cpu_ns, 0);
  EXPECT_FALSE(reader->Processes(FindUnit(*reader, "1", "0")).empty());
}

TEST(CgroupV1, TheJobHasItsOwnLimitAndPeak) {
  const Fs fs = Tree("cgroup-v1");
  const auto reader = *CgroupReader::Detect(fs, "nd1");
  const CgroupUsage usage = reader->Read(FindUnit(*reader, "1", ""), Depth::kAll);
  EXPECT_EQ(usage.limit, 209715200);
  EXPECT_GT(usage.peak, 91676672);
  EXPECT_FALSE(usage.oom_kills.has_value()) << "not counted in the job's cgroup on version 1";
}

TEST(CgroupV1, KillsOfTasksThatCameAndWentAddUp) {
  const platform::TempDir dir;
  const Fs fs(dir.path());
  const std::string step = dir.path() + "/sys/fs/cgroup/memory/slurm_nd1/uid_1/job_1/step_0";
  const auto set = [&](const std::string& below, int kills) {
    std::filesystem::create_directories(step + below);
    std::ofstream(step + below + "/memory.oom_control")
        << "oom_kill_disable 0\nunder_oom 0\noom_kill " << kills << "\n";
  };
  set("", 0);
  set("/task_0", 1);
  std::ofstream(step + "/memory.usage_in_bytes") << "1\n";
  const auto reader = *CgroupReader::Detect(fs, "nd1");
  const CgroupUnit unit = FindUnit(*reader, "1", "0");
  EXPECT_EQ(reader->Read(unit, Depth::kAll).oom_kills, 1);
  std::filesystem::remove_all(step + "/task_0");
  EXPECT_EQ(reader->Read(unit, Depth::kAll).oom_kills, 1);
  set("/task_1", 1);
  EXPECT_EQ(reader->Read(unit, Depth::kAll).oom_kills, 2);
  std::filesystem::remove_all(step + "/task_1");
  set("/task_2", 1);
  EXPECT_EQ(reader->Read(unit, Depth::kAll).oom_kills, 3) << "one for one";
}

TEST(CgroupV1, ACgroupThatWentAwayReadsAsUnknownNotAsZero) {
  const Fs fs = Tree("cgroup-v1");
  const auto reader = *CgroupReader::Detect(fs, "nd1");
  CgroupUnit gone = FindUnit(*reader, "1", "0");
  gone.path += "_gone";
  const CgroupUsage usage = reader->Read(gone, Depth::kAll);
  EXPECT_FALSE(usage.usage || usage.peak || usage.cpu_ns || usage.Need());
}

TEST(CgroupV2, FindsJobsNamedById) {
  const Fs fs = Tree("cgroup-v2-24.11");
  const auto reader = *CgroupReader::Detect(fs, "cg24");
  EXPECT_EQ(reader->version(), 2);
  const auto units = ListUnits(*reader);
  EXPECT_TRUE(std::any_of(units.begin(), units.end(),
                          [](const auto& u) { return u.job_id == "2" && u.step_id.empty(); }));
  for (const auto& unit : units)
    EXPECT_NE(unit.path.find("cg24_slurmstepd.scope"), std::string::npos);
}

TEST(CgroupV2, ReadsLimitAndPeakOfTheUsersPartOfAStep) {
  const Fs fs = Tree("cgroup-v2-24.11");
  const auto reader = *CgroupReader::Detect(fs, "cg24");
  const CgroupUsage step = reader->Read(FindUnit(*reader, "4", "0"), Depth::kAll);
  EXPECT_EQ(step.peak, 4259840);
  EXPECT_EQ(step.limit, 209715200);
  EXPECT_EQ(step.oom_kills, 0);
  EXPECT_GT(step.cpu_ns, 0);
  EXPECT_EQ(step.usage, 45056);
  EXPECT_EQ(step.Need(), 45056 - 8192);
}

TEST(CgroupV2, CountsTheKillsOfAStepThatRanOutOfMemory) {
  const Fs fs = Tree("cgroup-v2-24.11");
  const auto reader = *CgroupReader::Detect(fs, "cg24");
  const CgroupUsage job = reader->Read(FindUnit(*reader, "2", ""), Depth::kAll);
  EXPECT_EQ(job.peak, 125829120);
  EXPECT_EQ(job.limit, 125829120);
  EXPECT_EQ(job.oom_kills, 1);
  EXPECT_EQ(job.limit_hits, 121);
  EXPECT_EQ(reader->Read(FindUnit(*reader, "2", "batch"), Depth::kAll).oom_kills, 1);
}

TEST(CgroupV2, FindsJobsNamedBySluid) {
  const Fs fs = Tree("cgroup-v2-26.05");
  const auto reader = *CgroupReader::Detect(fs, "cg26");
  const CgroupUnit unit = FindUnit(*reader, "s1ZDM8Q6FTPJ00", "batch");
  EXPECT_EQ(unit.job_id, "");
  EXPECT_EQ(unit.sluid, "s1ZDM8Q6FTPJ00");
  EXPECT_EQ(reader->Read(unit, Depth::kAll).peak, 125612032);
}

TEST(CgroupReader, AHostWithoutCgroupsIsNamed) {
  const platform::TempDir empty;
  const Fs fs(empty.path());
  const auto reader = CgroupReader::Detect(fs, "n1");
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code(), Code::kNotFound);
}

TEST(NodeReader, ReadsBusyTimeAndAvailableMemory) {
  const NodeUsage node = ReadNode(Tree("cgroup-v1"));
  EXPECT_EQ(node.cpus, 2);
  ASSERT_TRUE(node.cpu_busy_seconds && node.memory_available && node.memory_total);
  EXPECT_GT(*node.cpu_busy_seconds, 0);
  EXPECT_GT(*node.memory_available, int64_t{1} << 30);
  EXPECT_LE(*node.memory_available, *node.memory_total);
}

TEST(NodeReader, NothingIsReadFromAnEmptyTree) {
  const platform::TempDir empty;
  const NodeUsage node = ReadNode(Fs(empty.path()));
  EXPECT_FALSE(node.cpu_busy_seconds || node.memory_available || node.cpus);
}

}  // namespace
}  // namespace expanse::collect::host
