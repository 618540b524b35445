// SPDX-License-Identifier: Apache-2.0
// Apart from byte_edit.cc: a program that only applies edits (the command line) does not load
// libgit2 and the five libraries that it brings.
#include <fmt/format.h>
#include <git2.h>

#include "submission/patch/byte_edit.h"

namespace expanse::submission {
namespace {

Error GitError(std::string_view what) {
  const git_error* last = git_error_last();
  return Error(Code::kInternal,
               fmt::format("{}: {}", what, last != nullptr ? last->message : "unknown error"));
}

/// libgit2's library state, for as long as one diff needs it.
class GitLibrary {
 public:
  GitLibrary() { git_libgit2_init(); }
  ~GitLibrary() { git_libgit2_shutdown(); }
  GitLibrary(const GitLibrary&) = delete;
  GitLibrary& operator=(const GitLibrary&) = delete;
};

/// As git itself does: a tab ends a name with a space in it, so that patch(1) takes all of it.
void EndNamesWithTab(std::string* diff, const std::string& name) {
  if (name.find(' ') == std::string::npos) return;
  for (const std::string prefix : {"\n--- a/", "\n+++ b/"}) {
    const size_t at = diff->find(prefix + name + "\n");
    if (at != std::string::npos) diff->insert(at + prefix.size() + name.size(), "\t");
  }
}

}  // namespace

Result<std::string> UnifiedDiff(std::string_view path, std::string_view before,
                                std::string_view after) {
  if (before == after) return std::string();
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  const std::string name(path);
  const GitLibrary library;
  git_diff_options options;
  if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0) {
    return GitError("preparing a diff");
  }
  options.flags |= GIT_DIFF_FORCE_TEXT;
  git_patch* patch = nullptr;
  if (git_patch_from_buffers(&patch, before.data(), before.size(), name.c_str(), after.data(),
                             after.size(), name.c_str(), &options) != 0) {
    return GitError("making a diff");
  }
  git_buf buffer = GIT_BUF_INIT;
  const int status = git_patch_to_buf(&buffer, patch);
  std::string text(buffer.ptr != nullptr ? buffer.ptr : "", buffer.size);
  git_buf_dispose(&buffer);
  git_patch_free(patch);
  if (status != 0) return GitError("printing a diff");
  EndNamesWithTab(&text, name);
  return text;
}

}  // namespace expanse::submission
