// SPDX-License-Identifier: Apache-2.0
#include "install/slurm_conf.h"

#include <gtest/gtest.h>

#include "platform/fs/fs.h"

namespace expanse::install {
namespace {

const HookWiring kAll{"/var/lib/expanse/hooks", {"Prolog", "Epilog", "TaskProlog", "TaskEpilog"}};

std::string Recorded() { return *platform::Fs().Read(EXPANSE_TESTDATA "/slurm-22.05/slurm.conf"); }

TEST(SlurmConf, FindsTheHooksOfARecordedFile) {
  const SlurmConf conf = ParseSlurmConf(Recorded());
  EXPECT_EQ(conf.Values("Prolog"), std::vector<std::string>{"/LAB/etc/prolog"});
  EXPECT_EQ(conf.Values("TaskEpilog"), std::vector<std::string>{"/LAB/etc/task_epilog"});
  EXPECT_EQ(ForeignHooks(conf, kAll).size(), 4u);
  EXPECT_FALSE(IsWired(conf, kAll));
}

TEST(SlurmConf, OtherSettingsThatBeginAlikeAreNotHooks) {
  const SlurmConf conf = ParseSlurmConf(
      "PrologFlags=Alloc\nPrologSlurmctld=/x\nPrologEpilogTimeout=3\n#Prolog=/old\n");
  EXPECT_TRUE(conf.hooks.empty());
}

TEST(SlurmConf, ReadsAnyCaseBlanksQuotesCommentsAndContinuedLines) {
  const SlurmConf conf = ParseSlurmConf(
      "  PROLOG = \"/a b\" # why\ntaskprolog=/c#d\nEpilog=\\\n/e\nInclude /etc/slurm/more.conf\n");
  EXPECT_EQ(conf.Values("Prolog"), std::vector<std::string>{"/a b"});
  EXPECT_EQ(conf.Values("TaskProlog"), std::vector<std::string>{"/c"});
  EXPECT_EQ(conf.Values("Epilog"), std::vector<std::string>{"/e"});
  EXPECT_EQ(conf.includes, std::vector<std::string>{"/etc/slurm/more.conf"});
}

TEST(SlurmConf, WiringLeavesEveryOtherByteAlone) {
  const std::string before = Recorded();
  const std::string after = Wire(ParseSlurmConf(before), kAll);
  EXPECT_TRUE(IsWired(ParseSlurmConf(after), kAll));
  EXPECT_NE(after.find("# expanse was: Prolog=/LAB/etc/prolog\n"
                       "Prolog=/var/lib/expanse/hooks/prolog\n"),
            std::string::npos);
  EXPECT_NE(after.find("NodeName=n2"), std::string::npos);
}

TEST(SlurmConf, WiringTwiceChangesNothing) {
  const std::string once = Wire(ParseSlurmConf(Recorded()), kAll);
  EXPECT_EQ(Wire(ParseSlurmConf(once), kAll), once);
}

struct Case {
  const char* name;
  std::string text;
};
class RoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(RoundTrip, UnwiringGivesTheFileBackByteForByte) {
  const std::string wired = Wire(ParseSlurmConf(GetParam().text), kAll);
  EXPECT_TRUE(IsWired(ParseSlurmConf(wired), kAll)) << wired;
  const auto back = Unwire(wired, kAll.hook_directory);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, GetParam().text) << wired;
}

INSTANTIATE_TEST_SUITE_P(
    Files, RoundTrip,
    ::testing::Values(Case{"Empty", ""}, Case{"NoHooks", "ClusterName=c\nNodeName=n\n"},
                      Case{"NoNewlineAtTheEnd", "ClusterName=c\nNodeName=n"},
                      Case{"HookLastWithoutNewline",
                           "ClusterName=c\nEpilog=/e\nTaskProlog=/t\nTaskEpilog=/u\n"
                           "Prolog=/p"},
                      Case{"SomeHooks", "Epilog=/e\nClusterName=c\n"},
                      Case{"SeveralOfAKind", "Prolog=/a\nProlog=/b\nX=1\nProlog=/c\n"},
                      Case{"Continued", "Prolog=\\\n/a\nX=\\\n1\n"},
                      Case{"WindowsEnds", "Prolog=/a\r\nX=1\r\n"},
                      Case{"CommentsAndBlanks", "# c\n\n  Prolog = /a  # why\n\n#Epilog=/x\n"}),
    [](const auto& test) { return test.param.name; });

TEST(SlurmConf, UnwiringKeepsWhatWasEditedInBetween) {
  std::string wired = Wire(ParseSlurmConf("A=1\nProlog=/a\n"), kAll);
  wired = "New=1\n" + wired + "Last=1\n";
  EXPECT_EQ(*Unwire(wired, kAll.hook_directory), "New=1\nA=1\nProlog=/a\nLast=1\n");
}

TEST(SlurmConf, UnwiringRefusesALineItDidNotWrite) {
  const auto result = Unwire("A=1\nProlog=/var/lib/expanse/hooks/prolog\n", kAll.hook_directory);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("Prolog=/var/lib/expanse/hooks/prolog"),
            std::string::npos);
}

TEST(SlurmConf, DescribesTheChangeForAPerson) {
  const SlurmConf conf =
      ParseSlurmConf("Prolog=/a\nTaskProlog=/var/lib/expanse/hooks/task_prolog\n");
  EXPECT_EQ(DescribeWiring(conf, kAll),
            "  - Prolog=/a\n  + Prolog=/var/lib/expanse/hooks/prolog\n"
            "  + Epilog=/var/lib/expanse/hooks/epilog\n"
            "  + TaskEpilog=/var/lib/expanse/hooks/task_epilog\n");
}

}  // namespace
}  // namespace expanse::install
