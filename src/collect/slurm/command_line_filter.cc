// SPDX-License-Identifier: Apache-2.0
// Secrets of command lines: what only the order of the words tells.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "collect/slurm/secret_rules.h"
#include "collect/slurm/secrets_filter.h"

namespace expanse::collect::slurm {
namespace {

/// Stands for the mark while words are told apart by blanks, which the mark has too.
constexpr std::string_view kPlaceholder = "\x01";

/// Names that mean a secret on a command line only; elsewhere they are words.
bool NamesSecret(std::string_view name) {
  if (IsSecretName(name)) return true;
  const std::string lower = ToLower(name);
  return lower == "pass" || lower == "pw" || lower.ends_with("auth") || lower.ends_with("cookie");
}

/// The rules that look at words, one after the other.
class WordFilter {
 public:
  std::string Next(std::string_view word) {
    if (open_quote_ != '\0') {  // a quoted value goes on
      if (word.find(open_quote_) != std::string_view::npos) open_quote_ = '\0';
      return std::string(kPlaceholder);
    }
    const size_t start = std::min(word.find_first_not_of("\"'("), word.size());
    const std::string_view bare = word.substr(start);
    const Follows expected = std::exchange(follows_, Follows::kAny);
    if (expected == Follows::kExport) return Exported(word, 0);
    if (expected == Follows::kSecret && IsSecretValue(name_, bare, 1)) return Hide(word, start);
    if (expected == Follows::kLogin && IsLogin(word)) return Hide(word, word.find(':') + 1);
    if (bare.starts_with("--export=")) return Exported(word, word.find('=') + 1);
    if (bare.starts_with('-') && bare.find('=') == std::string_view::npos)
      return Option(word, bare);
    is_sshpass_ = bare == "sshpass" || bare.ends_with("/sshpass");
    return Assigned(word);
  }
  int64_t replaced() const { return replaced_; }

 private:
  enum class Follows { kAny, kExport, kSecret, kLogin };

  /// The value that begins there, to its closing quote or to the end of the word or line.
  std::string Hide(std::string_view word, size_t from) {
    ++replaced_;
    const char quote =
        from > 0 && (word[from - 1] == '"' || word[from - 1] == '\'') ? word[from - 1] : '\0';
    size_t end = quote == '\0' ? word.find_first_of("\t\r\n", from) : word.find(quote, from);
    if (end == std::string_view::npos) {
      end = word.size();
      open_quote_ = quote;
    }
    return std::string(word.substr(0, from)).append(kPlaceholder).append(word.substr(end));
  }

  std::string Option(std::string_view word, std::string_view bare) {
    if (is_sshpass_ && bare.starts_with("-p") && bare.size() > 2)
      return Hide(word, word.size() - bare.size() + 2);
    const std::string_view name = bare.substr(std::min(bare.find_first_not_of('-'), bare.size()));
    if (bare == "--export") follows_ = Follows::kExport;
    if (bare == "-u" || bare == "--user") follows_ = Follows::kLogin;
    if (NamesSecret(name) || (is_sshpass_ && bare == "-p")) {
      name_ = name;
      follows_ = Follows::kSecret;
    }
    return std::string(word);
  }

  /// "ALL,A=1,B=2": names stay, since they belong to what a submission is.
  std::string Exported(std::string_view word, size_t from) {
    std::string out(word.substr(0, from));
    bool first = true;
    for (std::string_view part : Split(word.substr(from), ',')) {
      if (!first) out += ',';
      first = false;
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos || equals + 1 == part.size()) {
        out += part;
        continue;
      }
      out.append(part.substr(0, equals + 1)).append(kPlaceholder);
      ++replaced_;
    }
    return out;
  }

  /// "alice:password"; not "1000:100" (docker run -u), "host:$X", "https://x".
  static bool IsLogin(std::string_view word) {
    const size_t colon = word.find(':');
    return colon != std::string_view::npos && colon + 1 < word.size() && word[colon + 1] != '$' &&
           word[colon + 1] != '/' &&
           word.find_first_not_of("0123456789:") != std::string_view::npos;
  }

  /// NAME=value, --name=value, --wrap=NAME=value.
  std::string Assigned(std::string_view word) {
    for (size_t at = word.find('='); at != std::string_view::npos; at = word.find('=', at + 1)) {
      size_t begin = at;
      while (begin > 0 && IsNameChar(word[begin - 1]) && at - begin < 128) --begin;
      begin = std::min(word.find_first_not_of('-', begin), at);
      const std::string_view name = word.substr(begin, at - begin);
      const size_t value = std::min(word.find_first_not_of("\"'", at + 1), word.size());
      if (!name.empty() && NamesSecret(name) && IsSecretValue(name, word.substr(value), 1))
        return Hide(word, value);
    }
    return std::string(word);
  }

  Follows follows_ = Follows::kAny;
  std::string_view name_;  // of the option before
  char open_quote_ = '\0';
  bool is_sshpass_ = false;
  int64_t replaced_ = 0;
};

/// Secrets give way to the placeholder.
FilteredText FilterWords(const std::vector<std::string_view>& words) {
  WordFilter filter;
  std::string line;
  for (size_t i = 0; i < words.size(); ++i)
    line.append(i == 0 ? "" : " ").append(filter.Next(words[i]));
  FilteredText out = FilterWithMark(line, kPlaceholder);
  out.replaced += filter.replaced();
  return out;
}

std::string WithMark(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == kPlaceholder[0])
      out += kSecretMark;
    else
      out += c;
  }
  return out;
}

}  // namespace

FilteredText FilterCommandLine(std::string_view line) {
  FilteredText out = FilterWords(Split(line, ' '));
  out.text = out.replaced == 0 ? std::string(line) : WithMark(out.text);
  return out;
}

int64_t FilterArguments(std::vector<std::string>* arguments) {
  const FilteredText filtered = FilterWords({arguments->begin(), arguments->end()});
  if (filtered.replaced == 0) return 0;
  arguments->clear();
  for (std::string_view word : Split(filtered.text, ' ')) arguments->push_back(WithMark(word));
  return filtered.replaced;
}

}  // namespace expanse::collect::slurm
