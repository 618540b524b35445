// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <gtest/gtest.h>

namespace expanse::cli {
namespace {

constexpr std::string_view kColours[] = {"red", "green"};
constexpr Flag kTable[] = {
    {.name = "--json", .kind = FlagKind::kBool, .doc = "as JSON"},
    {.name = "--wait", .kind = FlagKind::kBool, .doc = "waits", .default_text = "true"},
    {.name = "--limit", .kind = FlagKind::kInt, .doc = "how many", .least = 1},
    {.name = "--colour", .kind = FlagKind::kChoice, .doc = "which", .choices = kColours},
    {.name = "--source", .kind = FlagKind::kPath, .doc = "a file", .repeat = true},
    {.name = "--memory", .kind = FlagKind::kSize, .doc = "a size"},
    {.name = "--since", .kind = FlagKind::kDuration, .doc = "how long"},
    {.name = "--from", .kind = FlagKind::kTime, .doc = "when"},
    {.name = "--artefact", .doc = "an id", .alias = "--artifact"},
    {.name = "--plane", .kind = FlagKind::kUrl, .doc = "where"},
};
constexpr Positional kTarget[] = {{.name = "target", .doc = "a file"}};
constexpr Rule kRules[] = {{Rule::kExcludes, "--json", "--limit"},
                           {Rule::kRequires, "--colour", "--since"}};

Result<Args> Parse(std::vector<std::string> words) {
  return ParseArgs(kTable, kTarget, kRules, words);
}

std::string MessageOf(std::vector<std::string> words) {
  const auto args = Parse(std::move(words));
  EXPECT_FALSE(args.ok());
  return args.ok() ? "" : args.error().message();
}

TEST(Flags, BooleanFlagsStandAloneOrTakeTrueAndFalse) {
  EXPECT_TRUE(Parse({"t", "--json"})->Bool("--json"));
  EXPECT_TRUE(Parse({"t", "--json=true"})->Bool("--json"));
  EXPECT_FALSE(Parse({"t", "--json=false"})->Bool("--json"));
  EXPECT_FALSE(Parse({"t"})->Bool("--json"));
  EXPECT_TRUE(Parse({"t"})->Bool("--wait"));
  EXPECT_FALSE(Parse({"t", "--wait=false"})->Bool("--wait"));
  EXPECT_EQ(MessageOf({"t", "--json=yes"}), "--json: 'yes' is not true or false");
}

TEST(Flags, ABooleanFlagDoesNotEatTheNextWord) {
  EXPECT_EQ(Parse({"--json", "file"})->positionals(), std::vector<std::string>{"file"});
}

TEST(Flags, ValuesFollowAfterASpaceOrAnEqualsSign) {
  EXPECT_EQ(Parse({"t", "--limit", "7"})->Int("--limit"), 7);
  EXPECT_EQ(Parse({"t", "--limit=7"})->Int("--limit"), 7);
  EXPECT_EQ(Parse({"t", "--source=a=b"})->Text("--source"), "a=b");
  EXPECT_EQ(Parse({"t", "--memory", "16GiB"})->Size("--memory")->value, int64_t{16} << 30);
  EXPECT_EQ(Parse({"t", "--since", "2h"})->Duration("--since"), Millis(7'200'000));
  EXPECT_EQ(ToUnixMillis(*Parse({"t", "--from", "1970-01-01T00:00:01Z"})->Time("--from")), 1000);
}

TEST(Flags, ARepeatedFlagKeepsAllAndAPlainOneTheLast) {
  const auto args = Parse({"t", "--source", "a", "--source", "b", "--limit", "1", "--limit", "2"});
  EXPECT_EQ(args->All("--source"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(args->Int("--limit"), 2);
}

TEST(Flags, AnAliasIsTheSameFlag) {
  EXPECT_EQ(Parse({"t", "--artifact", "x"})->Text("--artefact"), "x");
}

TEST(Flags, WordsAfterTwoDashesAreArguments) {
  EXPECT_EQ(Parse({"--", "--json"})->positionals(), std::vector<std::string>{"--json"});
}

TEST(Flags, AMistakeNamesTheNearestFlag) {
  EXPECT_EQ(MessageOf({"t", "--limti", "3"}), "unknown flag --limti, did you mean --limit?");
  EXPECT_EQ(MessageOf({"t", "-x"}), "unknown flag -x");
  EXPECT_EQ(MessageOf({"t", "--colour", "gren"}),
            "--colour: 'gren' is not one of red, green; did you mean green?");
}

TEST(Flags, BadValuesSayWhatToWrite) {
  EXPECT_EQ(MessageOf({"t", "--limit", "0"}), "--limit: '0' is less than 1");
  EXPECT_EQ(MessageOf({"t", "--limit", "3000000000"}), "--limit: '3000000000' is too large");
  EXPECT_EQ(MessageOf({"t", "--limit", "many"}), "--limit: 'many' is not a whole number");
  EXPECT_EQ(MessageOf({"t", "--limit"}), "--limit needs a value: --limit N");
  EXPECT_EQ(MessageOf({"t", "--limit", "--json"}), "--limit needs a value: --limit N");
  EXPECT_NE(MessageOf({"t", "--memory", "big"}).find("16GiB"), std::string::npos);
  EXPECT_NE(MessageOf({"t", "--since", "yesterday"}).find("1h30m"), std::string::npos);
  EXPECT_NE(MessageOf({"t", "--from", "noon"}).find("RFC 3339"), std::string::npos);
  EXPECT_NE(MessageOf({"t", "--plane", "example.org"}).find("https://"), std::string::npos);
  EXPECT_EQ(MessageOf({"t", "--source", ""}), "--source: '' is empty");
}

TEST(Flags, CombinationsAreChecked) {
  EXPECT_EQ(MessageOf({"t", "--json", "--limit", "3"}), "--json and --limit exclude each other");
  EXPECT_EQ(MessageOf({"t", "--colour", "red"}), "--colour needs --since");
  EXPECT_TRUE(Parse({"t", "--json=false", "--limit", "3"}).ok());
}

TEST(Flags, ArgumentsAreCounted) {
  EXPECT_EQ(MessageOf({}), "missing argument <target>: a file");
  EXPECT_EQ(MessageOf({"a", "b"}), "unexpected argument 'b'");
}

TEST(Flags, ControlCharactersInAMistakeDoNotReachTheTerminal) {
  EXPECT_EQ(MessageOf({"t", "--\x1b[31m"}), "unknown flag --\\x1b[31m");
}

TEST(Flags, AKeyInTheWrongPlaceIsNotRepeated) {
  EXPECT_EQ(MessageOf({"t", "exp_install_abc"}), "unexpected argument 'exp_install_...'");
  EXPECT_EQ(MessageOf({"t", "--colour", "exp_user_abc"}).find("abc"), std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
