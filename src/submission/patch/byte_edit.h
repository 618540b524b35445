// SPDX-License-Identifier: Apache-2.0
// Edits of a file by byte span, and the unified diff that says the same to a person.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/fs/fs.h"

namespace expanse::submission {

/// Replaces bytes [offset, offset + length) of the old text; length 0 inserts.
struct ByteEdit {
  size_t offset = 0;
  size_t length = 0;
  std::string replacement;
};

/// The new text. Edits are sorted by offset and do not overlap; else, or beyond the end,
/// kInvalidArgument.
Result<std::string> ApplyEdits(std::string_view text, const std::vector<ByteEdit>& edits);

/// A diff with a/ and b/ prefixes that `git apply` and `patch -p1` take; empty when nothing
/// changes. A leading '/' of the path is dropped.
Result<std::string> UnifiedDiff(std::string_view path, std::string_view before,
                                std::string_view after);

struct AppliedEdits {
  std::string path;              // the file that was written
  bool through_symlink = false;  // the path given was a symbolic link to it
};
/// Edits a file in place: refused (kFailedPrecondition) when its SHA-256 is not `before_sha256` any
/// more; written atomically, mode and owner kept; a symbolic link stays one and its target is
/// edited. after_sha256 is checked before anything is written.
Result<AppliedEdits> ApplyEditsToFile(const platform::Fs& fs, const std::string& path,
                                      const std::string& before_sha256,
                                      const std::vector<ByteEdit>& edits,
                                      const std::string& after_sha256);

}  // namespace expanse::submission
