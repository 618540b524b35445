// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/ids.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse {
namespace {

TEST(Rfc3339, RoundTripsAndNormalisesOffsets) {
  const auto t = ParseRfc3339("2026-11-30T23:16:07.5+02:00");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(FormatRfc3339(*t), "2026-11-30T21:16:07.500Z");
  EXPECT_EQ(FormatRfc3339(FromUnixMillis(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(Rfc3339, RefusesWhatIsNotATime) {
  for (const char* bad : {"", "2026-13-01T00:00:00Z", "2026-11-30", "2026-11-30T21:16:07",
                          "2026-11-30T21:16:07Zx", "2026-11-30T21:16:07.Z", "2026-02-30T00:00:00Z"})
    EXPECT_FALSE(ParseRfc3339(bad).ok()) << bad;
}

TEST(Duration, ReadsGoStyleAndPrintsTheShortest) {
  EXPECT_EQ(ParseDuration("1m30s").value(), Millis(90'000));
  EXPECT_EQ(ParseDuration("1.5h").value(), Millis(5'400'000));
  EXPECT_EQ(ParseDuration("250ms").value(), Millis(250));
  EXPECT_EQ(FormatDuration(Millis(90'000)), "1m30s");
  for (const char* bad : {"", "5", "-1s", "1x", "s", "1.2.3s", "99999999999999999999h"})
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

TEST(Size, SchedulerSuffixesAreBinaryAndSiNamesAreDecimal) {
  EXPECT_EQ(ParseSize("16GiB")->value, 16 * kGiB);
  EXPECT_EQ(ParseSize("512M")->value, 512 * kMiB);
  EXPECT_EQ(ParseSize("1.5G")->value, kGiB * 3 / 2);
  EXPECT_EQ(ParseSize("1GB")->value, 1'000'000'000);
  EXPECT_EQ(ParseSize("4096")->value, 4096);
  for (const char* bad : {"", "G", "12Q", "-1G", "1..2G", "99999999999T"})
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
}

TEST(Size, RowsDropPointZeroAndProseKeepsIt) {
  EXPECT_EQ(FormatGbRow(Bytes{85520809984}), "79.6");
  EXPECT_EQ(FormatGbRow(Bytes{33500000000}), "31.2");
  EXPECT_EQ(FormatGbRow(Bytes{16106127360}), "15");
  EXPECT_EQ(FormatGbRow(Bytes{125829120}), "0.12");
  EXPECT_EQ(FormatGbRow(Bytes{8 * kMiB}), "0.0078");
  EXPECT_EQ(FormatGbRow(Bytes{1000 * kMiB}), "1");
  EXPECT_EQ(FormatGbRow(Bytes{0}), "0");
  EXPECT_EQ(FormatGibProse(Bytes{25769803776}), "24.0 GiB");
}

TEST(RoundTo2, AgreesWithPrintfOnTies) {
  EXPECT_EQ(RoundTo2(0.125), 0.12);
  EXPECT_EQ(RoundTo2(0.875), 0.88);
  EXPECT_EQ(RoundTo2(0.998147), 1.0);
}

TEST(Utf8, ReplacesEachBadByteAndKeepsTheRest) {
  EXPECT_EQ(ToUtf8("a\xffz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ToUtf8("h\xC3\xA9"), "h\xC3\xA9");
  EXPECT_TRUE(IsUtf8(ToUtf8("\xED\xA0\x80\xC0\xAF\xF5")));
  EXPECT_FALSE(IsUtf8("\xC0\xAF"));
}

TEST(Terminal, ControlCharactersFromOutsideAreEscaped) {
  EXPECT_EQ(EscapeForTerminal("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(EscapeForTerminal("a\nb", true), "a\nb");
}

TEST(Base64Url, RoundTripsAndRefusesForeignCharacters) {
  for (const std::string& s :
       {std::string(""), std::string("f"), std::string("fo"), std::string("\x00\xff\x10", 3)})
    EXPECT_EQ(Base64UrlDecode(Base64UrlEncode(s)).value(), s);
  EXPECT_FALSE(Base64UrlDecode("a+b/").has_value());
  EXPECT_FALSE(Base64UrlDecode("abcde").has_value());
}

TEST(Uuid, VersionAndVariantBitsAreSet) {
  const std::string id = FormatUuidV7(0x0123456789ab, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(id, "01234567-89ab-7fff-bfff-000000000000");
  EXPECT_TRUE(IsUuid(id));
  EXPECT_FALSE(IsUuid("41982"));
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names{"--memory", "--walltime"};
  EXPECT_EQ(NearestName("--memroy", names).value(), "--memory");
  EXPECT_FALSE(NearestName("--xyz", names).has_value());
}

TEST(ShellQuote, QuotesWhatTheShellWouldRead) {
  EXPECT_EQ(ShellQuote("train.slurm"), "train.slurm");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote(""), "''");
}

}  // namespace
}  // namespace expanse
