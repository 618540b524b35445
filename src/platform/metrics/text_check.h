// SPDX-License-Identifier: Apache-2.0
// For tests: says what is wrong with a text in Prometheus' exposition format 0.0.4.
#pragma once

#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"

namespace expanse::platform {

/// Every rule of the format, and promtool's: HELP and TYPE before the samples of a family, families
/// together, no line twice, counters end in _total, buckets cumulative up to +Inf = _count. Empty:
/// nothing is wrong.
class MetricsTextCheck {
 public:
  static std::vector<std::string> Problems(const std::string& text) {
    MetricsTextCheck check;
    if (!text.empty() && !text.ends_with('\n')) check.Say("", "no line end at the end");
    for (const auto line : Split(text, '\n'))
      if (!line.empty()) check.Line(std::string(line));
    check.EndFamily();
    return check.problems_;
  }

 private:
  void Say(const std::string& line, const std::string& what) {
    problems_.push_back(what + ": " + line);
  }

  void Line(const std::string& line) {
    static const std::regex kComment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*))");
    static const std::regex kSample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\n"])*",?)*)\})? (\S+))re");
    std::smatch m;
    if (std::regex_match(line, m, kComment)) {
      if (m[1] == "HELP") {
        EndFamily();
        family_ = m[2];
        if (!families_.insert(family_).second) Say(line, "a family twice");
        if (m[3].str().empty()) Say(line, "no help");
      } else if (m[2] != family_) {
        Say(line, "TYPE of another family than HELP");
      } else {
        type_ = m[3];
        if (type_ == "counter" && !family_.ends_with("_total")) Say(line, "counter without _total");
        if (type_ != "counter" && family_.ends_with("_total")) Say(line, "_total is no counter");
      }
      return;
    }
    if (!std::regex_match(line, m, kSample)) return Say(line, "malformed");
    if (!seen_.insert(m[1].str() + m[2].str()).second) Say(line, "twice");
    char* end = nullptr;
    const std::string number = m[4];
    const double value = std::strtod(number.c_str(), &end);
    if (*end != '\0') Say(line, "no number");
    Sample(line, m[1], m[3], value);
  }

  void Sample(const std::string& line, const std::string& name, const std::string& labels,
              double value) {
    if (type_ != "histogram") {
      if (name != family_) Say(line, "outside its family");
      return;
    }
    const size_t le = labels.find("le=\"");
    if (name == family_ + "_bucket") {
      const size_t end = labels.find('"', le + 4);
      if (le == std::string::npos || end == std::string::npos) return Say(line, "no le");
      Series& series = series_[labels.substr(0, le > 0 ? le - 1 : 0)];
      const double bound = std::strtod(labels.substr(le + 4, end - le - 4).c_str(), nullptr);
      if (!series.bounds.empty() && bound <= series.bounds.back())
        Say(line, "bounds not ascending");
      if (value < series.last) Say(line, "not cumulative");
      series.bounds.push_back(bound);
      series.last = value;
    } else if (name == family_ + "_count") {
      series_[labels].count = value;
    } else if (name != family_ + "_sum") {
      Say(line, "outside its family");
    }
  }

  void EndFamily() {
    for (const auto& [labels, series] : series_) {
      if (series.bounds.empty() || series.bounds.back() < 1e300) Say(family_, "no +Inf bucket");
      if (series.count != series.last) Say(family_, "_count is not the last bucket");
    }
    series_.clear();
    type_.clear();
  }

  struct Series {
    std::vector<double> bounds;
    double last = 0;
    double count = -1;
  };
  std::vector<std::string> problems_;
  std::string family_;
  std::string type_;
  std::set<std::string> families_;
  std::set<std::string> seen_;
  std::map<std::string, Series> series_;
};

}  // namespace expanse::platform
