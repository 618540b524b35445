// SPDX-License-Identifier: Apache-2.0
#include "submission/patch/byte_edit.h"

#include <fmt/format.h>
#include <git2.h>

#include "platform/crypto/crypto.h"

namespace expanse::submission {
namespace {

constexpr size_t kMostFileBytes = 16 << 20;

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

Result<std::string> ApplyEdits(std::string_view text, const std::vector<ByteEdit>& edits) {
  std::string out;
  size_t copied = 0;
  for (const auto& edit : edits) {
    if (edit.offset < copied || edit.offset > text.size() ||
        edit.length > text.size() - edit.offset) {
      return Error(Code::kInvalidArgument,
                   fmt::format("applying a patch: the edit at byte {} (length {}) does not fit a "
                               "text of {} bytes",
                               edit.offset, edit.length, text.size()));
    }
    out += text.substr(copied, edit.offset - copied);
    out += edit.replacement;
    copied = edit.offset + edit.length;
  }
  out += text.substr(copied);
  return out;
}

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

Result<AppliedEdits> ApplyEditsToFile(const platform::Fs& fs, const std::string& path,
                                      const std::string& before_sha256,
                                      const std::vector<ByteEdit>& edits,
                                      const std::string& after_sha256) {
  EXPANSE_TRY(const auto link, fs.LStat(path));
  AppliedEdits applied;
  applied.through_symlink = link.is_symlink;
  EXPANSE_TRY(applied.path, fs.RealPath(path));
  EXPANSE_TRY(const auto before, fs.Read(applied.path, kMostFileBytes));
  if (platform::Sha256Hex(before) != before_sha256) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("applying a patch to {}: the file has changed since it was analysed; "
                             "run analyse again",
                             path));
  }
  EXPANSE_TRY(const auto after, ApplyEdits(before, edits));
  if (platform::Sha256Hex(after) != after_sha256) {
    return Error(Code::kDataLoss,
                 fmt::format("applying a patch to {}: the result would not be the one that was "
                             "analysed; nothing was written",
                             path));
  }
  EXPANSE_TRY(const auto info, fs.Stat(applied.path));
  EXPANSE_CHECK_OK(fs.WriteAtomic(applied.path, after, info.mode & 07777, true));
  return applied;
}

}  // namespace expanse::submission
