// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/rule_index.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"

namespace expanse::intelligence::diagnose {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// End of `fragment` when it matches at `at`, else npos.
size_t MatchAt(std::string_view line, size_t at, std::string_view fragment) {
  for (char c : fragment) {
    if (c == '#') {
      const size_t start = at;
      while (at < line.size() && IsDigit(line[at])) ++at;
      if (at == start) return std::string_view::npos;
    } else {
      if (at >= line.size() || line[at] != c) return std::string_view::npos;
      ++at;
    }
  }
  return at;
}

size_t FindFragment(std::string_view line, size_t from, std::string_view fragment) {
  const std::string_view head = fragment.substr(0, fragment.find('#'));
  if (head.size() == fragment.size()) {
    const size_t at = line.find(fragment, from);
    return at == std::string_view::npos ? at : at + fragment.size();
  }
  for (size_t at = from; at < line.size(); ++at) {
    if (!head.empty()) {
      at = line.find(head, at);
      if (at == std::string_view::npos) return at;
    } else if (!IsDigit(line[at])) {
      continue;
    }
    const size_t end = MatchAt(line, at, fragment);
    if (end != std::string_view::npos) return end;
  }
  return std::string_view::npos;
}

constexpr size_t kBuckets = 8192;

size_t WindowHash(std::string_view text, size_t at) {
  const auto a = static_cast<unsigned char>(text[at]);
  const auto b = static_cast<unsigned char>(text[at + 1]);
  const auto c = static_cast<unsigned char>(text[at + 2]);
  return ((a * 961U) ^ (b * 31U) ^ c) % kBuckets;
}

struct CompiledRule {
  const SignalRule* rule = nullptr;
  std::string_view literal;  // the longest part without wildcards
  std::vector<std::string_view> unless;
};

CompiledRule Compile(const SignalRule& rule) {
  CompiledRule out;
  out.rule = &rule;
  size_t start = 0;
  for (size_t i = 0; i <= rule.pattern.size(); ++i) {
    if (i < rule.pattern.size() && rule.pattern[i] != '*' && rule.pattern[i] != '#') continue;
    if (i - start > out.literal.size()) out.literal = rule.pattern.substr(start, i - start);
    start = i + 1;
  }
  if (!rule.unless.empty()) out.unless = Split(rule.unless, '|');
  return out;
}

class Index {
 public:
  Index() {
    for (const SignalRule* rule : AllSignals()) rules_.push_back(Compile(*rule));
    // The window that fewest rules have is the one that tells most.
    std::vector<int> uses(kBuckets, 0);
    for (const auto& r : rules_)
      for (size_t i = 0; i + 2 < r.literal.size(); ++i) ++uses[WindowHash(r.literal, i)];
    for (size_t id = 0; id < rules_.size(); ++id) {
      const std::string_view literal = rules_[id].literal;
      size_t best = kBuckets;
      int least = std::numeric_limits<int>::max();
      for (size_t i = 0; i + 2 < literal.size(); ++i)
        if (const size_t hash = WindowHash(literal, i); uses[hash] < least) {
          least = uses[hash];
          best = hash;
        }
      if (best == kBuckets)
        unindexed_.push_back(id);
      else
        buckets_[best].push_back(id);
    }
  }

  std::vector<const SignalRule*> Match(std::string_view line, int where) const {
    std::vector<size_t> candidates = unindexed_;
    for (size_t i = 0; i + 2 < line.size(); ++i) {
      const auto& bucket = buckets_[WindowHash(line, i)];
      if (!bucket.empty()) candidates.insert(candidates.end(), bucket.begin(), bucket.end());
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::vector<const SignalRule*> out;
    for (size_t id : candidates) {
      const CompiledRule& c = rules_[id];
      if ((c.rule->where & where) == 0 || !MatchesPattern(line, c.rule->pattern)) continue;
      const bool refused = std::any_of(
          c.unless.begin(), c.unless.end(),
          [&](std::string_view part) { return line.find(part) != std::string_view::npos; });
      if (!refused) out.push_back(c.rule);
    }
    return out;
  }

 private:
  std::vector<CompiledRule> rules_;
  std::array<std::vector<size_t>, kBuckets> buckets_;
  std::vector<size_t> unindexed_;  // literals below three bytes
};

}  // namespace

bool MatchesPattern(std::string_view line, std::string_view pattern) {
  size_t at = 0;
  for (std::string_view fragment : Split(pattern, '*')) {
    if (fragment.empty()) continue;
    at = FindFragment(line, at, fragment);
    if (at == std::string_view::npos) return false;
  }
  return true;
}

std::vector<const SignalRule*> MatchingRules(std::string_view lower_case_line, int where) {
  static const Index index;
  return index.Match(lower_case_line, where);
}

}  // namespace expanse::intelligence::diagnose
