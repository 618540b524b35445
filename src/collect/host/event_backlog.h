// SPDX-License-Identifier: Apache-2.0
// Which files of a folder that anybody may write into are read now. Nothing that their owners may
// set (names, times) lets one of them hold up the others.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/time.h"

namespace expanse::collect::host {

/// Files of one user that may wait for their job, and unfinished ones, at a time.
inline constexpr size_t kMostWaitingOfUser = 256;

class EventBacklog {
 public:
  /// The names that are there now; the age of a file counts from its first round.
  void Begin(const std::vector<std::string>& names, MonoTime now);
  Millis AgeOf(const std::string& name) const;
  /// The job that the file waits for.
  std::optional<int64_t> WaitsFor(const std::string& name) const;
  /// Lets it wait; false: too many files of this user wait already.
  bool Wait(const std::string& name, uid_t owner, int64_t job_id);

  using OwnerOf = std::function<std::optional<uid_t>(const std::string& name)>;
  /// At most `budget` names: those of the first owners whole, as far as it goes, then of every
  /// other owner the same number. Owners are asked for only when not all fit.
  static std::vector<std::string> Choose(std::vector<std::string> names, size_t budget,
                                         const std::vector<uid_t>& first, const OwnerOf& owner_of);

 private:
  struct Sighting {
    MonoTime first{};
    std::optional<int64_t> job_id;
    uid_t owner = 0;
  };
  MonoTime now_{};
  std::map<std::string, Sighting> seen_;
  std::map<uid_t, size_t> waiting_;
};

}  // namespace expanse::collect::host
