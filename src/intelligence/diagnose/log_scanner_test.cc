// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/log_scanner.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "intelligence/diagnose/rule_index.h"

namespace expanse::intelligence::diagnose {
namespace {

ScanResult ScanText(std::string content, int64_t offset = 0) {
  return Scan({"stderr", TextKind::kProgram, "", std::move(content), offset});
}

TEST(LogScanner, GlobMatchesDigitsAndGaps) {
  EXPECT_TRUE(MatchesPattern("task 12: out of memory", "task #: out of memory"));
  EXPECT_FALSE(MatchesPattern("task x: out of memory", "task #: out of memory"));
  EXPECT_TRUE(MatchesPattern("task x task 7: end", "task #: *end"));
  EXPECT_FALSE(MatchesPattern("b then a", "a*b"));
}

TEST(LogScanner, GivesBytePositionsInTheFile) {
  const auto scan = ScanText("fine\nSegmentation fault\n", 1000);
  ASSERT_EQ(scan.hits.size(), 1u);
  EXPECT_EQ(scan.hits[0].begin, 1005);
  EXPECT_EQ(scan.hits[0].end, 1023);
  EXPECT_EQ(scan.hits[0].line_number, 0) << "the line number of a tail is not known";
  EXPECT_EQ(ScanText("fine\nSegmentation fault\n").hits[0].line_number, 2);
}

TEST(LogScanner, ReadsThroughColoursProgressBarsAndBinary) {
  constexpr char kColoured[] = "\x1b[31mCUDA out of mem\x1b[0mory\x1b[0m\r10%|#\r\0\xff\xfe";
  const auto scan =
      ScanText(std::string(kColoured, sizeof kColoured - 1) + "\nNo space left on device\xc3\n");
  ASSERT_EQ(scan.hits.size(), 2u);
  EXPECT_EQ(scan.hits[0].failure_class, "gpu_out_of_memory");
  EXPECT_EQ(scan.hits[0].line, "CUDA out of memory");
  EXPECT_EQ(scan.hits[1].failure_class, "disk_full");
  EXPECT_TRUE(IsUtf8(scan.hits[1].line));
}

TEST(LogScanner, BoundsLongLinesLargeTextsAndRepeats) {
  std::string text = std::string(8U << 20, 'x') + " Segmentation fault\n";
  const auto one_line = ScanText(text);
  EXPECT_TRUE(one_line.cut);
  ASSERT_EQ(one_line.hits.size(), 1u);
  EXPECT_LE(one_line.hits[0].line.size(), kMaxQuotedLine + 4);
  std::string repeats;
  for (int i = 0; i < 100000; ++i) repeats += "Segmentation fault\nwaiting\n";
  EXPECT_LE(ScanText(repeats).hits.size(), 6u);
}

TEST(LogScanner, KnowsAPythonErrorByItsForm) {
  const auto scan = ScanText(
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n"
      "mypkg.errors.ShapeError: 3 != 4\n");
  const SignalHit* error = nullptr;
  for (const auto& hit : scan.hits)
    if (hit.line.find("ShapeError") != std::string::npos) error = &hit;
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure_class, "python_exception");
  EXPECT_NE(error->location.line.find("line 3"), std::string::npos);
  EXPECT_EQ(ScanText("[rank3]: ValueError: x\n").hits.size(), 1u);
  EXPECT_TRUE(ScanText("java.lang.IllegalStateException: x\n").hits.empty());
}

TEST(LogScanner, ReadsXidsAndLeavesBenignOnesAlone) {
  const auto scan = [](const char* line) {
    return Scan({"kernel", TextKind::kKernel, "", line, 0}).hits;
  };
  EXPECT_EQ(scan("NVRM: Xid (PCI:0000:3b:00): 94, pid=1").at(0).failure_class,
            "gpu_memory_ecc_error");
  EXPECT_TRUE(scan("NVRM: Xid (PCI:0000:3b:00): 63, pid=1").empty());
  EXPECT_TRUE(scan("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0").empty());
}

TEST(LogScanner, TellsTheLastLinesOfWorkAndOfItsEnd) {
  const auto scan = ScanText("step 4 loss 2\nstep 5 loss 1\nslurmstepd: error: gone\n");
  EXPECT_EQ(scan.last_progress.line, "step 5 loss 1");
  EXPECT_EQ(scan.last_own.line, "step 5 loss 1");
  EXPECT_EQ(scan.last_line.line, "slurmstepd: error: gone");
  EXPECT_TRUE(ScanText("FAILED: done at noon\n").last_success.line.empty());
  EXPECT_FALSE(ScanText("training done, 4 epochs\n").last_success.line.empty());
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
