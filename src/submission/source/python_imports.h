// SPDX-License-Identifier: Apache-2.0
// Imports of a Python file, by a lexer that knows strings, comments and line joining.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submission/source/source_references.h"

namespace expanse::submission {

struct PythonImport {
  int level = 0;                    // leading dots of "from ..x import y"
  std::vector<std::string> module;  // {"a", "b"} of "a.b"
  std::vector<std::string> names;   // after "import" of a from statement: may be submodules
};

struct PythonFacts {
  std::vector<PythonImport> imports;
  std::vector<std::string> source_strings;  // literals that name a source or configuration file
};
PythonFacts ReadPython(std::string_view content);

/// The files an import may mean: a.py, a/__init__.py, and for packages each level of the path.
std::vector<SourceReference> ReferencesOfPython(std::string_view content, const std::string& path,
                                                const std::vector<std::string>& roots,
                                                const std::string& work_dir);

}  // namespace expanse::submission
