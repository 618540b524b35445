// SPDX-License-Identifier: Apache-2.0
#include "submission/patch/byte_edit.h"

#include <fmt/format.h>

#include "platform/crypto/crypto.h"

namespace expanse::submission {
namespace {

constexpr size_t kMostFileBytes = 16 << 20;

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
