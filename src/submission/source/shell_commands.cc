// SPDX-License-Identifier: Apache-2.0
#include "submission/source/shell_commands.h"

#include <algorithm>
#include <array>
#include <utility>

namespace expanse::submission {
namespace {

// Bounds for hostile input.
constexpr size_t kMostCommands = 20'000;
constexpr size_t kMostVariables = 200;
constexpr size_t kMostValueBytes = 4096;
constexpr size_t kMostWordBytes = 16 << 10;  // after variables were filled in
constexpr int kMostNesting = 200;
constexpr size_t kMostAlternatives = 64;
// Stand for a loop's variable inside a word until the word is complete; no script holds them.
constexpr char kLoopBegin = '\x01';
constexpr char kLoopEnd = '\x02';

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsOperator(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>';
}

bool IsKeyword(std::string_view word) {
  static constexpr std::array<std::string_view, 17> kKeywords{
      "if", "then", "else", "elif", "fi",   "while", "until",    "do",    "done",
      "{",  "}",    "!",    "case", "esac", "time",  "function", "coproc"};
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

class Parser {
 public:
  Parser(std::string_view text, std::map<std::string, std::string> variables)
      : text_(text), variables_(std::move(variables)) {}

  ShellScript Parse() {
    while (at_ < text_.size() && commands_.size() < kMostCommands) Step();
    Finish();
    return {std::move(commands_), std::move(variables_)};
  }

 private:
  void Step() {
    const char c = text_[at_];
    if (c == '\n') {
      Finish();
      ++at_;
      ++line_;
      SkipHereDocuments();
    } else if (IsBlank(c)) {
      ++at_;
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
      ++line_;
    } else if (c == '\\' && text_.substr(at_ + 1, 2) == "\r\n") {
      at_ += 3;
      ++line_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '<' || c == '>' || (c == '&' && Peek(1) == '>')) {
      Redirect();
    } else if (IsOperator(c)) {
      Finish();
      if (c == '(') ++depth_;
      if (c == ')' && depth_ > 0) --depth_;
      ++at_;
    } else {
      Word();
    }
  }

  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Redirect() {
    // A file descriptor number right before the operator is no argument.
    if (!words_.empty() && words_.back().end == at_ && words_.back().text.size() == 1 &&
        words_.back().text[0] >= '0' && words_.back().text[0] <= '9') {
      words_.pop_back();
    }
    if (text_.substr(at_, 3) == "<<<") {
      at_ += 3;
      next_role_ = ShellWordRole::kInput;
      return;
    }
    if (text_.substr(at_, 2) == "<<") {
      at_ += 2;
      StartHereDocument();
      return;
    }
    const bool output = text_[at_] != '<';
    while (at_ < text_.size() &&
           (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&' || text_[at_] == '|')) {
      ++at_;
    }
    if (Peek(0) == '(') return;  // process substitution: its commands are read as such
    next_role_ = output ? ShellWordRole::kOutput : ShellWordRole::kInput;
  }

  void StartHereDocument() {
    const bool strip_tabs = Peek(0) == '-';
    if (strip_tabs) ++at_;
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
    std::string delimiter;
    while (at_ < text_.size() && !IsBlank(text_[at_]) && text_[at_] != '\n' &&
           !IsOperator(text_[at_])) {
      if (text_[at_] != '\'' && text_[at_] != '"' && text_[at_] != '\\') delimiter += text_[at_];
      ++at_;
    }
    here_documents_.push_back({delimiter, strip_tabs});
  }

  void SkipHereDocuments() {
    for (const auto& [delimiter, strip_tabs] : std::exchange(here_documents_, {})) {
      while (at_ < text_.size()) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        while (strip_tabs && !line.empty() && line.front() == '\t') line.remove_prefix(1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        if (line == delimiter) break;
      }
    }
  }

  void Word() {
    ShellWord word;
    word.begin = at_;
    word.role = std::exchange(next_role_, ShellWordRole::kArgument);
    const int first_line = line_;
    bool in_double = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (!in_double) break;
        ++line_;
      }
      if (!in_double && (IsBlank(c) || IsOperator(c))) break;
      if (c == '\\') {
        Escape(&word, in_double);
      } else if (c == '"') {
        in_double = !in_double;
        ++at_;
      } else if (c == '\'' && !in_double) {
        SingleQuoted(&word);
      } else if (c == '$') {
        Expansion(&word);
      } else if (c == '`') {
        word.literal = false;
        SkipTo('`');
      } else {
        if (c == kLoopBegin || c == kLoopEnd) word.literal = false;
        if (!in_double && (c == '*' || c == '?' || c == '[')) word.literal = false;
        if (c == '~' && word.text.empty() && at_ == word.begin) {
          Tilde(&word);
          continue;
        }
        word.text += c;
        ++at_;
      }
    }
    word.end = at_;
    if (word.literal && word.text.find(kLoopBegin) != std::string::npos) ExpandLoop(&word);
    if (!word.literal) word.text = std::string(text_.substr(word.begin, word.end - word.begin));
    if (words_.empty()) command_line_ = first_line;
    words_.push_back(std::move(word));
  }

  /// One text for each value of the loop's variable; two loops' variables in one word are too many.
  void ExpandLoop(ShellWord* word) {
    const size_t begin = word->text.find(kLoopBegin);
    const size_t end = word->text.find(kLoopEnd);
    const std::string marker = word->text.substr(begin, end + 1 - begin);
    const auto& values = loops_[marker.substr(1, marker.size() - 2)];
    for (const auto& value : values) {
      std::string text = word->text;
      for (size_t at = 0; (at = text.find(marker, at)) != std::string::npos; at += value.size()) {
        text.replace(at, marker.size(), value);
        if (text.size() > kMostWordBytes) break;
      }
      if (text.find(kLoopBegin) != std::string::npos) word->literal = false;
      word->alternatives.push_back(std::move(text));
    }
    if (!word->literal || word->alternatives.empty()) {
      word->literal = false;
      word->alternatives.clear();
      return;
    }
    word->text = word->alternatives.front();
  }

  void Escape(ShellWord* word, bool in_double) {
    if (at_ + 1 >= text_.size()) {
      ++at_;
      return;
    }
    const char next = text_[at_ + 1];
    if (next == '\n') {
      ++line_;
    } else {
      if (in_double && next != '$' && next != '`' && next != '"' && next != '\\')
        word->text += '\\';
      word->text += next;
    }
    at_ += 2;
  }

  void SingleQuoted(ShellWord* word) {
    const size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
    const auto inside = text_.substr(at_ + 1, end - at_ - 1);
    line_ += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    word->text += inside;
    at_ = std::min(end + 1, text_.size());
  }

  void Tilde(ShellWord* word) {
    ++at_;
    const auto home = variables_.find("HOME");
    if (home == variables_.end() || (Peek(0) != '/' && IsNameChar(Peek(0)))) {
      word->literal = false;
    } else {
      word->text += home->second;
    }
  }

  /// Past the next `stop`, minding nothing else.
  void SkipTo(char stop) {
    const size_t end = std::min(text_.find(stop, at_ + 1), text_.size());
    const auto inside = text_.substr(at_, end - at_);
    line_ += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    at_ = std::min(end + 1, text_.size());
  }

  void Expansion(ShellWord* word) {
    const char next = Peek(1);
    if (next == '(') {
      word->literal = false;
      ++at_;
      SkipBalanced('(', ')');
    } else if (next == '{') {
      BracedVariable(word);
    } else if (next >= '0' && next <= '9') {
      Substitute(word, std::string(1, next), nullptr);
      at_ += 2;
    } else if (IsNameChar(next)) {
      size_t end = at_ + 1;
      while (end < text_.size() && IsNameChar(text_[end])) ++end;
      Substitute(word, std::string(text_.substr(at_ + 1, end - at_ - 1)), nullptr);
      at_ = end;
    } else {
      if (next == '@' || next == '*' || next == '#' || next == '?' || next == '$' || next == '!') {
        word->literal = false;
        ++at_;
      } else {
        word->text += '$';
      }
      ++at_;
    }
  }

  void BracedVariable(ShellWord* word) {
    const size_t begin = at_ + 2;
    size_t end = begin;
    while (end < text_.size() && IsNameChar(text_[end])) ++end;
    const std::string name(text_.substr(begin, end - begin));
    if (end < text_.size() && text_[end] == '}') {
      Substitute(word, name, nullptr);
      at_ = end + 1;
      return;
    }
    const auto form = text_.substr(end, 2);
    const size_t close = text_.find('}', end);
    if ((form == ":-" || form == ":=") && close != std::string_view::npos) {
      const std::string fallback(text_.substr(end + 2, close - end - 2));
      if (fallback.find_first_of("$`\"'\\{") == std::string::npos) {
        Substitute(word, name, &fallback);
        at_ = close + 1;
        return;
      }
    }
    word->literal = false;
    ++at_;
    SkipBalanced('{', '}');
  }

  void Substitute(ShellWord* word, const std::string& name, const std::string* fallback) {
    const auto found = variables_.find(name);
    if (word->text.size() > kMostWordBytes) {
      word->literal = false;
    } else if (loops_.count(name) != 0) {
      word->text += kLoopBegin + name + kLoopEnd;
    } else if (found != variables_.end()) {
      word->text += found->second;
    } else if (fallback != nullptr && unknown_.count(name) == 0) {
      word->text += *fallback;
    } else {
      word->literal = false;
    }
  }

  /// From an opening bracket past its closing one; quotes are minded.
  void SkipBalanced(char open, char close) {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '\\') {
        at_ = std::min(at_ + 2, text_.size());
        continue;
      }
      if (c == '\'') {
        SkipTo('\'');
        continue;
      }
      ++at_;
      if (c == open && ++depth > kMostNesting) return;
      if (c == close && --depth == 0) return;
    }
  }

  /// NAME=value before a command; alone it sets the variable for the rest of the script.
  static bool IsAssignment(const ShellWord& word, std::string_view raw, size_t* equals) {
    *equals = raw.find('=');
    if (*equals == std::string_view::npos || *equals == 0 || word.begin == word.end) return false;
    if (raw[0] >= '0' && raw[0] <= '9') return false;
    return std::all_of(raw.begin(), raw.begin() + static_cast<long>(*equals), IsNameChar);
  }

  void Assign(const ShellWord& word, std::string_view raw, size_t equals) {
    const std::string name(raw.substr(0, equals));
    loops_.erase(name);
    if (!word.literal || !word.alternatives.empty() || word.text.size() > kMostValueBytes ||
        (variables_.size() >= kMostVariables && variables_.count(name) == 0)) {
      variables_.erase(name);
      unknown_.insert({name, true});
      return;
    }
    variables_[name] = word.text.substr(std::min(word.text.size(), equals + 1));
  }

  /// "for NAME in WORD...": the values are known when every word is.
  void StartLoop(const std::vector<ShellWord>& words, size_t at) {
    if (at >= words.size()) return;
    const std::string& name = words[at].text;
    variables_.erase(name);
    loops_.erase(name);
    unknown_.insert({name, true});
    if (at + 2 >= words.size() || words[at + 1].text != "in" ||
        words.size() - at - 2 > kMostAlternatives || loops_.size() >= kMostVariables) {
      return;
    }
    std::vector<std::string> values;
    for (size_t i = at + 2; i < words.size(); ++i) {
      if (!words[i].literal || !words[i].alternatives.empty() ||
          words[i].text.size() > kMostValueBytes) {
        return;
      }
      values.push_back(words[i].text);
    }
    loops_[name] = std::move(values);
  }

  void Finish() {
    next_role_ = ShellWordRole::kArgument;
    if (words_.empty()) return;
    std::vector<ShellWord> words = std::exchange(words_, {});
    size_t first = 0;
    while (first < words.size() && words[first].literal && IsKeyword(words[first].text)) ++first;
    if (first < words.size() && (words[first].text == "for" || words[first].text == "select")) {
      StartLoop(words, first + 1);
      return;
    }
    const auto raw = [this](const ShellWord& w) { return text_.substr(w.begin, w.end - w.begin); };
    std::vector<std::pair<size_t, size_t>> assignments;
    size_t equals = 0;
    while (first < words.size() && IsAssignment(words[first], raw(words[first]), &equals)) {
      assignments.emplace_back(first++, equals);
    }
    const bool declares =
        first < words.size() && (words[first].text == "export" || words[first].text == "declare" ||
                                 words[first].text == "local" || words[first].text == "readonly");
    if (declares) {
      for (size_t i = first + 1; i < words.size(); ++i)
        if (IsAssignment(words[i], raw(words[i]), &equals)) assignments.emplace_back(i, equals);
    }
    if (declares || first == words.size())
      for (const auto& [i, eq] : assignments) Assign(words[i], raw(words[i]), eq);
    if (first == words.size()) return;
    words.erase(words.begin(), words.begin() + static_cast<long>(first));
    commands_.push_back({std::move(words), command_line_, depth_});
  }

  std::string_view text_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, bool> unknown_;                    // set to what only a running shell knows
  std::map<std::string, std::vector<std::string>> loops_;  // values of a loop's variable
  size_t at_ = 0;
  int line_ = 1;
  int command_line_ = 1;
  int depth_ = 0;
  ShellWordRole next_role_ = ShellWordRole::kArgument;
  std::vector<ShellWord> words_;
  std::vector<std::pair<std::string, bool>> here_documents_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

ShellScript ReadShellCommands(std::string_view script,
                              std::map<std::string, std::string> variables) {
  return Parser(script, std::move(variables)).Parse();
}

}  // namespace expanse::submission
