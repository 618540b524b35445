// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/log_scanner.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/strings.h"
#include "intelligence/diagnose/evidence.h"
#include "intelligence/diagnose/rule_index.h"

namespace expanse::intelligence::diagnose {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
}

// Without terminal escapes and control characters; blanks collapsed; bounded.
std::string CleanLine(std::string_view raw) {
  std::string joined;
  if (raw.size() > kMaxScannedLine) {
    joined.append(raw.substr(0, kMaxScannedLine / 2)).append(" … ");
    joined.append(raw.substr(raw.size() - kMaxScannedLine / 2));
    raw = joined;
  }
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c == 0x1B && i + 1 < raw.size() && raw[i + 1] == '[') {  // CSI … final byte 0x40-0x7E
      i += 2;
      while (i < raw.size() && (raw[i] < 0x40 || raw[i] > 0x7E)) ++i;
      continue;
    }
    if (c < 0x20 || c == 0x7F || c == ' ') {
      if (!out.empty() && out.back() != ' ') out.push_back(' ');
      continue;
    }
    out.push_back(static_cast<char>(c));
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// "[rank0]: ", "0: ", "(Worker pid=7) " and time stamps in front of what a process said.
std::string_view WithoutPrefix(std::string_view line) {
  for (int i = 0; i < 4; ++i) {
    line = Trim(line);
    if (line.empty()) return line;
    if (line[0] == '[' || line[0] == '(') {
      const size_t close = line.find(line[0] == '[' ? ']' : ')');
      if (close == std::string_view::npos || close > 60) return line;
      line.remove_prefix(close + 1);
      if (!line.empty() && line[0] == ':') line.remove_prefix(1);
      continue;
    }
    size_t digits = 0;
    while (digits < line.size() && (IsDigit(line[digits]) || line[digits] == '-' ||
                                    line[digits] == ':' || line[digits] == '.'))
      ++digits;
    if (digits > 0 && digits < line.size() && line[digits] == ' ') {
      line.remove_prefix(digits);
      continue;
    }
    return line;
  }
  return line;
}

// "pkg.mod.SomeError: text" or "SomeError": how Python ends a traceback. Returns the class name.
std::string_view PythonErrorName(std::string_view line) {
  line = WithoutPrefix(line);
  size_t end = 0;
  while (end < line.size() && (IsWord(line[end]) || line[end] == '.')) ++end;
  if (end == 0 || IsDigit(line[0])) return {};
  if (end < line.size() && line[end] != ':') return {};
  const std::string_view name = line.substr(0, end);
  for (std::string_view foreign : {"java.", "javax.", "org.", "scala.", "kotlin.", "com."})
    if (name.substr(0, foreign.size()) == foreign) return {};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  for (std::string_view suffix : {"Error", "Exception"})
    if (last.size() > suffix.size() && last.substr(last.size() - suffix.size()) == suffix)
      return last;
  return {};
}

// Errors that only report another process's end or a broken connection to it.
bool IsSecondHandError(std::string_view name) {
  static constexpr std::array<std::string_view, 13> kNames{
      "ChildFailedError",       "CalledProcessError", "DistBackendError",
      "ConnectionResetError",   "BrokenPipeError",    "ProcessExitedException",
      "ProcessRaisedException", "EOFError",           "RayTaskError",
      "RayActorError",          "ActorDiedError",     "WorkerCrashedError",
      "ActorUnavailableError"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The number after "Xid (PCI:…): " or "Xid 79"; 0 when there is none.
int XidOf(std::string_view lower) {
  size_t at = lower.find("xid");
  if (at == std::string_view::npos) return 0;
  at += 3;
  if (const size_t close = lower.find("): ", at);
      close != std::string_view::npos && close < at + 40)
    at = close + 3;
  while (at < lower.size() && (lower[at] == ' ' || lower[at] == ':' || lower[at] == '=')) ++at;
  int value = 0;
  const size_t start = at;
  while (at < lower.size() && IsDigit(lower[at]) && at - start < 4)
    value = value * 10 + (lower[at++] - '0');
  return at == start ? 0 : value;
}

// "File "train.py", line 12": where a Python error was raised.
bool IsPythonLocation(std::string_view clean) {
  return clean.find("File \"") != std::string_view::npos &&
         clean.find("\", line ") != std::string_view::npos;
}

bool CountsProgress(std::string_view lower) {
  for (std::string_view pattern : {"step #", "step: #", "epoch #", "epoch: #", "epoch [#", "iter #",
                                   "iteration #", "#%|", "# % ", "progress*#", "time step"})
    if (MatchesPattern(lower, pattern)) return true;
  return false;
}

bool SaysFinished(std::string_view lower) {
  for (std::string_view denial : {"fail", "error", "not ", "abort", "cancel"})
    if (lower.find(denial) != std::string_view::npos) return false;
  for (std::string_view pattern :
       {"finished successfully", "completed successfully", "training complete", "all done",
        "saved final", "final checkpoint", "outputs present", "job complete", "run complete",
        "normal termination", "exit status 0", "results written", "done."})
    if (lower.find(pattern) != std::string_view::npos) return true;
  for (std::string_view word : {" done", " finished", " complete", " completed"}) {
    const size_t at = lower.rfind(word);
    if (at == std::string_view::npos) continue;
    const size_t end = at + word.size();
    if (end == lower.size() || !IsWord(lower[end])) return true;
  }
  return false;
}

SignalHit Hit(std::string_view failure_class, int strength, int xid = 0) {
  SignalHit hit;
  hit.failure_class = failure_class;
  hit.strength = strength;
  hit.xid = xid;
  return hit;
}

std::vector<SignalHit> HitsOf(const std::string& clean, TextKind kind) {
  std::vector<SignalHit> hits;
  const std::string lower = ToLower(clean);
  for (const SignalRule* rule : MatchingRules(lower, static_cast<int>(kind)))
    hits.push_back(Hit(rule->failure_class, rule->strength));
  if (const int xid = XidOf(lower); xid != 0) {
    const XidRule* rule = FindXid(xid);
    const bool benign =
        lower.find("nonfatal") != std::string::npos || lower.find("non-fatal") != std::string::npos;
    if (rule != nullptr && !benign) hits.push_back(Hit(rule->failure_class, rule->strength, xid));
  }
  if (kind == TextKind::kProgram) {
    // A line that speaks for a class of its own is not a Python error beside that.
    const bool specific = std::any_of(hits.begin(), hits.end(),
                                      [](const SignalHit& hit) { return hit.strength >= 50; });
    if (const auto name = PythonErrorName(clean); !name.empty() && !specific) {
      const bool second_hand = IsSecondHandError(name);
      hits.push_back(second_hand ? Hit("task_failure_unattributed", 28)
                                 : Hit("python_exception", 76));
    }
  }
  return hits;
}

// Keeps the best hit of each class on one line.
void KeepBest(std::vector<SignalHit>& hits) {
  std::vector<SignalHit> best;
  for (auto& hit : hits) {
    auto it = std::find_if(best.begin(), best.end(), [&](const SignalHit& b) {
      return b.failure_class == hit.failure_class;
    });
    if (it == best.end())
      best.push_back(std::move(hit));
    else if (hit.strength > it->strength)
      *it = std::move(hit);
  }
  hits = std::move(best);
}

class Scanner {
 public:
  explicit Scanner(const TextSource& text) : text_(text) {}

  ScanResult Run() {
    const std::string_view content = text_.content;
    if (content.size() <= kMaxScannedText) {
      Part(content, 0, text_.offset == 0 ? 1 : 0);
    } else {
      const size_t half = kMaxScannedText / 2;
      Part(content.substr(0, half), 0, text_.offset == 0 ? 1 : 0);
      Part(content.substr(content.size() - half), content.size() - half, 0);
      result_.cut = true;
    }
    return std::move(result_);
  }

 private:
  void Part(std::string_view part, size_t base, int64_t line_number) {
    size_t start = 0;
    while (start < part.size()) {
      const size_t end = std::min(part.find_first_of("\n\r", start), part.size());
      Line(part.substr(start, end - start), base + start, line_number);
      if (line_number > 0 && (end >= part.size() || part[end] == '\n')) ++line_number;
      start = end + 1;
    }
  }

  void Line(std::string_view raw, size_t at, int64_t line_number) {
    ++result_.lines;
    // A line repeated a million times says what it said the first time.
    if (raw == previous_) return;
    previous_ = raw;
    const std::string clean = CleanLine(raw);
    if (clean.empty()) return;
    const int64_t begin = text_.offset + static_cast<int64_t>(at);
    const int64_t end = begin + static_cast<int64_t>(raw.size());
    QuotedLine quoted{Shorten(clean, kMaxQuotedLine), begin, end, line_number};
    auto hits = HitsOf(clean, text_.kind);
    KeepBest(hits);
    if (IsPythonLocation(clean)) location_ = quoted;
    if (hits.empty()) {
      const std::string lower = ToLower(clean);
      if (CountsProgress(lower)) result_.last_progress = quoted;
      if (SaysFinished(lower)) result_.last_success = quoted;
    }
    for (auto& hit : hits) {
      // First occurrences carry the cause; a few later ones are kept for the prompt.
      if (++seen_[std::string(hit.failure_class)] > 6) continue;
      hit.line = quoted.line;
      hit.begin = begin;
      hit.end = end;
      hit.line_number = line_number;
      hit.location = location_;
      result_.hits.push_back(std::move(hit));
    }
    if (!StartsWithIgnoreCase(clean, "slurmstepd") && !StartsWithIgnoreCase(clean, "srun: "))
      result_.last_own = quoted;
    if (!hits.empty()) location_ = {};
    result_.last_line = std::move(quoted);
  }

  const TextSource& text_;
  ScanResult result_;
  std::string_view previous_;
  QuotedLine location_;  // the last one since the last signal
  std::map<std::string, int> seen_;
};

}  // namespace

ScanResult Scan(const TextSource& text) { return Scanner(text).Run(); }

std::vector<SignalHit> ScanLine(std::string_view line, TextKind kind) {
  const std::string clean = CleanLine(line);
  auto hits = HitsOf(clean, kind);
  KeepBest(hits);
  for (auto& hit : hits) {
    hit.line = Shorten(clean, kMaxQuotedLine);
    hit.end = static_cast<int64_t>(line.size());
  }
  return hits;
}

}  // namespace expanse::intelligence::diagnose
