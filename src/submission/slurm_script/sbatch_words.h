// SPDX-License-Identifier: Apache-2.0
// Words of one #SBATCH line. Not shell words: a backslash takes the next byte literally inside
// every kind of quote, but outside them cannot keep a space in a word; '#' starts a comment even
// inside a word, an empty word ends the line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::submission {

struct SbatchWord {
  std::string text;  // unquoted
  size_t begin = 0;  // raw bytes [begin, end) of the line
  size_t end = 0;
  /// raw_at[i] is the raw position of text[i]; raw_at[text.size()] == end. Finds the raw bytes
  /// of the part after "--name=".
  std::vector<size_t> raw_at;
};

struct SbatchWords {
  std::vector<SbatchWord> words;
  std::optional<char> unmatched_quote;
  bool empty_word_ended_line = false;  // "" or '' or a lone backslash at the end
  bool separator = false;              // the line separates heterogeneous components
  bool separator_is_packjob = false;   // the older name of hetjob
};

/// `from`: where the text after "#SBATCH" begins within the line.
SbatchWords SplitSbatchLine(std::string_view line, size_t from);

}  // namespace expanse::submission
