// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/strings.h"
#include "platform/fs/fs.h"
#include "submission/source/shell_commands.h"
#include "submission/source/source_references.h"

namespace expanse::submission {
namespace {

using platform::BaseName;
using platform::JoinPath;
using platform::NormalizePath;

constexpr int kMostTurns = 30'000;  // beyond any script that a person wrote

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "python3.11" is an interpreter of Python, "bash" of shell, and so on.
SourceLanguage InterpreterOf(std::string_view program) {
  const std::string base = BaseName(program);
  std::string_view name = base;
  while (!name.empty() && ((name.back() >= '0' && name.back() <= '9') || name.back() == '.'))
    name.remove_suffix(1);
  if (IsOneOf(name, {"python", "pypy", "ipython", "torchrun", "deepspeed"}))
    return SourceLanguage::kPython;
  if (IsOneOf(name, {"sh", "bash", "zsh", "dash", "ksh"})) return SourceLanguage::kShell;
  if (IsOneOf(name, {"Rscript", "R"})) return SourceLanguage::kR;
  if (name == "julia") return SourceLanguage::kJulia;
  if (IsOneOf(name, {"octave", "octave-cli", "matlab"})) return SourceLanguage::kOctave;
  return SourceLanguage::kOther;
}

bool IsOtherInterpreter(std::string_view program) {
  return IsOneOf(BaseName(program),
                 {"perl", "ruby", "node", "lua", "php", "tclsh", "gnuplot", "guile", "nextflow"});
}

bool IsBuilder(std::string_view program) {
  return IsOneOf(
      BaseName(program),
      {"cc",     "gcc",    "g++",    "c++",     "clang",  "clang++", "gfortran", "nvcc",
       "hipcc",  "icc",    "icpc",   "ifort",   "icx",    "icpx",    "ifx",      "mpicc",
       "mpicxx", "mpic++", "mpif90", "mpifort", "mpif77", "rustc",   "javac",    "ar",
       "ld",     "make",   "gmake",  "cmake",   "ninja",  "cargo",   "go",       "meson"});
}

/// Directories of the system: programs there are not the submission's source.
bool IsSystemPath(std::string_view path) {
  constexpr std::string_view kPrefixes[] = {"/usr/",   "/bin/", "/sbin/", "/lib/",
                                            "/lib64/", "/etc/", "/proc/", "/sys/",
                                            "/dev/",   "/run/", "/boot/", "/var/"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [path](std::string_view prefix) {
    return path.substr(0, prefix.size()) == prefix;
  });
}

/// The value of such an option is written by the program.
bool IsOutputOption(std::string_view option) {
  while (!option.empty() && option.front() == '-') option.remove_prefix(1);
  const std::string name = ToLower(option);
  if (name == "o") return true;
  for (const std::string_view part : {"out", "save", "log", "dump", "result", "ckpt", "checkpoint",
                                      "write", "tmp", "cache", "report"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class Collector {
 public:
  Collector(std::string work_dir, const ShellScript& script)
      : work_dir_(std::move(work_dir)), script_(script) {}

  ShellReferences Collect() {
    directories_.push_back({work_dir_, true});
    for (const auto& command : script_.commands) {
      while (static_cast<int>(directories_.size()) > command.depth + 1 && directories_.size() > 1)
        directories_.pop_back();
      while (static_cast<int>(directories_.size()) < command.depth + 1 && directories_.size() < 64)
        directories_.push_back(directories_.back());
      ReadTurns(command);
    }
    const auto path = script_.variables.find("PYTHONPATH");
    if (path != script_.variables.end())
      for (const auto part : Split(path->second, ':'))
        if (!part.empty()) out_.python_path.push_back(Absolute(std::string(part), work_dir_));
    return std::move(out_);
  }

 private:
  struct Directory {
    std::string path;
    bool known;
  };

  static std::string Absolute(const std::string& path, const std::string& base) {
    return NormalizePath(path.front() == '/' ? path : JoinPath(base, path));
  }

  /// Empty when the word has no path that can be known.
  std::string Resolve(const std::string& word) const {
    if (word.empty()) return "";
    if (word.front() != '/' && !directories_.back().known) return "";
    return Absolute(word, directories_.back().path);
  }

  void Unresolved(const ShellWord& word) {
    out_.unresolved.insert(
        {ToUtf8(word.text.substr(0, 200)), "a path that only the running job knows"});
  }

  void Add(const std::string& word, ReferenceKind kind,
           SourceLanguage language = SourceLanguage::kOther) {
    const std::string path = Resolve(word);
    if (path.empty() || IsSystemPath(path)) return;
    out_.files.push_back({path, kind, language});
  }

  /// Once for each turn of the loop that a word depends on.
  void ReadTurns(const ShellCommand& command) {
    size_t turns = 1;
    for (const auto& word : command.words) turns = std::max(turns, word.alternatives.size());
    if (turns == 1) {
      ReadCommand(command);
      return;
    }
    ShellCommand turn = command;
    for (size_t i = 0; i < turns && ++turns_ < kMostTurns; ++i) {
      for (auto& word : turn.words)
        if (!word.alternatives.empty()) word.text = word.alternatives[i % word.alternatives.size()];
      ReadCommand(turn);
    }
  }

  void ReadCommand(const ShellCommand& command) {
    std::vector<const ShellWord*> arguments;
    for (const auto& word : command.words) {
      if (word.role == ShellWordRole::kArgument) {
        arguments.push_back(&word);
      } else if (word.literal && word.role == ShellWordRole::kOutput) {
        if (const auto path = Resolve(word.text); !path.empty()) out_.made.insert(path);
      } else if (word.literal && IsCodeName(word.text)) {
        Add(word.text, ReferenceKind::kMention);
      }
    }
    if (arguments.empty()) return;
    const std::string& program = arguments[0]->text;
    if (program == "cd" || program == "pushd") {
      ChangeDirectory(arguments);
    } else if (program == "source" || program == ".") {
      if (arguments.size() < 2) return;
      if (!arguments[1]->literal) {
        Unresolved(*arguments[1]);
      } else {
        Add(arguments[1]->text, ReferenceKind::kScript, SourceLanguage::kShell);
      }
    } else if (!IsOneOf(program, {"echo", "printf", "rm", "mkdir", "ls", "mv", "touch", "chmod",
                                  "module", "cat", "tail", "head", "grep", "export", "unset"})) {
      ReadProgram(arguments);
    }
  }

  void ChangeDirectory(const std::vector<const ShellWord*>& arguments) {
    auto& here = directories_.back();
    if (arguments.size() < 2 || !arguments[1]->literal || arguments[1]->text == "-") {
      here.known = false;
      if (arguments.size() >= 2) Unresolved(*arguments[1]);
      return;
    }
    const std::string to = Resolve(arguments[1]->text);
    here = {to, !to.empty()};
  }

  void ReadProgram(const std::vector<const ShellWord*>& arguments) {
    bool builder = false;
    SourceLanguage wanted = SourceLanguage::kOther;  // an interpreter waits for its script
    bool waiting = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ShellWord& word = *arguments[i];
      if (!word.literal) {
        if (waiting || IsCodeName(word.text)) Unresolved(word);
        waiting = false;
        continue;
      }
      const std::string& text = word.text;
      const ShellWord* next = i + 1 < arguments.size() ? arguments[i + 1] : nullptr;
      if (text.empty()) continue;
      if (text.front() == '-' && text.size() > 1) {
        if (waiting && text == "-m" && wanted == SourceLanguage::kPython && next != nullptr) {
          AddModule(next->text);
          waiting = false;
          ++i;
        } else if (waiting && IsOneOf(text, {"-c", "-e", "--eval"})) {
          waiting = false;
          ++i;
        } else if (ReadOption(text, next, builder)) {
          ++i;
        }
        continue;
      }
      const SourceLanguage language = InterpreterOf(text);
      if (language != SourceLanguage::kOther || IsOtherInterpreter(text)) {
        wanted = language;
        waiting = true;
      } else if (IsBuilder(text) && !waiting) {
        builder = true;
        out_.builds = true;
        if (IsOneOf(BaseName(text), {"make", "gmake"})) AddMakefile(arguments, i);
      } else if (waiting && (text.find('/') != std::string::npos || IsCodeName(text))) {
        Add(text, ReferenceKind::kScript, wanted);
        waiting = false;
      } else if (IsCodeName(text) || IsConfigurationName(text) || waiting) {
        Add(text, ReferenceKind::kMention);
      } else if (text.find('/') != std::string::npos) {
        Add(text, ReferenceKind::kProgram);
      }
    }
  }

  /// True when the next word belongs to the option.
  bool ReadOption(const std::string& text, const ShellWord* next, bool builder) {
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      const std::string value = text.substr(equals + 1);
      if (!IsOutputOption(text.substr(0, equals)) &&
          (IsCodeName(value) || IsConfigurationName(value))) {
        Add(value, ReferenceKind::kMention);
      }
      return false;
    }
    if (!IsOutputOption(text) || next == nullptr || !next->literal || next->text.empty() ||
        next->text.front() == '-') {
      return false;
    }
    if (builder || text == "-o") {
      if (const auto path = Resolve(next->text); !path.empty()) out_.made.insert(path);
    }
    return true;
  }

  void AddModule(const std::string& module) {
    std::string path;
    for (const char c : module) path += c == '.' ? '/' : c;
    Add(path + ".py", ReferenceKind::kModule, SourceLanguage::kPython);
    Add(path + "/__main__.py", ReferenceKind::kModule, SourceLanguage::kPython);
    Add(path + "/__init__.py", ReferenceKind::kModule, SourceLanguage::kPython);
  }

  void AddMakefile(const std::vector<const ShellWord*>& arguments, size_t from) {
    std::string directory;
    std::string file;
    for (size_t i = from + 1; i + 1 < arguments.size(); ++i) {
      if (!arguments[i + 1]->literal) continue;
      if (arguments[i]->text == "-C") directory = arguments[i + 1]->text + "/";
      if (arguments[i]->text == "-f") file = arguments[i + 1]->text;
    }
    if (!file.empty()) {
      Add(directory + file, ReferenceKind::kModule, SourceLanguage::kMake);
      return;
    }
    for (const auto* name : {"GNUmakefile", "makefile", "Makefile"})
      Add(directory + name, ReferenceKind::kModule, SourceLanguage::kMake);
  }

  std::string work_dir_;
  const ShellScript& script_;
  std::vector<Directory> directories_;  // by depth of subshells
  int turns_ = 0;                       // of loops, over all commands
  ShellReferences out_;
};

}  // namespace

ShellReferences ReferencesOfShell(std::string_view script, const std::string& work_dir,
                                  const std::map<std::string, std::string>& variables) {
  const ShellScript parsed = ReadShellCommands(script, variables);
  return Collector(work_dir, parsed).Collect();
}

}  // namespace expanse::submission
