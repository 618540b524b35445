// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "submission/slurm_script/sbatch_request.h"

namespace expanse::submission {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string At(std::string_view script, ByteSpan span) {
  return std::string(script.substr(span.offset, span.length));
}

/// "--name=value;--name=value" of the directives in order, as sbatch's own debug output lists them.
std::string Summary(const SbatchScript& script) {
  std::string out;
  for (const auto& d : script.directives) {
    out += out.empty() ? "" : ";";
    out += std::string(d.option->name) + (d.has_value ? "=" + d.value : "");
  }
  return out;
}

struct LineCase {
  const char* name;
  const char* body;     // after "#!/bin/bash\n"
  const char* summary;  // directives
  const char* refusal;  // part of the first refusal, or ""
};

class SbatchLines : public ::testing::TestWithParam<LineCase> {};

// Each row was tried on sbatch 22.05.8 (sbatch -vvv --test-only).
const LineCase kLineCases[] = {
    {"CommentAfterValue", "#SBATCH --mem=4G # comment\n#SBATCH -N 1 -n2\n",
     "mem=4G;nodes=1;ntasks=2", ""},
    {"CommentInsideWord", "#SBATCH --mem=4G#comment\n", "mem=4G", ""},
    {"QuotedValues", "#SBATCH --job-name=\"a b\" --comment='x # y'\n", "job-name=a b;comment=x # y",
     ""},
    {"QuotesInsideWord", "#SBATCH --job-name=a\"b c\"d\n", "job-name=ab cd", ""},
    {"EscapedQuote", "#SBATCH --job-name=\"a\\\"b\"\n", "job-name=a\"b", ""},
    {"BackslashEscapesInSingleQuotesToo", "#SBATCH --job-name='a\\'b'\n", "job-name=a'b", ""},
    {"EscapeKeepsNoSpaceOutsideQuotes", "#SBATCH --comment=a\\ -n2\n", "comment=a;ntasks=2", ""},
    {"EscapedSpaceInQuotes", "#SBATCH --comment=\"a\\ b\"\n", "comment=a b", ""},
    {"EscapedHash", "#SBATCH --job-name=a\\#b\n", "job-name=a#b", ""},
    {"UnmatchedQuote", "#SBATCH --job-name=\"a b\n", "", "unmatched"},
    {"Tabs", "#SBATCH\t-n\t2\n", "ntasks=2", ""},
    {"NoSpaceAfterMagic", "#SBATCH--mem=3G\n", "mem=3G", ""},
    {"LetterAfterMagic", "#SBATCHx --mem=3G\n", "", "'x' is not an option"},
    {"IndentedIsComment", " #SBATCH --mem=3G\n", "", ""},
    {"DoubleHashIsComment", "##SBATCH --mem=3G\n", "", ""},
    {"SpaceAfterHashIsComment", "# SBATCH --mem=3G\n", "", ""},
    {"ValueOnNextLine", "#SBATCH -N\n#SBATCH 2\n", "nodes=2", ""},
    {"RepeatedOption", "#SBATCH --mem 3G\n#SBATCH --mem\n#SBATCH 2G\n", "mem=3G;mem=2G", ""},
    {"FreeText", "#SBATCH --mem=3G foo\n", "mem=3G", "'foo' is not an option"},
    {"DoubleDash", "#SBATCH --mem=3G --\n#SBATCH --time=5\n", "mem=3G", "'--time=5' is not"},
    {"SingleDash", "#SBATCH -\n#SBATCH -n 2\n", "", "'-' is not an option"},
    {"EmptyDirective", "#SBATCH \n#SBATCH -n 2\n", "ntasks=2", ""},
    {"OldMagic", "#SLURM -n 2\n", "ntasks=2", ""},
    {"BackslashAtEndOfLine", "#SBATCH -n 2 \\\n#SBATCH -N 1\n", "ntasks=2;nodes=1", ""},
    {"DeadAfterCommand", "#SBATCH -n 2\necho\n#SBATCH -n 4\n", "ntasks=2", ""},
    {"ReadsPastCommentsAndBlankLines", "\n   \n#SBATCH -n 2\n   # foo\n#SBATCH -n 3\n: #x\n",
     "ntasks=2;ntasks=3", ""},
    {"Ambiguous", "#SBATCH --nod=1\n", "", "ambiguous: nodefile, nodelist, nodes"},
    {"Abbreviation", "#SBATCH --mem-per-c=1G\n", "mem-per-cpu=1G", ""},
    {"ExactNameBeatsLonger", "#SBATCH --time=1 --mem=1 --gpus=1\n", "time=1;mem=1;gpus=1", ""},
    {"MissingValue", "#SBATCH --time\n", "", "--time needs a value"},
    {"OptionalValueNeedsEquals", "#SBATCH --exclusive user\n", "exclusive", "'user' is not"},
    {"ClusterOfShortOptions", "#SBATCH --exclusive=user -Hn3\n", "exclusive=user;hold;ntasks=3",
     ""},
    {"ValueWhereNoneIsTaken", "#SBATCH --hold=3\n", "", "--hold takes no value"},
    {"UnknownLong", "#SBATCH --memory=3G\n", "", "--memory is not an option"},
    {"UnknownShort", "#SBATCH -Z\n", "", "-Z is not an option"},
    {"EmptyWordEndsLine", "#SBATCH \"\" -n2\n", "", ""},
    {"QuotedOption", "#SBATCH \"-n\" \"2\"\n", "ntasks=2", ""},
    {"EmptyValue", "#SBATCH --job-name=\"\" -n2\n", "job-name=;ntasks=2", ""},
    {"EmptyValueOfShort", "#SBATCH -J \"\"\n", "", "--job-name needs a value"},
    {"ValueThatLooksLikeOption", "#SBATCH -J\n#SBATCH -n3\n", "job-name=-n3", ""},
    {"DosLineEnds", "#SBATCH --mem=3G\r\n", "mem=3G", "DOS line ends"},
};

TEST_P(SbatchLines, ReadsAsSbatchDoes) {
  const std::string text = std::string("#!/bin/bash\n") + GetParam().body;
  const auto script = ReadSbatchScript(text);
  EXPECT_EQ(Summary(script), GetParam().summary);
  if (*GetParam().refusal == '\0') {
    EXPECT_THAT(script.refusals, IsEmpty()) << script.refusals[0].text;
  } else {
    ASSERT_FALSE(script.refusals.empty());
    EXPECT_THAT(script.refusals[0].text, HasSubstr(GetParam().refusal));
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, SbatchLines, ::testing::ValuesIn(kLineCases),
                         [](const auto& row) { return row.param.name; });

TEST(SbatchScript, PositionsPointAtTheRawBytes) {
  const std::string text =
      "#!/bin/bash\n#SBATCH -J x --mem=\"4 G\" -t'10' # c\n#SBATCH -Hn3 --gres gpu:2\n";
  const auto script = ReadSbatchScript(text);
  ASSERT_EQ(script.directives.size(), 6u);
  EXPECT_EQ(At(text, script.directives[0].whole), "-J x");
  EXPECT_EQ(At(text, script.directives[0].value_bytes), "x");
  EXPECT_EQ(At(text, script.directives[1].name), "--mem");
  EXPECT_EQ(At(text, script.directives[1].value_bytes), "\"4 G\"");
  EXPECT_EQ(At(text, script.directives[2].name), "-t");
  EXPECT_EQ(At(text, script.directives[2].value_bytes), "'10'");
  EXPECT_EQ(At(text, script.directives[3].name), "-H");
  EXPECT_EQ(At(text, script.directives[4].name), "n");
  EXPECT_EQ(At(text, script.directives[4].value_bytes), "3");
  EXPECT_EQ(At(text, script.directives[5].whole), "--gres gpu:2");
  EXPECT_EQ(script.directives[5].line, 3);
}

TEST(SbatchScript, LastOfARepeatedOptionIsInEffect) {
  const auto script = ReadSbatchScript("#!/bin/sh\n#SBATCH -t 5 -t 10\n#SBATCH --time=3\n");
  ASSERT_NE(script.Find("time"), nullptr);
  EXPECT_EQ(script.Find("time")->value, "3");
  EXPECT_FALSE(script.directives[0].effective);
  EXPECT_EQ(script.warnings.size(), 2u);
}

TEST(SbatchScript, DeadDirectivesAreNamedWithTheLineThatEndsReading) {
  const auto script = ReadSbatchScript("#!/bin/sh\n\necho hi\n#SBATCH --mem=4G\n");
  ASSERT_EQ(script.dead.size(), 1u);
  EXPECT_EQ(script.dead[0].line, 4);
  EXPECT_EQ(script.dead[0].first_command_line, 3);
  EXPECT_EQ(script.Find("mem"), nullptr);
}

TEST(SbatchScript, HeterogeneousComponentsStayApart) {
  const auto script = ReadSbatchScript(
      "#!/bin/bash\n#SBATCH -n 2\n#SBATCH hetjob -J lost\n#SBATCH -n 3\n#SBATCH packjob\n"
      "#SBATCH -N 2\n");
  EXPECT_EQ(script.components, 3);
  EXPECT_EQ(script.Find("ntasks", 0)->value, "2");
  EXPECT_EQ(script.Find("ntasks", 1)->value, "3");
  EXPECT_EQ(script.Find("nodes", 2)->value, "2");
  EXPECT_EQ(script.Find("job-name", 1), nullptr);
  EXPECT_THAT(script.refusals, IsEmpty());
}

TEST(SbatchScript, RefusesWhatSbatchRefusesAsAWhole) {
  EXPECT_THAT(ReadSbatchScript("").refusals[0].text, HasSubstr("empty"));
  EXPECT_THAT(ReadSbatchScript(" \n \n").refusals[0].text, HasSubstr("white space"));
  EXPECT_THAT(ReadSbatchScript("echo\n").refusals[0].text, HasSubstr("#!"));
  EXPECT_THAT(ReadSbatchScript(" #!/bin/sh\n").refusals[0].text, HasSubstr("#!"));
  EXPECT_THAT(ReadSbatchScript(std::string_view("#!/bin/sh\n\0\n", 12)).refusals[0].text,
              HasSubstr("NUL"));
}

TEST(SbatchScript, NearMissesAreWarnedOf) {
  const auto script = ReadSbatchScript(
      "#!/bin/sh\n# SBATCH --mem=1G\n #SBATCH -n2\n#sbatch -c 2\n#PBS -l mem=4gb\n");
  EXPECT_EQ(script.warnings.size(), 4u);
  EXPECT_THAT(script.directives, IsEmpty());
}

TEST(SbatchScript, AnyInterpreterWillDo) {
  const auto script = ReadSbatchScript("#! /usr/bin/env python3\n#SBATCH -n 2\nimport os\n");
  EXPECT_EQ(script.interpreter, "/usr/bin/env python3");
  EXPECT_EQ(Summary(script), "ntasks=2");
}

TEST(SbatchScript, IdentityTextDropsTheRequestOnly) {
  const std::string text =
      "#!/bin/bash\n#SBATCH -J job -t 10 -p main\n#SBATCH --mem=4G # much\n#SBATCH -o x.out\n"
      "# SBATCH --mem=1G\npython x.py\n#SBATCH --mem=2G\n";
  EXPECT_EQ(WithoutResourceDirectives(text, ReadSbatchScript(text)),
            "#!/bin/bash\n#SBATCH -J job\n#SBATCH -o x.out\n# SBATCH --mem=1G\npython x.py\n"
            "#SBATCH --mem=2G");
}

TEST(SbatchScript, IdentityTextIsTheSameWhenADirectiveIsAddedOrChanged) {
  const std::string a = "#!/bin/bash\n#SBATCH -J job\necho";
  const std::string b = "#!/bin/bash\n#SBATCH -J job\n#SBATCH --mem=4G\n#SBATCH -c2\necho\n";
  const std::string c = "#!/bin/bash\n#SBATCH -J job --mem 100\necho\n";
  const auto identity = [](const std::string& t) {
    return WithoutResourceDirectives(t, ReadSbatchScript(t));
  };
  EXPECT_EQ(identity(a), a);
  EXPECT_EQ(identity(b), a);
  EXPECT_EQ(identity(c), a);
  const std::string last = "#!/bin/bash\n#SBATCH -J job";
  EXPECT_EQ(identity(last + "\n#SBATCH --mem=1G"), identity(last));
}

TEST(SbatchScript, ManyDirectivesTakeNoSquareOfTime) {
  std::string text = "#!/bin/sh\n";
  for (int i = 0; i < 20'000; ++i) text += "#SBATCH --mem=1G -J x\n";
  const auto script = ReadSbatchScript(text);
  EXPECT_EQ(script.directives.size(), 40'000u);
  EXPECT_LE(script.warnings.size(), 1000u);
  EXPECT_LT(WithoutResourceDirectives(text, script).size(), text.size());
}

struct MemoryCase {
  const char* text;
  int64_t mib;  // -1: refused
};
// Tried on sbatch 22.05.8 (MinMemoryNode of the held job).
const MemoryCase kMemory[] = {
    {"0", 0},
    {"1", 1},
    {"512", 512},
    {"1K", 1},
    {"1023K", 1},
    {"1025K", 2},
    {"4g", 4096},
    {"4GB", 4096},
    {"4gb", 4096},
    {"4T", 4 << 20},
    {"4M", 4},
    {" 4G", 4096},
    {"4GiB", -1},
    {"4MiB", -1},
    {"4P", -1},
    {"4.5G", -1},
    {"-1", -1},
    {"4G ", -1},
    {"4 G", -1},
    {"0x10", -1},
    {"1e3", -1},
    {"", -1},
    {"99999999999999999999", -1},
};
TEST(SbatchValues, MemoryIsReadAsSbatchReadsIt) {
  for (const auto& c : kMemory) {
    const auto size = ParseSbatchMemory(c.text);
    EXPECT_EQ(size.ok() ? size->value / kMiB : -1, c.mib) << c.text;
  }
}

struct TimeCase {
  const char* text;
  int64_t minutes;  // -1: refused; 0: no limit
};
const TimeCase kTimes[] = {
    {"0", 0},
    {"1", 1},
    {"10", 10},
    {"1:30", 2},
    {"0:1", 1},
    {"0:00", 0},
    {"1:2:3", 63},
    {"90:00", 90},
    {"1:90:00", 150},
    {"100:0:0", 6000},
    {"1-", 1440},
    {"1-0", 1440},
    {"1-1", 1500},
    {"1-1:30", 1530},
    {"1-2:3:4", 1564},
    {"0-0:0:30", 1},
    {"infinite", 0},
    {"UNLIMITED", 0},
    {"-1", 0},
    {"1:2:3:4", -1},
    {"abc", -1},
    {"1d", -1},
    {"5m", -1},
    {"1 0", -1},
    {"1:2:3x", -1},
    {"00:00:59", 1},
    {"2-24", 4320},
    {"1.5", -1},
    {"+5", -1},
    {"", -1},
    {":", -1},
    {"1:", -1},
    {"1::", -1},
    {"::1", -1},
    {"1-1-", -1},
    {"1-:30", -1},
    {"99999999999", -1},
};
TEST(SbatchValues, TimeIsReadAsSbatchReadsIt) {
  for (const auto& c : kTimes) {
    const auto time = ParseSbatchTime(c.text);
    const int64_t got = !time.ok() ? -1 : time->limit ? time->limit->count() / 60 : 0;
    EXPECT_EQ(got, c.minutes) << c.text;
  }
}

TEST(SbatchValues, NodeCountsAndArrays) {
  EXPECT_EQ(ParseSbatchNodes("1-4")->max, 4);
  EXPECT_EQ(ParseSbatchNodes("-2")->min, 1);
  EXPECT_EQ(ParseSbatchNodes("2k")->min, 2048);
  for (const auto* bad : {"2,3", "3-2", "2-", "2x", "2.0", "1-2-3", ""})
    EXPECT_FALSE(ParseSbatchNodes(bad).ok()) << bad;
  EXPECT_EQ(ParseSbatchArray("0-10:2")->tasks, 6);
  EXPECT_EQ(ParseSbatchArray("1-10%2")->at_once, 2);
  EXPECT_EQ(ParseSbatchArray("[1-3]")->tasks, 3);
  EXPECT_EQ(ParseSbatchArray("1-10:3,20,1-2")->tasks, 6);
  for (const auto* bad : {"5-1", "a", "1-", "-1", "1-5:0"})
    EXPECT_FALSE(ParseSbatchArray(bad).ok()) << bad;
}

SbatchRequest Request(const std::string& lines) {
  const std::string text = "#!/bin/bash\n" + lines;
  return ReadSbatchRequest(ReadSbatchScript(text), "/home/u/job.sh");
}

TEST(SbatchRequest, DefaultsAreThoseOfSbatch) {
  const auto r = Request("");
  EXPECT_EQ(r.job_name, "job.sh");
  EXPECT_EQ(r.total_cores, 1);
  EXPECT_EQ(r.total_nodes, 1);
  EXPECT_EQ(r.memory_form, MemoryForm::kDefault);
  EXPECT_FALSE(r.total_memory.has_value());
  EXPECT_EQ(r.unresolved.count("memory"), 1u);
  EXPECT_EQ(r.unresolved.count("walltime"), 1u);
}

TEST(SbatchRequest, TotalsFollowTheForm) {
  EXPECT_EQ(Request("#SBATCH --mem-per-cpu=1G -n 4 -c 2\n").total_memory->value, 8 * kGiB);
  EXPECT_EQ(Request("#SBATCH --mem=4G -N 2\n").total_memory->value, 8 * kGiB);
  EXPECT_EQ(Request("#SBATCH --mem-per-gpu=1G -G 2\n").total_memory->value, 2 * kGiB);
  EXPECT_EQ(Request("#SBATCH -N 2 --ntasks-per-node=4\n").total_cores, 8);
  EXPECT_EQ(Request("#SBATCH -N 2\n").total_tasks, 2);
  EXPECT_EQ(Request("#SBATCH -N2 -n1\n").total_nodes, 1);
  EXPECT_EQ(Request("#SBATCH -N2 --gres=gpu:fake:2\n").total_gpus, 4);
  EXPECT_EQ(Request("#SBATCH -N2 --gres=gpu:fake:2\n").gpu_type, "fake");
  EXPECT_EQ(Request("#SBATCH -n4 --gpus-per-task=1\n").total_gpus, 4);
  EXPECT_EQ(Request("#SBATCH --gpus=a100:1,h100:2\n").total_gpus, 3);
  EXPECT_TRUE(Request("#SBATCH --mem=0\n").whole_node_memory);
}

TEST(SbatchRequest, ContradictionsAndBadValuesAreRefusedWithTheirLine) {
  auto r = Request("#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=1G\n");
  ASSERT_EQ(r.refusals.size(), 1u);
  EXPECT_EQ(r.refusals[0].line, 3);
  EXPECT_THAT(r.refusals[0].text, HasSubstr("exclude one another"));
  EXPECT_EQ(Request("#SBATCH -c 0\n").refusals.size(), 1u);
  EXPECT_EQ(Request("#SBATCH -n 1k\n").refusals.size(), 1u);
  EXPECT_EQ(Request("#SBATCH -n +4\n").total_tasks, 4);
  EXPECT_EQ(Request("#SBATCH -t 1d\n").refusals.size(), 1u);
  EXPECT_EQ(Request("#SBATCH --gres=gpu:\n").refusals.size(), 1u);
  EXPECT_EQ(Request("#SBATCH -n 3x\n#SBATCH -n 2\n").refusals.size(), 1u) << "overridden, read";
  EXPECT_EQ(Request("#SBATCH --gpus-per-task=1\n").refusals.size(), 1u);
  EXPECT_EQ(Request("#SBATCH --gpus-per-task=1 -n2\n").refusals.size(), 0u);
  EXPECT_EQ(Request("#SBATCH --gpus-per-task=1 --gpus=2\n").total_tasks, 2);
  EXPECT_EQ(Request("#SBATCH --gres=gpu:a:1 --gpus=2\n").refusals.size(), 1u);
}

}  // namespace
}  // namespace expanse::submission
