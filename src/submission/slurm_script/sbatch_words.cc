// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_words.h"

#include "base/strings.h"

namespace expanse::submission {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' || c == '\n';
}

/// "hetjob" or "packjob" as a bare word ends the options of its line wherever it stands.
bool IsSeparatorAt(std::string_view line, size_t at, bool* is_packjob) {
  for (const std::string_view name : {"hetjob", "packjob"}) {
    if (!StartsWithIgnoreCase(line.substr(at), name)) continue;
    const size_t end = at + name.size();
    if (end < line.size() && !IsSpace(line[end])) continue;
    *is_packjob = name == "packjob";
    return true;
  }
  return false;
}

}  // namespace

SbatchWords SplitSbatchLine(std::string_view line, size_t from) {
  SbatchWords out;
  size_t i = from;
  while (true) {
    while (i < line.size() && IsSpace(line[i])) ++i;
    if (i >= line.size() || line[i] == '#') return out;
    bool is_packjob = false;
    if (IsSeparatorAt(line, i, &is_packjob)) {
      out.separator = out.words.empty();
      out.separator_is_packjob = is_packjob;
      return out;
    }
    SbatchWord word;
    word.begin = i;
    char quote = 0;
    bool comment = false;
    for (; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '\\') {
        if (i + 1 >= line.size()) {
          ++i;
          break;
        }
        // Outside quotes white space ends the word even then; the backslash is lost.
        if (quote == 0 && IsSpace(line[i + 1])) {
          ++i;
          break;
        }
        word.raw_at.push_back(i);
        word.text.push_back(line[++i]);
      } else if (quote != 0) {
        if (c == quote) {
          quote = 0;
        } else {
          word.raw_at.push_back(i);
          word.text.push_back(c);
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (IsSpace(c)) {
        break;
      } else if (c == '#') {
        comment = true;
        break;
      } else {
        word.raw_at.push_back(i);
        word.text.push_back(c);
      }
    }
    word.end = i;
    word.raw_at.push_back(i);
    if (quote != 0) {
      out.unmatched_quote = quote;
      return out;
    }
    if (word.text.empty()) {
      out.empty_word_ended_line = true;
      return out;
    }
    out.words.push_back(std::move(word));
    if (comment) return out;
  }
}

}  // namespace expanse::submission
