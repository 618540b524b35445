// SPDX-License-Identifier: Apache-2.0
// Turns the hooks' event files into records, in the order of their time, and removes them once the
// records are in the spool. Used by the sampler for a node and by the controller daemon for "ctld".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collect/core/spool.h"
#include "collect/hook/event.h"
#include "collect/host/event_backlog.h"
#include "collect/host/event_facts.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// What is known of a job on this node, from files that only root or the service may write, or
/// from the cgroup tree.
struct KnownJob {
  uid_t uid = 0;
  std::optional<int32_t> restart_count;
  std::optional<int64_t> start_time_ms;  // SLURM's, where its version tells it to hooks
  std::string sluid;
  int64_t last_seen_ms = 0;
  bool ended = false;
  bool killed = false;  // a process of it was killed for memory on this node
  std::map<std::string, std::set<int64_t>> ended_tasks;  // by step, as their epilogs tell
};

struct EventCollectorOptions {
  std::string node;              // empty for the controller
  std::string events_directory;  // made with mode 1733 when missing
  std::string state_file;        // known jobs over a restart; empty: kept in memory only
  uid_t service_uid = 0;
  int64_t max_bytes = 64 << 20;  // of event files; more: a file `full` beside events/ stops hooks
  size_t max_events_a_round = 4096;
};

class EventCollector {
 public:
  /// What the sampler saw of a step's memory; step "" is the whole job.
  using SeenOf = std::function<MemorySeen(const std::string& job_id, const std::string& step_id)>;

  EventCollector(EventCollectorOptions options, const platform::Clock& clock,
                 const platform::Fs& fs);

  /// One round: reads, appends to the spool, flushes, removes the files. When the spool refuses,
  /// the files stay for the next round.
  Status Collect(SpoolWriter& spool);
  /// Told by the cgroup reader (v1 has the user in the path).
  void Learn(const std::string& job_id, uid_t uid);
  const KnownJob* Find(const std::string& job_id) const;
  /// The job a SLUID belongs to, from a prolog; empty when unknown.
  std::string JobOfSluid(const std::string& sluid) const;
  void SetSeenOf(SeenOf seen_of) { seen_of_ = std::move(seen_of); }

  uint64_t accepted() const { return accepted_; }
  uint64_t rejected() const { return rejected_; }
  bool over_cap() const { return over_cap_; }
  const std::string& last_rejection() const { return last_rejection_; }
  /// Who floods the events directory, for a minute after it was seen; else empty.
  std::string flood() const;

 private:
  struct Incoming {
    std::string name;
    uid_t owner = 0;
    hook::HookEvent event;
  };
  enum class Verdict { kAccept, kReject, kWait };

  Status EnsureDirectory();
  std::vector<Incoming> ReadFiles(const std::vector<std::string>& names);
  Result<Incoming> ReadFile(const std::string& name) const;
  Verdict Judge(const Incoming& incoming, std::string* why) const;
  void Note(const hook::HookEvent& event);
  std::vector<Incoming> Accept(std::vector<Incoming> incoming, std::vector<std::string>* done);
  data::v1::Record ToRecord(const hook::HookEvent& event) const;
  void Reject(const std::string& name, const std::string& why);
  void RemoveAbandoned(const std::vector<std::string>& names);
  std::optional<uid_t> OwnerOf(const std::string& name) const;
  void NoteFlood(uid_t owner);
  bool HasEnded(const hook::HookEvent& event) const;
  void ApplyCap(size_t files);
  void ForgetOldJobs();
  void LoadState();
  void SaveState();

  EventCollectorOptions options_;
  const platform::Clock& clock_;
  const platform::Fs& fs_;
  std::map<std::string, KnownJob> jobs_;
  SeenOf seen_of_;
  EventBacklog backlog_;
  std::optional<MonoTime> flooded_;
  uid_t flooding_user_ = 0;
  std::optional<MonoTime> rejection_logged_;
  bool jobs_changed_ = false;
  bool over_cap_ = false;
  uint64_t accepted_ = 0;
  uint64_t rejected_ = 0;
  std::string last_rejection_;
};

}  // namespace expanse::collect::host
