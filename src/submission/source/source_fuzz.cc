// SPDX-License-Identifier: Apache-2.0
// Any bytes as a source file of every language we look for references in.
#include <cstdint>
#include <string>

#include "submission/source/source_references.h"

namespace sub = expanse::submission;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (256 << 10)) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  sub::ReferencesOfShell(text, "/w", {{"HOME", "/h"}, {"1", "x.py"}});
  for (const auto language :
       {sub::SourceLanguage::kPython, sub::SourceLanguage::kC, sub::SourceLanguage::kFortran,
        sub::SourceLanguage::kR, sub::SourceLanguage::kJulia, sub::SourceLanguage::kOctave,
        sub::SourceLanguage::kMake})
    sub::ReferencesOfSource(language, text, "/w/dir/x", {"/w"}, "/w");
  sub::LanguageOf("x", text);
  return 0;
}
