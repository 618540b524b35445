// SPDX-License-Identifier: Apache-2.0
#include "submission/source/python_imports.h"

#include <algorithm>
#include <utility>

#include "platform/fs/fs.h"

namespace expanse::submission {
namespace {

using platform::DirName;
using platform::JoinPath;
using platform::NormalizePath;

constexpr size_t kMostImports = 2000;

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Logical lines of names and punctuation; strings become one token each.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  PythonFacts Read() {
    while (at_ < text_.size()) Step();
    EndLine();
    return std::move(facts_);
  }

 private:
  void Step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n' || c == ';') {
      ++at_;
      if (brackets_ == 0) EndLine();
    } else if (c == '\\') {
      at_ += text_.substr(at_ + 1, 2) == "\r\n" ? 3 : 2;
    } else if (c == '"' || c == '\'') {
      String();
    } else if (IsNameChar(c)) {
      const size_t begin = at_;
      while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
      Push(std::string(text_.substr(begin, at_ - begin)));
    } else {
      if (c == '(' || c == '[' || c == '{') ++brackets_;
      if ((c == ')' || c == ']' || c == '}') && brackets_ > 0) --brackets_;
      if (c != ' ' && c != '\t' && c != '\r') Push(std::string(1, c));
      ++at_;
    }
  }

  /// Only the start of a statement matters; a line that is no import is not kept.
  void Push(std::string token) {
    if (tokens_.empty() && token != "import" && token != "from") is_other_ = true;
    // "try: import x" and "if a: import x": a colon outside brackets starts a statement.
    if (is_other_)
      is_other_ = brackets_ != 0 || token != ":";
    else if (tokens_.size() < 4000)
      tokens_.push_back(std::move(token));
  }

  void String() {
    const char quote = text_[at_];
    const bool triple = text_.substr(at_, 3) == std::string(3, quote);
    const size_t begin = at_ + (triple ? 3 : 1);
    at_ = begin;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ = std::min(at_ + 2, text_.size());
      } else if (triple ? text_.substr(at_, 3) == std::string(3, quote) : text_[at_] == quote) {
        break;
      } else if (!triple && text_[at_] == '\n') {
        break;
      } else {
        ++at_;
      }
    }
    const auto value = text_.substr(begin, at_ - begin);
    at_ = std::min(at_ + (triple ? 3 : 1), text_.size());
    if (value.size() < 200 && value.find_first_of(" \n\t{}%*\\") == std::string_view::npos &&
        (IsCodeName(value) || IsConfigurationName(value)) &&
        facts_.source_strings.size() < kMostImports) {
      facts_.source_strings.emplace_back(value);
    }
    Push("\"");
  }

  void EndLine() {
    if (tokens_.size() >= 2 && facts_.imports.size() < kMostImports) {
      if (tokens_[0] == "import") ReadImport();
      if (tokens_[0] == "from") ReadFrom();
    }
    tokens_.clear();
    is_other_ = false;
  }

  void ReadImport() {
    PythonImport import;
    bool skip = false;
    for (size_t i = 1; i <= tokens_.size(); ++i) {
      if (i == tokens_.size() || tokens_[i] == ",") {
        if (!import.module.empty()) facts_.imports.push_back(std::exchange(import, {}));
        skip = false;
      } else if (tokens_[i] == "as") {
        skip = true;
      } else if (!skip && tokens_[i] != ".") {
        import.module.push_back(tokens_[i]);
      }
    }
  }

  void ReadFrom() {
    PythonImport import;
    size_t i = 1;
    while (i < tokens_.size() && tokens_[i] == ".") {
      ++import.level;
      ++i;
    }
    for (; i < tokens_.size() && tokens_[i] != "import"; ++i)
      if (tokens_[i] != ".") import.module.push_back(tokens_[i]);
    if (i == tokens_.size()) return;
    bool skip = false;
    for (++i; i < tokens_.size(); ++i) {
      if (tokens_[i] == ",") {
        skip = false;
      } else if (tokens_[i] == "as") {
        skip = true;
      } else if (!skip && tokens_[i] != "(" && tokens_[i] != ")" && tokens_[i] != "*") {
        import.names.push_back(tokens_[i]);
      }
    }
    facts_.imports.push_back(std::move(import));
  }

  std::string_view text_;
  size_t at_ = 0;
  int brackets_ = 0;
  bool is_other_ = false;
  std::vector<std::string> tokens_;
  PythonFacts facts_;
};

void AddModule(const std::string& base, const std::vector<std::string>& module,
               const std::vector<std::string>& names, std::vector<SourceReference>* out) {
  const auto add = [out](const std::string& path) {
    if (out->size() < 10 * kMostImports) {
      out->push_back({NormalizePath(path), ReferenceKind::kModule, SourceLanguage::kPython});
    }
  };
  std::string at = base;
  for (const auto& part : module) {
    at = JoinPath(at, part);
    add(at + ".py");
    add(JoinPath(at, "__init__.py"));
  }
  for (const auto& name : names) {
    add(JoinPath(at, name) + ".py");
    add(JoinPath(JoinPath(at, name), "__init__.py"));
  }
}

}  // namespace

PythonFacts ReadPython(std::string_view content) { return Lexer(content).Read(); }

std::vector<SourceReference> ReferencesOfPython(std::string_view content, const std::string& path,
                                                const std::vector<std::string>& roots,
                                                const std::string& work_dir) {
  std::vector<SourceReference> out;
  const PythonFacts facts = ReadPython(content);
  const std::string directory = DirName(path);
  for (const auto& import : facts.imports) {
    if (import.level > 0) {
      std::string base = directory;
      for (int i = 1; i < import.level && i < 100; ++i) base = DirName(base);
      AddModule(base, import.module, import.names, &out);
      continue;
    }
    for (const auto& root : roots) AddModule(root, import.module, import.names, &out);
  }
  for (const auto& name : facts.source_strings) {
    const std::string where = name.front() == '/' ? name : JoinPath(work_dir, name);
    out.push_back({NormalizePath(where), ReferenceKind::kModule, SourceLanguage::kOther});
    if (name.front() != '/' && directory != work_dir) {
      out.push_back({NormalizePath(JoinPath(directory, name)), ReferenceKind::kModule,
                     SourceLanguage::kOther});
    }
  }
  return out;
}

}  // namespace expanse::submission
