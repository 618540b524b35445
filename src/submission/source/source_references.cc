// SPDX-License-Identifier: Apache-2.0
#include "submission/source/source_references.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "platform/fs/fs.h"
#include "submission/source/python_imports.h"

namespace expanse::submission {
namespace {

using platform::BaseName;
using platform::DirName;
using platform::JoinPath;
using platform::NormalizePath;

std::string ExtensionOf(std::string_view path) {
  const std::string base = BaseName(path);
  const size_t dot = base.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  return ToLower(base.substr(dot + 1));
}

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

constexpr std::array<std::string_view, 12> kCExtensions{"c",   "h",  "cc",  "cpp", "cxx", "c++",
                                                        "hpp", "hh", "hxx", "cu",  "cuh", "hip"};
constexpr std::array<std::string_view, 8> kFortranExtensions{"f",   "f77", "f90", "f95",
                                                             "f03", "f08", "for", "ftn"};
constexpr std::array<std::string_view, 20> kOtherCode{
    "pl",  "pm",  "rb",  "js", "ts",  "lua", "java", "go",    "rs", "scala",
    "sql", "awk", "tcl", "nf", "smk", "gp",  "nim",  "cmake", "mk", "ipynb"};
constexpr std::array<std::string_view, 6> kConfiguration{"yaml", "yml", "toml",
                                                         "ini",  "cfg", "conf"};

bool IsIdentifierChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Calls `use` with the text between quotes that follows `keyword` on a line (after optional
/// brackets and blanks): include "x", source('x'), include("x").
template <typename Use>
void ForQuotedAfter(std::string_view content, std::string_view keyword, bool ignore_case, Use use) {
  size_t begin = 0;
  while (begin < content.size()) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = Trim(content.substr(begin, end - begin));
    begin = end + 1;
    const bool starts = ignore_case ? StartsWithIgnoreCase(line, keyword)
                                    : line.substr(0, keyword.size()) == keyword;
    if (!starts) continue;
    line.remove_prefix(keyword.size());
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t' || line.front() == '('))
      line.remove_prefix(1);
    if (line.size() < 2 || (line.front() != '"' && line.front() != '\'')) continue;
    const size_t close = line.find(line.front(), 1);
    if (close == std::string_view::npos || close == 1) continue;
    use(std::string(line.substr(1, close - 1)));
  }
}

class Finder {
 public:
  Finder(std::string_view content, const std::string& path, std::string work_dir)
      : content_(content), directory_(DirName(path)), work_dir_(std::move(work_dir)) {}

  std::vector<SourceReference> C() {
    // "#include" may have blanks behind '#'.
    for (const auto* keyword : {"#include", "# include"})
      ForQuotedAfter(content_, keyword, false,
                     [this](const std::string& name) { Add(directory_, name); });
    return std::move(out_);
  }

  std::vector<SourceReference> Fortran() {
    for (const auto* keyword : {"include", "#include"})
      ForQuotedAfter(content_, keyword, true,
                     [this](const std::string& name) { Add(directory_, name); });
    size_t begin = 0;
    while (begin < content_.size()) {
      const size_t end = std::min(content_.find('\n', begin), content_.size());
      std::string_view line = Trim(content_.substr(begin, end - begin));
      begin = end + 1;
      if (!StartsWithIgnoreCase(line, "use ")) continue;
      line = Trim(line.substr(4));
      size_t n = 0;
      while (n < line.size() && IsIdentifierChar(line[n])) ++n;
      const std::string name = ToLower(line.substr(0, n));
      if (name.empty()) continue;
      for (const auto* extension : {".f90", ".F90", ".f95", ".f", ".F"})
        Add(directory_, name + extension);
    }
    return std::move(out_);
  }

  std::vector<SourceReference> R() {
    ForQuotedAfter(content_, "source", false,
                   [this](const std::string& name) { Add(work_dir_, name); });
    return std::move(out_);
  }

  std::vector<SourceReference> Julia() {
    ForQuotedAfter(content_, "include", false,
                   [this](const std::string& name) { Add(directory_, name); });
    return std::move(out_);
  }

  /// Any name may be a function in a file beside this one.
  std::vector<SourceReference> Octave() {
    std::set<std::string> names;
    for (size_t i = 0; i < content_.size();) {
      if (!IsIdentifierChar(content_[i])) {
        ++i;
        continue;
      }
      size_t end = i;
      while (end < content_.size() && IsIdentifierChar(content_[end])) ++end;
      if (end - i <= 63 && names.size() < 2000)
        names.insert(std::string(content_.substr(i, end - i)));
      i = end;
    }
    for (const auto& name : names) Add(directory_, name + ".m");
    return std::move(out_);
  }

  std::vector<SourceReference> Make() {
    std::string word;
    const auto flush = [this, &word] {
      if (!word.empty() && word.find('$') == std::string::npos && IsCodeName(word))
        Add(directory_, word);
      word.clear();
    };
    for (const char c : content_) {
      if (IsIdentifierChar(c) || c == '.' || c == '/' || c == '-' || c == '+' || c == '$') {
        if (word.size() < 1000) word += c;
      } else {
        flush();
      }
    }
    flush();
    return std::move(out_);
  }

 private:
  void Add(const std::string& directory, const std::string& name) {
    if (out_.size() >= 5000) return;
    const std::string path = name.front() == '/' ? name : JoinPath(directory, name);
    out_.push_back({NormalizePath(path), ReferenceKind::kModule, SourceLanguage::kOther});
  }

  std::string_view content_;
  std::string directory_;
  std::string work_dir_;
  std::vector<SourceReference> out_;
};

}  // namespace

SourceLanguage LanguageOf(std::string_view path, std::string_view content) {
  const std::string extension = ExtensionOf(path);
  if (extension == "py" || extension == "pyw") return SourceLanguage::kPython;
  if (extension == "sh" || extension == "bash" || extension == "zsh" || extension == "slurm" ||
      extension == "sbatch") {
    return SourceLanguage::kShell;
  }
  if (extension == "r") return SourceLanguage::kR;
  if (extension == "jl") return SourceLanguage::kJulia;
  if (extension == "m") return SourceLanguage::kOctave;
  if (Contains(kCExtensions, extension)) return SourceLanguage::kC;
  if (Contains(kFortranExtensions, extension)) return SourceLanguage::kFortran;
  const std::string base = ToLower(BaseName(path));
  if (base == "makefile" || base == "gnumakefile" || extension == "mk") {
    return SourceLanguage::kMake;
  }
  if (content.substr(0, 2) != "#!") return SourceLanguage::kOther;
  const std::string_view first = content.substr(0, std::min<size_t>(content.find('\n'), 200));
  for (const auto& [word, language] :
       std::initializer_list<std::pair<std::string_view, SourceLanguage>>{
           {"python", SourceLanguage::kPython},
           {"Rscript", SourceLanguage::kR},
           {"julia", SourceLanguage::kJulia},
           {"octave", SourceLanguage::kOctave},
           {"sh", SourceLanguage::kShell}})
    if (first.find(word) != std::string_view::npos) return language;
  return SourceLanguage::kOther;
}

bool IsCodeName(std::string_view path) {
  const std::string extension = ExtensionOf(path);
  if (extension.empty()) return false;
  return LanguageOf(path, "") != SourceLanguage::kOther || Contains(kOtherCode, extension);
}

bool IsConfigurationName(std::string_view path) {
  const std::string extension = ExtensionOf(path);
  if (Contains(kConfiguration, extension)) return true;
  const std::string base = ToLower(BaseName(path));
  return extension == "json" &&
         (base.find("conf") != std::string::npos || base.find("param") != std::string::npos);
}

std::vector<SourceReference> ReferencesOfSource(SourceLanguage language, std::string_view content,
                                                const std::string& path,
                                                const std::vector<std::string>& roots,
                                                const std::string& work_dir) {
  Finder finder(content, path, work_dir);
  switch (language) {
    case SourceLanguage::kPython:
      return ReferencesOfPython(content, path, roots, work_dir);
    case SourceLanguage::kC:
      return finder.C();
    case SourceLanguage::kFortran:
      return finder.Fortran();
    case SourceLanguage::kR:
      return finder.R();
    case SourceLanguage::kJulia:
      return finder.Julia();
    case SourceLanguage::kOctave:
      return finder.Octave();
    case SourceLanguage::kMake:
      return finder.Make();
    case SourceLanguage::kShell:  // ReferencesOfShell
    case SourceLanguage::kOther:
      break;
  }
  return {};
}

}  // namespace expanse::submission
