// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/slurm_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"

namespace expanse::collect::slurm {
namespace {

using ::testing::ElementsAre;

TEST(SlurmText, SizesKeepTheUnitThatIsPrintedAndTakeTheFieldsUnitElse) {
  EXPECT_EQ(ParseSlurmSize("100M", kMiB), 100 * kMiB);
  EXPECT_EQ(ParseSlurmSize("999G", kMiB), 999 * kGiB);
  EXPECT_EQ(ParseSlurmSize("2.50G", kMiB), kGiB * 5 / 2);
  EXPECT_EQ(ParseSlurmSize("64520K", 1), 64520 * kKiB);
  EXPECT_EQ(ParseSlurmSize("4000", kMiB), 4000 * kMiB);
  EXPECT_EQ(ParseSlurmSize("389120", 1), 389120);
  EXPECT_EQ(ParseSlurmSize("4Gn", kMiB), 4 * kGiB);
  for (const char* bad : {"", "M", "x", "-1M", "nan", "1e30P", "UNLIMITED"})
    EXPECT_EQ(ParseSlurmSize(bad, kMiB), std::nullopt) << bad;
}

TEST(SlurmText, DurationsHaveDaysHoursAndFractions) {
  EXPECT_EQ(ParseSlurmDuration("00:05:00"), 300);
  EXPECT_EQ(ParseSlurmDuration("9-00:00:00"), 9 * 86'400);
  EXPECT_EQ(ParseSlurmDuration("10:00"), 600);
  EXPECT_DOUBLE_EQ(*ParseSlurmDuration("00:01.762"), 1.762);
  for (const char* bad : {"213503982334-14:25:51", "", "UNLIMITED", "Partition_Limit", "5", "a:b",
                          "1:2:3:4", "-1:00"})
    EXPECT_EQ(ParseSlurmDuration(bad), std::nullopt) << bad;
}

TEST(SlurmText, TimesAreEpochSecondsOrIsoInUtcAndNeverZero) {
  EXPECT_EQ(ParseSlurmTime("1796079253"), 1796079253);
  EXPECT_EQ(ParseSlurmTime("2026-11-30T21:16:07"), 1796073367);
  for (const char* none : {"0", "", "None", "Unknown", "N/A", "tomorrow", "4294967294"})
    EXPECT_EQ(ParseSlurmTime(none), std::nullopt) << none;
}

TEST(SlurmText, TresListsGiveCountsMemoryAndTheGpuType) {
  const Tres tres = ParseTres("billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=400M,node=2", kMiB);
  EXPECT_EQ(tres.cpus, 4);
  EXPECT_EQ(tres.memory_bytes, 400 * kMiB);
  EXPECT_EQ(tres.nodes, 2);
  EXPECT_EQ(tres.gpus, 2);
  EXPECT_EQ(tres.gpu_type, "a100");
  EXPECT_TRUE(ParseTres("", kMiB).empty);
  EXPECT_EQ(ParseTres("cpu=1,mem=1M,node=1", kMiB).gpus, std::nullopt);
  EXPECT_EQ(ParseTres("cpu=0,node=0", kMiB).cpus, std::nullopt);
  EXPECT_EQ(ParseTres("cpu=0,node=0", kMiB).nodes, std::nullopt);
  EXPECT_EQ(ParseTres("gres/gpu=0", kMiB).gpus, 0);
  EXPECT_EQ(ParseTres("gres/gpu:a100=1,gres/gpu:v100=1,gres/gpu=2", kMiB).gpu_type, "");
  EXPECT_EQ(ParseTres("cpu=00:00:07,mem=389120", 1).cpu_seconds, 7);
}

TEST(SlurmText, HostListsExpandWithPaddingAndSeveralBrackets) {
  EXPECT_THAT(*ExpandHostList("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ExpandHostList("n[1-2,05],m3"), ElementsAre("n1", "n2", "n05", "m3"));
  EXPECT_THAT(*ExpandHostList("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(*ExpandHostList("r[1-2]n[1-2]x"), ElementsAre("r1n1x", "r1n2x", "r2n1x", "r2n2x"));
  EXPECT_THAT(*ExpandHostList("None assigned"), ElementsAre());
  for (const char* bad :
       {"n[", "n[1-", "n]1", "n[2-1]", "n[a]", "n[1-2],", "n[[1]]", "n[1-999999999]"})
    EXPECT_EQ(ExpandHostList(bad), std::nullopt) << bad;
}

TEST(SlurmText, EverySpellingOfASegfaultIsSignal11) {
  for (const ExitStatus& exit :
       {FromWaitStatus(35584), *ParseScontrolExit("139:0"), *ParseSacctExit("11:0")}) {
    EXPECT_EQ(exit.signal, 11);
    EXPECT_EQ(exit.code, 139);
  }
  EXPECT_EQ(ParseSacctExit("0:11")->signal, 11);  // of a step
  EXPECT_EQ(ParseSacctExit("0:11")->code, std::nullopt);
}

TEST(SlurmText, AnExitCodeThatSacctMayHaveShiftedSaysSo) {
  EXPECT_NE(ParseSacctExit("11:0")->ambiguity, "");
  EXPECT_NE(ParseSacctExit("6:0")->ambiguity, "");
  EXPECT_EQ(ParseSacctExit("6:0")->code, 6);
  EXPECT_EQ(ParseSacctExit("6:0")->signal, std::nullopt);
  EXPECT_EQ(ParseSacctExit("3:0")->ambiguity, "");
  EXPECT_EQ(ParseSacctExit("127:0")->code, 127);
  EXPECT_EQ(FromWaitStatus(2816).code, 11);  // scontrol and squeue are exact
  EXPECT_EQ(FromWaitStatus(2816).signal, std::nullopt);
  EXPECT_EQ(FromWaitStatus(2816).ambiguity, "");
}

TEST(SlurmText, PseudoSignal125IsOutOfMemoryAndNoSignal) {
  for (const ExitStatus& exit :
       {FromWaitStatus(253), *ParseScontrolExit("0:125"), *ParseSacctExit("0:125")}) {
    EXPECT_TRUE(exit.out_of_memory);
    EXPECT_EQ(exit.signal, std::nullopt);
    EXPECT_EQ(exit.code, std::nullopt);
  }
  EXPECT_FALSE(ParseSacctExit("").has_value());  // of a step that a node failure ended
}

}  // namespace

}  // namespace expanse::collect::slurm
