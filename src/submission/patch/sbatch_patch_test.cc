// SPDX-License-Identifier: Apache-2.0
#include "submission/patch/sbatch_patch.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/crypto/crypto.h"

namespace expanse::submission {
namespace {

using ::testing::HasSubstr;

std::string Patched(const std::string& text, const WantedRequest& wanted) {
  const auto script = ReadSbatchScript(text);
  const auto request = ReadSbatchRequest(script, "job.sh");
  const auto patch = PatchSbatchScript(text, script, request, wanted);
  auto result = ApplyEdits(text, patch.edits);
  EXPECT_TRUE(result.ok());
  return *result;
}

WantedRequest Memory(int64_t bytes) {
  WantedRequest wanted;
  wanted.memory = Bytes{bytes};
  return wanted;
}
WantedRequest Walltime(int64_t minutes) {
  WantedRequest wanted;
  wanted.walltime = Seconds(minutes * 60);
  return wanted;
}
WantedRequest Cores(int32_t cores) {
  WantedRequest wanted;
  wanted.cores = cores;
  return wanted;
}
WantedRequest Gpus(int32_t gpus) {
  WantedRequest wanted;
  wanted.gpus = gpus;
  return wanted;
}

struct Case {
  const char* name;
  const char* before;  // lines after "#!/bin/bash\n"
  WantedRequest wanted;
  const char* after;
};
class Patches : public ::testing::TestWithParam<Case> {};

const Case kCases[] = {
    {"KeepsUnitAndComment", "#SBATCH --mem=128G   # was too small\n", Memory(15 * kGiB),
     "#SBATCH --mem=15G   # was too small\n"},
    {"KeepsQuotes", "#SBATCH --mem \"128gb\" -N 1\n", Memory(15 * kGiB),
     "#SBATCH --mem \"15gb\" -N 1\n"},
    {"KeepsMebibytesWithoutUnit", "#SBATCH --mem=4000\n", Memory(900 * kMiB),
     "#SBATCH --mem=900\n"},
    {"TakesASmallerUnitWhenItMust", "#SBATCH --mem=4G\n", Memory(1536 * kMiB),
     "#SBATCH --mem=1536M\n"},
    {"RepairsAValueThatSbatchRefuses", "#SBATCH --mem=4GiB\n", Memory(2 * kGiB),
     "#SBATCH --mem=2G\n"},
    {"StaysPerCpu", "#SBATCH --mem-per-cpu=4G\n#SBATCH -n 2 -c 2\n", Memory(6 * kGiB),
     "#SBATCH --mem-per-cpu=1536M\n#SBATCH -n 2 -c 2\n"},
    {"StaysPerGpu", "#SBATCH --mem-per-gpu=40G -G 2\n", Memory(20 * kGiB),
     "#SBATCH --mem-per-gpu=10G -G 2\n"},
    {"DividesAmongNodes", "#SBATCH -N 2 --mem=40G\n", Memory(20 * kGiB),
     "#SBATCH -N 2 --mem=10G\n"},
    {"ChangesTheOneInEffect", "#SBATCH --mem=1G\n#SBATCH --mem=8G\n", Memory(2 * kGiB),
     "#SBATCH --mem=1G\n#SBATCH --mem=2G\n"},
    {"LeavesDeadDirectives", "#SBATCH --mem=8G\necho\n#SBATCH --mem=9G\n", Memory(2 * kGiB),
     "#SBATCH --mem=2G\necho\n#SBATCH --mem=9G\n"},
    {"KeepsHoursMinutesSeconds", "#SBATCH --time=02:00:00\n", Walltime(150),
     "#SBATCH --time=02:30:00\n"},
    {"KeepsPlainMinutes", "#SBATCH -t 120\n", Walltime(150), "#SBATCH -t 150\n"},
    {"KeepsJoinedShortOption", "#SBATCH -t120\n", Walltime(150), "#SBATCH -t150\n"},
    {"KeepsDays", "#SBATCH -t 2-0\n", Walltime(1500), "#SBATCH -t 1-1\n"},
    {"KeepsDaysWithHours", "#SBATCH -t 2-00:00:00\n", Walltime(90), "#SBATCH -t 0-01:30:00\n"},
    {"LeavesAnEqualTime", "#SBATCH -t 1:00:00\n", Walltime(60), "#SBATCH -t 1:00:00\n"},
    {"AddsAfterTheLastDirective", "#SBATCH --job-name=x\n#SBATCH --ntasks=1\n\necho\n",
     Memory(2 * kGiB), "#SBATCH --job-name=x\n#SBATCH --ntasks=1\n#SBATCH --mem=2G\n\necho\n"},
    {"AddsInTheAuthorsShortStyle", "#SBATCH\t-J x\n#SBATCH\t-n 1\necho\n", Walltime(30),
     "#SBATCH\t-J x\n#SBATCH\t-n 1\n#SBATCH\t-t 00:30:00\necho\n"},
    {"AddsInTheAuthorsSpacedStyle", "#SBATCH --job-name x\n#SBATCH --ntasks 1\n", Walltime(30),
     "#SBATCH --job-name x\n#SBATCH --ntasks 1\n#SBATCH --time 00:30:00\n"},
    {"AddsAfterTheInterpreterWhenThereIsNoDirective", "\necho\n", Memory(2 * kGiB),
     "#SBATCH --mem=2G\n\necho\n"},
    {"AddsAtAnEndWithoutNewline", "#SBATCH -n1", Memory(2 * kGiB), "#SBATCH -n1\n#SBATCH --mem=2G"},
    {"ChangesCoresPerTask", "#SBATCH -n 2 -c 8\n", Cores(8), "#SBATCH -n 2 -c 4\n"},
    {"KeepsMemoryTotalWhenCoresShrink", "#SBATCH -c 8 --mem-per-cpu=1G\n", Cores(4),
     "#SBATCH -c 4 --mem-per-cpu=2G\n"},
    {"LeavesWholeNodes", "#SBATCH --exclusive -c 8\n", Cores(4), "#SBATCH --exclusive -c 8\n"},
    {"LeavesTasksAlone", "#SBATCH -n 8\n", Cores(4), "#SBATCH -n 8\n"},
    {"ChangesTheCountOfGpusOnly", "#SBATCH --gres=shard:1,gpu:a100:4\n", Gpus(2),
     "#SBATCH --gres=shard:1,gpu:a100:2\n"},
    {"DividesGpusAmongNodes", "#SBATCH -N2 --gpus-per-node='h100:4'\n", Gpus(4),
     "#SBATCH -N2 --gpus-per-node='h100:2'\n"},
    {"LeavesHeterogeneousJobs", "#SBATCH --mem=8G\n#SBATCH hetjob\n#SBATCH --mem=1G\n",
     Memory(2 * kGiB), "#SBATCH --mem=8G\n#SBATCH hetjob\n#SBATCH --mem=1G\n"},
};

TEST_P(Patches, ChangeOnlyTheBytesTheyMust) {
  const std::string head = "#!/bin/bash\n";
  EXPECT_EQ(Patched(head + GetParam().before, GetParam().wanted), head + GetParam().after);
}
INSTANTIATE_TEST_SUITE_P(All, Patches, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return row.param.name; });

TEST(SbatchPatch, KeepsDosLineEnds) {
  EXPECT_EQ(Patched("#!/bin/sh\r\n#SBATCH -n1\r\necho\r\n", Memory(2 * kGiB)),
            "#!/bin/sh\r\n#SBATCH -n1\r\n#SBATCH --mem=2G\r\necho\r\n");
}

TEST(SbatchPatch, RereadingGivesTheIntendedRequest) {
  WantedRequest wanted = Memory(3 * kGiB);
  wanted.cores = 4;
  wanted.walltime = Seconds(5400);
  const std::string text = "#!/bin/bash\n#SBATCH --mem-per-cpu=4G\n#SBATCH -c 8 -t 1-0\necho\n";
  const auto after = Patched(text, wanted);
  const auto request = ReadSbatchRequest(ReadSbatchScript(after), "x");
  EXPECT_EQ(request.total_memory->value, 3 * kGiB);
  EXPECT_EQ(request.total_cores, 4);
  EXPECT_EQ(request.time->limit->count(), 5400);
  EXPECT_EQ(after, "#!/bin/bash\n#SBATCH --mem-per-cpu=768M\n#SBATCH -c 4 -t 0-01:30:00\necho\n");
}

TEST(ByteEdits, RefuseOverlapsAndWhatLiesBeyondTheEnd) {
  EXPECT_FALSE(ApplyEdits("abc", {{1, 1, "x"}, {1, 1, "y"}}).ok());
  EXPECT_FALSE(ApplyEdits("abc", {{4, 0, "x"}}).ok());
  EXPECT_FALSE(ApplyEdits("abc", {{2, 2, "x"}}).ok());
  EXPECT_FALSE(ApplyEdits("abc", {{2, static_cast<size_t>(-1), "x"}}).ok());
  EXPECT_EQ(*ApplyEdits("abc", {{0, 0, "x"}, {3, 0, "y"}}), "xabcy");
}

class Files : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const { return *fs_.Read(Path(name)); }
  int Run(const std::string& command) const {
    return std::system(("cd '" + dir_.path() + "' && " + command + " >/dev/null 2>&1").c_str());
  }
  platform::TempDir dir_;
  platform::Fs fs_;
};

// Both tools a person may use take every diff, and give the bytes that ApplyEdits gives.
TEST_F(Files, PatchAndGitApplyAcceptTheDiffs) {
  const std::string texts[] = {
      "#!/bin/bash\n#SBATCH --mem=128G # c\n#SBATCH -t 10\n\necho\n",
      "#!/bin/bash\n#SBATCH --mem=128G",
      "#!/bin/bash\necho\n",
      "#!/bin/bash\n#SBATCH -J caf\xe9\n#SBATCH --mem=1G\n" + std::string(5000, '#') + "\n",
  };
  for (const auto& text : texts) {
    WantedRequest wanted = Memory(15 * kGiB);
    wanted.walltime = Seconds(9000);
    const std::string after = Patched(text, wanted);
    const auto diff = UnifiedDiff("dir name/job.slurm", text, after);
    ASSERT_TRUE(diff.ok()) << diff.error().message();
    EXPECT_THAT(*diff, HasSubstr("--- a/dir name/job.slurm"));
    ASSERT_EQ(Run("rm -rf 'dir name' && mkdir 'dir name'"), 0);
    Write("x.diff", *diff);
    Write("dir name/job.slurm", text);
    EXPECT_EQ(Run("git apply -p1 x.diff"), 0) << *diff;
    EXPECT_EQ(Read("dir name/job.slurm"), after);
    Write("dir name/job.slurm", text);
    EXPECT_EQ(Run("patch -p1 < x.diff"), 0) << *diff;
    EXPECT_EQ(Read("dir name/job.slurm"), after);
  }
}

TEST_F(Files, ADiffOfNothingIsEmpty) { EXPECT_EQ(*UnifiedDiff("x", "a\n", "a\n"), ""); }

TEST_F(Files, ApplyingKeepsModeAndEditsTheTargetOfALink) {
  Write("job.sh", "abc\n");
  ASSERT_EQ(::chmod(Path("job.sh").c_str(), 0750), 0);
  ASSERT_EQ(::symlink("job.sh", Path("link.sh").c_str()), 0);
  const auto applied = ApplyEditsToFile(fs_, Path("link.sh"), platform::Sha256Hex("abc\n"),
                                        {{1, 1, "XY"}}, platform::Sha256Hex("aXYc\n"));
  ASSERT_TRUE(applied.ok()) << applied.error().message();
  EXPECT_TRUE(applied->through_symlink);
  EXPECT_THAT(applied->path, HasSubstr("/job.sh"));
  EXPECT_EQ(Read("job.sh"), "aXYc\n");
  EXPECT_TRUE(fs_.LStat(Path("link.sh"))->is_symlink);
  EXPECT_EQ(fs_.Stat(Path("job.sh"))->mode & 0777, 0750u);
}

TEST_F(Files, ApplyingIsRefusedWhenTheFileChanged) {
  Write("job.sh", "changed\n");
  const auto applied = ApplyEditsToFile(fs_, Path("job.sh"), platform::Sha256Hex("abc\n"),
                                        {{1, 1, "X"}}, platform::Sha256Hex("aXc\n"));
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(applied.error().message(), HasSubstr("changed since"));
  EXPECT_EQ(Read("job.sh"), "changed\n");
}

TEST_F(Files, ApplyingWritesNothingWhenTheResultWouldDiffer) {
  Write("job.sh", "abc\n");
  const auto applied = ApplyEditsToFile(fs_, Path("job.sh"), platform::Sha256Hex("abc\n"),
                                        {{1, 1, "X"}}, platform::Sha256Hex("other"));
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(Read("job.sh"), "abc\n");
}

}  // namespace
}  // namespace expanse::submission
