// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_script.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/strings.h"
#include "submission/slurm_script/sbatch_words.h"

namespace expanse::submission {
namespace {

constexpr std::string_view kMagic = "#SBATCH";
constexpr std::string_view kOldMagic = "#SLURM";
constexpr size_t kShownBytes = 200;  // of a line in a message
constexpr size_t kMostWarnings = 1000;

struct PlacedWord {
  std::string text;
  int line;
  size_t begin;  // in the script
  size_t end;
  std::vector<size_t> raw_at;  // in the script
};

std::string Shown(std::string_view text) {
  return EscapeForTerminal(ToUtf8(text.substr(0, kShownBytes)));
}

/// Splits the script into lines and words; sbatch stops at the first line that is neither empty
/// nor a comment.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) { out_.first_command = bytes.size(); }

  SbatchScript Read() {
    CheckWhole();
    ReadLines();
    out_.components = static_cast<int>(words_.size());
    for (size_t c = 0; c < words_.size(); ++c) ReadOptions(static_cast<int>(c));
    MarkOverridden();
    return std::move(out_);
  }

 private:
  void Refuse(int line, std::string text) { out_.refusals.push_back({line, std::move(text)}); }
  void Warn(int line, std::string text) {
    if (out_.warnings.size() < kMostWarnings) out_.warnings.push_back({line, std::move(text)});
  }

  void CheckWhole() {
    if (bytes_.empty()) {
      Refuse(0, "the script is empty");
    } else if (Trim(bytes_).empty()) {
      Refuse(0, "the script holds only white space");
    } else if (bytes_.substr(0, 2) != "#!") {
      Refuse(1, "the first line does not start with #! and the path of an interpreter");
    }
    if (bytes_.find('\0') != std::string_view::npos) {
      Refuse(0, "the script holds a NUL byte; it is not a text file");
    }
    const size_t cr = bytes_.find("\r\n");
    if (cr != std::string_view::npos) {
      out_.crlf = true;
      Refuse(static_cast<int>(
                 std::count(bytes_.begin(), bytes_.begin() + static_cast<long>(cr), '\n')) +
                 1,
             "the script has DOS line ends (CR LF); sbatch wants LF alone (dos2unix changes them)");
    }
    if (bytes_.substr(0, 2) == "#!") {
      out_.interpreter = std::string(Trim(bytes_.substr(2, bytes_.find('\n') - 2)));
    }
  }

  void ReadLines() {
    words_.emplace_back();
    int number = 0;
    for (size_t begin = 0; begin < bytes_.size();) {
      size_t end = bytes_.find('\n', begin);
      const size_t next = end == std::string_view::npos ? bytes_.size() : end + 1;
      if (end == std::string_view::npos) end = bytes_.size();
      std::string_view line = bytes_.substr(begin, end - begin);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      ReadLine(line, begin, ++number);
      begin = next;
    }
  }

  void ReadLine(std::string_view line, size_t begin, int number) {
    size_t magic = 0;
    if (line.substr(0, kMagic.size()) == kMagic) magic = kMagic.size();
    if (line.substr(0, kOldMagic.size()) == kOldMagic) magic = kOldMagic.size();
    if (out_.first_command_line != 0) {
      if (line.substr(0, kMagic.size()) == kMagic && out_.dead.size() < kMostWarnings) {
        out_.dead.push_back({number, out_.first_command_line, Shown(line)});
        Warn(number, fmt::format("'{}' is ignored: sbatch stops reading at the first command "
                                 "(line {})",
                                 Shown(line), out_.first_command_line));
      }
      return;
    }
    if (magic == 0) {
      const std::string_view rest = Trim(line);
      if (rest.empty() || rest.front() == '#') {
        WarnOfNearMiss(line, rest, number);
        return;
      }
      out_.first_command_line = number;
      out_.first_command = begin;
      return;
    }
    if (magic == kOldMagic.size()) {
      Warn(number, "#SLURM is an old spelling; write #SBATCH");
    }
    AddWords(SplitSbatchLine(line, magic), line, begin, number);
  }

  void AddWords(SbatchWords split, std::string_view line, size_t begin, int number) {
    if (split.unmatched_quote) {
      Refuse(number, fmt::format("unmatched {} in '{}'", *split.unmatched_quote, Shown(line)));
    }
    if (split.empty_word_ended_line && !EndsInBackslash(line)) {
      Warn(number, "an empty word ends the line: sbatch ignores what follows it");
    }
    if (split.separator) {
      words_.emplace_back();
      if (split.separator_is_packjob) Warn(number, "packjob is an old name; write hetjob");
      out_.lines.push_back({number, {begin, line.size()}, static_cast<int>(words_.size()) - 1});
      return;
    }
    out_.lines.push_back({number, {begin, line.size()}, static_cast<int>(words_.size()) - 1});
    for (auto& w : split.words) {
      for (auto& at : w.raw_at) at += begin;
      words_.back().push_back(
          {std::move(w.text), number, begin + w.begin, begin + w.end, std::move(w.raw_at)});
    }
  }

  static bool EndsInBackslash(std::string_view line) {
    const auto trimmed = Trim(line);
    return !trimmed.empty() && trimmed.back() == '\\';
  }

  /// "# SBATCH", "##SBATCH", " #SBATCH" and other cases: comments to sbatch, often meant as more.
  void WarnOfNearMiss(std::string_view line, std::string_view rest, int number) {
    if (rest.empty()) return;
    if (rest.substr(0, kMagic.size()) == kMagic && line.front() != '#') {
      Warn(number, fmt::format("'{}' is a comment to sbatch: #SBATCH must stand at the start of "
                               "the line",
                               Shown(rest)));
    } else if (rest.substr(0, kMagic.size()) != kMagic && StartsWithIgnoreCase(rest, kMagic)) {
      Warn(number,
           fmt::format("'{}' is a comment to sbatch: write #SBATCH in capitals", Shown(rest)));
    } else if (rest.substr(0, 8) == "# SBATCH") {
      Warn(number,
           fmt::format("'{}' is a comment to sbatch: no space may stand after #", Shown(rest)));
    } else if (rest.substr(0, 5) == "#PBS " || rest.substr(0, 6) == "#BSUB ") {
      Warn(number,
           fmt::format("'{}' is a directive of another scheduler and was not read", Shown(rest)));
    }
  }

  /// What getopt_long does with the words of one component, with "+": it stops at the first word
  /// that is no option, and sbatch then refuses the script.
  void ReadOptions(int component) {
    auto& words = words_[static_cast<size_t>(component)];
    size_t i = 0;
    while (i < words.size()) {
      const auto& word = words[i];
      if (word.text == "--") {
        ++i;
        if (i < words.size()) RefuseText(words[i]);
        return;
      }
      if (word.text.size() < 2 || word.text[0] != '-') {
        RefuseText(word);
        return;
      }
      const bool is_long = word.text[1] == '-';
      if (!(is_long ? ReadLong(words, &i, component) : ReadShort(words, &i, component))) return;
    }
  }

  void RefuseText(const PlacedWord& word) {
    Refuse(word.line, fmt::format("'{}' is not an option; sbatch refuses text after the options "
                                  "that no # precedes",
                                  Shown(word.text)));
  }

  bool ReadLong(const std::vector<PlacedWord>& words, size_t* i, int component) {
    const auto& word = words[*i];
    const size_t equals = word.text.find('=');
    const std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto found = FindSbatchOption(std::string_view(name));
    if (found.option == nullptr) {
      RefuseName(word, name, found.possibilities);
      return false;
    }
    SbatchDirective d;
    d.option = found.option;
    d.line = word.line;
    d.component = component;
    const size_t name_chars = 2 + name.size();
    d.name = {word.begin, word.raw_at[name_chars] - word.begin};
    d.whole = {word.begin, word.end - word.begin};
    ++*i;
    if (equals != std::string::npos) {
      if (d.option->argument == SbatchArgument::kNone) {
        Refuse(word.line, fmt::format("--{} takes no value", d.option->name));
        return false;
      }
      d.has_value = true;
      d.value = word.text.substr(equals + 1);
      // raw_at of the first value byte lies behind an opening quote; the value's raw bytes start
      // right after the '=' itself.
      const size_t value_begin = word.raw_at[equals] + 1;
      d.value_bytes = {value_begin, word.end - value_begin};
    } else if (d.option->argument == SbatchArgument::kRequired) {
      return TakeNextWord(words, i, std::move(d));
    }
    out_.directives.push_back(std::move(d));
    return true;
  }

  bool TakeNextWord(const std::vector<PlacedWord>& words, size_t* i, SbatchDirective d) {
    if (*i >= words.size()) {
      Refuse(d.line, fmt::format("--{} needs a value", d.option->name));
      return false;
    }
    const auto& value = words[*i];
    d.has_value = true;
    d.value = value.text;
    d.value_bytes = {value.begin, value.end - value.begin};
    d.whole.length = value.end - d.whole.offset;
    ++*i;
    out_.directives.push_back(std::move(d));
    return true;
  }

  bool ReadShort(const std::vector<PlacedWord>& words, size_t* i, int component) {
    const PlacedWord word = words[*i];
    ++*i;
    for (size_t at = 1; at < word.text.size(); ++at) {
      const auto* option = FindSbatchOption(word.text[at]);
      if (option == nullptr) {
        Refuse(word.line,
               fmt::format("-{} is not an option of sbatch", Shown(word.text.substr(at, 1))));
        return false;
      }
      SbatchDirective d;
      d.option = option;
      d.line = word.line;
      d.component = component;
      const size_t name_begin = at == 1 ? word.begin : word.raw_at[at];
      d.name = {name_begin, word.raw_at[at] + 1 - name_begin};
      d.whole = d.name;
      if (option->argument == SbatchArgument::kNone ||
          (option->argument == SbatchArgument::kOptional && at + 1 == word.text.size())) {
        out_.directives.push_back(std::move(d));
        continue;
      }
      if (at + 1 == word.text.size()) return TakeNextWord(words, i, std::move(d));
      d.has_value = true;
      d.value = word.text.substr(at + 1);
      const size_t value_begin = word.raw_at[at] + 1;
      d.value_bytes = {value_begin, word.end - value_begin};
      d.whole.length = word.end - d.whole.offset;
      out_.directives.push_back(std::move(d));
      return true;
    }
    return true;
  }

  void RefuseName(const PlacedWord& word, const std::string& name,
                  const std::vector<std::string>& possibilities) {
    if (!possibilities.empty()) {
      Refuse(word.line,
             fmt::format("--{} is ambiguous: {}", Shown(name), Join(possibilities, ", ")));
      return;
    }
    std::vector<std::string> names;
    for (const auto& option : SbatchOptions()) names.emplace_back(option.name);
    const auto near = NearestName(name, names);
    Refuse(word.line, fmt::format("--{} is not an option of sbatch{}", Shown(name),
                                  near ? fmt::format("; did you mean --{}?", *near) : ""));
  }

  void MarkOverridden() {
    std::map<std::pair<int, std::string_view>, SbatchDirective*> last;
    for (auto& d : out_.directives) {
      const std::string_view name =
          d.option->name == "tasks-per-node" ? "ntasks-per-node" : d.option->name;
      auto& slot = last[{d.component, name}];
      if (slot != nullptr) {
        slot->effective = false;
        Warn(slot->line,
             fmt::format("--{} is given again on line {}; the last one counts", name, d.line));
      }
      slot = &d;
    }
  }

  std::string_view bytes_;
  SbatchScript out_;
  std::vector<std::vector<PlacedWord>> words_;
};

}  // namespace

const SbatchDirective* SbatchScript::Find(std::string_view option_name, int component) const {
  for (const auto& d : directives)
    if (d.effective && d.component == component && d.option->name == option_name) return &d;
  return nullptr;
}

SbatchScript ReadSbatchScript(std::string_view bytes) { return Reader(bytes).Read(); }

std::string WithoutResourceDirectives(std::string_view bytes, const SbatchScript& script) {
  std::string out;
  size_t copied = 0;
  // Lines and directives are both in the order of the script.
  auto next = script.directives.begin();
  for (const auto& line : script.lines) {
    bool any_kept = false;
    std::vector<ByteSpan> cut;
    while (next != script.directives.end() && next->line < line.number) ++next;
    for (; next != script.directives.end() && next->line == line.number; ++next) {
      if (next->option->kind == SbatchKind::kProgram) {
        any_kept = true;
      } else {
        cut.push_back(next->whole);
      }
    }
    if (cut.empty()) continue;
    if (!any_kept) {
      const size_t newline = bytes.find('\n', line.bytes.offset);
      const size_t end = newline == std::string_view::npos ? bytes.size() : newline + 1;
      if (line.bytes.offset < copied) continue;
      out += bytes.substr(copied, line.bytes.offset - copied);
      copied = std::max(end, cut.back().end());
      continue;
    }
    for (const auto& span : cut) {
      if (span.offset < copied) continue;
      size_t begin = span.offset;
      // The white space before the option goes with it.
      while (begin > line.bytes.offset && (bytes[begin - 1] == ' ' || bytes[begin - 1] == '\t'))
        --begin;
      out += bytes.substr(copied, begin - copied);
      copied = span.end();
    }
  }
  out += bytes.substr(copied);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
  return out;
}

}  // namespace expanse::submission
