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
    Made("make directory " + directory, [this, directory]() -> Status {
      const auto names = fs_.List(directory);
      // Somebody else's files are in it: it stays.
      if (!names.ok() || !names->empty()) return {};
      return fs_.RemoveTree(directory);
    });
    EXPANSE_CHECK_OK(fs_.MakeDirs(directory, mode));
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
  // The way back first: a write that fails may have replaced the file already, when only the sync
  // of its directory failed.
  if (before.ok()) {
    const platform::FileInfo info = *before;
    Did("replace " + path, [this, path, old = std::move(old), info]() -> Status {
      const auto now = fs_.LStat(path);
      const bool is_old = now.ok() && now->is_regular && now->inode == info.inode &&
                          fs_.Read(path, kMaxFile).value_or("") == old;
      if (!is_old) EXPANSE_CHECK_OK(fs_.WriteAtomic(path, old, info.mode & 07777));
      return fs_.Chown(path, info.uid, info.gid);
    });
  } else {
    Made("write " + path, [this, path] { return fs_.Remove(path); });
  }
  EXPANSE_CHECK_OK(fs_.WriteAtomic(path, bytes, mode));
  return fs_.Chown(path, owner.uid, owner.gid);
}

void Transaction::Did(std::string what, std::function<Status()> undo) {
  Add({std::move(what), std::move(undo)});
}

void Transaction::Guard(std::string what, std::function<Status()> undo) {
  Add({.what = std::move(what), .undo = std::move(undo), .is_guard = true});
}

void Transaction::Made(std::string what, std::function<Status()> undo) {
  Add({.what = std::move(what), .undo = std::move(undo), .is_held = held_});
}

void Transaction::Add(Step step) {
  log_(step.what);
  undo_.push_back(std::move(step));
}

Status Transaction::Rollback() {
  std::string problems;
  bool keeps_held = false;
  std::string kept;
  while (!undo_.empty()) {
    Step step = std::move(undo_.back());
    undo_.pop_back();
    if (keeps_held && step.is_held) {
      log_("left: " + step.what);
      kept += (kept.empty() ? "" : ", ") + step.what;
      continue;
    }
    log_("take back: " + step.what);
    const Status undone = step.undo();
    if (undone.ok()) continue;
    problems += (problems.empty() ? "" : "; ") + step.what + ": " + undone.error().message();
    keeps_held = keeps_held || step.is_guard;
  }
  if (problems.empty()) return {};
  if (!kept.empty()) problems += "; left in place: " + kept;
  return Error(Code::kInternal, "could not be taken back: " + problems);
}

}  // namespace expanse::install
