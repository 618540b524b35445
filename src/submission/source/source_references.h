// SPDX-License-Identifier: Apache-2.0
// Which files a source file names: the commands of a shell script, imports of Python, includes of
// C and Fortran, source() of R, include() of Julia, functions beside an Octave script, sources of
// a makefile. Static reading, nothing is executed; names that only a run knows are reported.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::submission {

enum class SourceLanguage { kOther, kShell, kPython, kC, kFortran, kR, kJulia, kOctave, kMake };
/// By name, else by the "#!" line.
SourceLanguage LanguageOf(std::string_view path, std::string_view content);

/// Extensions of program text and of configuration that a program is given by name.
bool IsCodeName(std::string_view path);
bool IsConfigurationName(std::string_view path);

enum class ReferenceKind {
  kScript,   // given to an interpreter: missing is worth a note
  kProgram,  // run by path
  kMention,  // a word that looks like a source or configuration file
  kModule,   // a candidate of an import; most candidates do not exist
};

struct SourceReference {
  std::string path;  // absolute, normalised
  ReferenceKind kind = ReferenceKind::kMention;
  SourceLanguage language = SourceLanguage::kOther;  // when the reference says so
};

struct ShellReferences {
  std::vector<SourceReference> files;
  std::set<std::string> made;            // absolute paths the script itself writes: never sources
  bool builds = false;                   // a compiler or make runs: local binaries are products
  std::vector<std::string> python_path;  // absolute, from PYTHONPATH
  std::map<std::string, std::string> unresolved;  // word to reason
};
/// work_dir: where the script starts; `cd` with a literal directory is followed.
ShellReferences ReferencesOfShell(std::string_view script, const std::string& work_dir,
                                  const std::map<std::string, std::string>& variables);

/// Candidates in the order in which the language looks; `roots` are the directories of absolute
/// imports (Python's sys.path as far as known).
std::vector<SourceReference> ReferencesOfSource(SourceLanguage language, std::string_view content,
                                                const std::string& path,
                                                const std::vector<std::string>& roots,
                                                const std::string& work_dir);

}  // namespace expanse::submission
