// SPDX-License-Identifier: Apache-2.0
// Finds signal lines in text from outside. Any bytes are fine: lines are cut at newline and
// carriage return, terminal escapes and control characters dropped, long lines and large texts
// bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/case_inputs.h"
#include "intelligence/diagnose/signals.h"

namespace expanse::intelligence::diagnose {

struct QuotedLine {
  std::string line;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t line_number = 0;
};

struct SignalHit {
  std::string_view failure_class;
  int strength = 0;
  std::string line;   // cleaned, at most kMaxQuotedLine bytes, well-formed UTF-8
  int64_t begin = 0;  // byte range in the file, [begin, end)
  int64_t end = 0;
  int64_t line_number = 0;  // from 1; 0 when the text is a tail of a longer file
  int xid = 0;              // of an NVIDIA XID line
  QuotedLine location;      // of a Python error: the innermost frame printed before it
};

struct ScanResult {
  std::vector<SignalHit> hits;  // in order of the text; repeats of one rule are thinned out
  QuotedLine last_line;         // last line that is not blank; empty for a blank text
  QuotedLine last_own;          // the same, without lines of scheduler and launcher
  QuotedLine last_progress;     // last line that counts steps, epochs or percent
  QuotedLine last_success;      // last line that says the work was finished
  int64_t lines = 0;
  bool cut = false;  // the text was larger than the scanner reads
};

inline constexpr size_t kMaxQuotedLine = 240;
inline constexpr size_t kMaxScannedLine = 4096;      // of a longer line: its head and its tail
inline constexpr size_t kMaxScannedText = 1U << 20;  // of a longer text: its head and its tail

ScanResult Scan(const TextSource& text);

/// Signals of one short text, e.g. a scheduler's reason.
std::vector<SignalHit> ScanLine(std::string_view line, TextKind kind);

}  // namespace expanse::intelligence::diagnose
