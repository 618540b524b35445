// SPDX-License-Identifier: Apache-2.0
// What ended processes used, by step, from the kernel's exit records (Documentation/accounting/
// taskstats.rst). A record comes for each thread and has its own use, not its children's: their sum
// is exact, and it holds processes that lived between two samples.
//
// A record does not say which cgroup it came from, and the process is gone. Its step is that of its
// process or of its parent, as seen before or as /proc says now; a record whose parent ends later
// is kept until that one's comes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace expanse::collect::host {

/// What Expanse uses of struct taskstats.
struct ExitRecord {
  int32_t pid = 0;      // of the thread
  int32_t process = 0;  // of its process
  int32_t parent = 0;   // process that is told of the end
  uint32_t uid = 0;
  std::string name;
  int64_t cpu_user_us = 0;
  int64_t cpu_system_us = 0;
  int64_t read_bytes = 0;
  int64_t write_bytes = 0;
  int64_t peak_resident_bytes = 0;  // of the process
};

/// Sum over the ended threads of one step.
struct ExitTotals {
  int64_t processes = 0;
  int64_t threads = 0;
  int64_t cpu_user_us = 0;
  int64_t cpu_system_us = 0;
  int64_t read_bytes = 0;
  int64_t write_bytes = 0;
  int64_t peak_resident_bytes = 0;  // largest of one process
};

class ExitLedger {
 public:
  /// The step's unit path of a living process, empty when it belongs to none; nothing when it is
  /// gone or ending (then the kernel does not say any more).
  using Locate = std::function<std::optional<std::string>(int32_t pid)>;
  explicit ExitLedger(Locate locate) : locate_(std::move(locate)) {}

  /// Told by the sampler, which lists processes of steps from time to time.
  void Learn(int32_t pid, const std::string& step);
  void Add(const ExitRecord& record);
  /// Once a second: forgets old processes and records that no parent explained.
  void Age();

  ExitTotals TotalsOf(const std::string& step) const;
  /// Forgets a step that ended, and for some seconds what may still come of it: the same path may
  /// be the next attempt of a requeued job.
  void Forget(const std::string& step);
  uint64_t records() const { return records_; }
  /// Ended threads of a user of which nothing tells whether they belonged to a step.
  /// uid absent: of all users.
  uint64_t UnexplainedOf(std::optional<uint32_t> uid) const;
  using Unexplained = std::map<uint32_t, uint64_t>;  // by user
  static uint64_t CountOf(const Unexplained& counts, std::optional<uint32_t> uid);
  const Unexplained& unexplained() const { return unexplained_; }

 private:
  struct KnownProcess {
    std::string step;  // empty: it belongs to none
    int age = 0;       // seconds since it was seen last
  };
  static KnownProcess Ended(const std::string& step);
  struct Waiting {
    ExitRecord record;
    int64_t since = 0;  // of seconds_
  };
  const KnownProcess* Find(int32_t pid, bool may_locate);
  void Count(const ExitRecord& record, const std::string& step);
  void Explain(int32_t parent, const std::string& step);

  Locate locate_;
  std::unordered_map<int32_t, KnownProcess> known_;
  std::unordered_map<int32_t, std::vector<Waiting>> waiting_;  // by parent
  std::map<std::string, ExitTotals> totals_;
  uint64_t records_ = 0;
  int64_t seconds_ = 0;
  Unexplained unexplained_;
  std::map<std::string, int64_t> forgotten_;  // when, of seconds_
};

}  // namespace expanse::collect::host
