// SPDX-License-Identifier: Apache-2.0
#include "install/transaction.h"

#include <utility>

namespace expanse::install {

Transaction::~Transaction() { (void)Rollback(); }

Status Transaction::MakeDirs(const std::string& path, mode_t mode, Owner owner) {
  std::vector<std::string> missing;
  for (std::string p = path; p.size() > 1 && !fs_.Exists(p); p = platform::DirName(p))
    missing.push_back(p);
  for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
    const std::string& directory = *it;
    EXPANSE_CHECK_OK(fs_.MakeDirs(directory, mode));
    Did("make directory " + directory, [this, directory]() -> Status {
      const auto names = fs_.List(directory);
      // Somebody else's files are in it: it stays.
      if (!names.ok() || !names->empty()) return {};
      return fs_.RemoveTree(directory);
    });
    EXPANSE_CHECK_OK(fs_.Chmod(directory, mode));
    EXPANSE_CHECK_OK(fs_.Chown(directory, owner.uid, owner.gid));
  }
  return {};
}

Status Transaction::WriteFile(const std::string& path, std::string_view bytes, mode_t mode,
                              Owner owner) {
  constexpr size_t kMaxFile = size_t{1} << 30;
  const auto before = fs_.LStat(path);
  std::string old;
  if (before.ok()) {
    if (!before->is_regular)
      return Error(Code::kFailedPrecondition, path + " exists and is no plain file");
    EXPANSE_TRY(old, fs_.Read(path, kMaxFile));
  }
  EXPANSE_CHECK_OK(fs_.WriteAtomic(path, bytes, mode));
  if (before.ok()) {
    const platform::FileInfo info = *before;
    Did("replace " + path, [this, path, old = std::move(old), info]() -> Status {
      EXPANSE_CHECK_OK(fs_.WriteAtomic(path, old, info.mode & 07777));
      return fs_.Chown(path, info.uid, info.gid);
    });
  } else {
    Did("write " + path, [this, path] { return fs_.Remove(path); });
  }
  return fs_.Chown(path, owner.uid, owner.gid);
}

void Transaction::Did(std::string what, std::function<Status()> undo) {
  log_(what);
  undo_.push_back({std::move(what), std::move(undo)});
}

Status Transaction::Rollback() {
  std::string problems;
  while (!undo_.empty()) {
    Step step = std::move(undo_.back());
    undo_.pop_back();
    log_("take back: " + step.what);
    if (const Status undone = step.undo(); !undone.ok())
      problems += (problems.empty() ? "" : "; ") + step.what + ": " + undone.error().message();
  }
  if (problems.empty()) return {};
  return Error(Code::kInternal, "could not be taken back: " + problems);
}

}  // namespace expanse::install
