// SPDX-License-Identifier: Apache-2.0
// Changes to a machine that can be taken back in reverse order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "platform/fs/fs.h"

namespace expanse::install {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

class Transaction {
 public:
  using Log = std::function<void(const std::string&)>;
  /// log gets one line a change and a rollback step.
  Transaction(const platform::Fs& fs, Log log) : fs_(fs), log_(std::move(log)) {}
  /// Rolls back what was not committed.
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Makes missing directories and gives the new ones their owner; taken back when still empty.
  Status MakeDirs(const std::string& path, mode_t mode, Owner owner);
  /// Makes or replaces a file; taken back to its old bytes, mode and owner.
  Status WriteFile(const std::string& path, std::string_view bytes, mode_t mode, Owner owner);
  /// A change made elsewhere, with the way back.
  void Did(std::string what, std::function<Status()> undo);
  /// Files and directories that are new from here on are in somebody's use, until a Guard says
  /// otherwise.
  void BeginHeld() { held_ = true; }
  void EndHeld() { held_ = false; }
  /// As Did; when its way back fails, the rollback leaves the held files and directories in place.
  void Guard(std::string what, std::function<Status()> undo);

  void Commit() { undo_.clear(); }
  /// Takes everything back; goes on after errors and returns them all as one, with the files that
  /// had to stay.
  Status Rollback();

 private:
  struct Step {
    std::string what;
    std::function<Status()> undo;
    bool is_guard = false;
    bool is_held = false;
  };
  void Add(Step step);
  /// A step that makes something that was not there.
  void Made(std::string what, std::function<Status()> undo);

  const platform::Fs& fs_;
  Log log_;
  bool held_ = false;
  std::vector<Step> undo_;
};

}  // namespace expanse::install
