// SPDX-License-Identifier: Apache-2.0
// Turns the hooks' event files into records, in the order of their time, and removes them once the
// records are in the spool. Used by the sampler for a node and by the controller daemon for "ctld".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "collect/core/spool.h"
#include "collect/hook/event.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

/// What is known of a job on this node, from files that only root or the service may write, or
/// from the cgroup tree.
struct KnownJob {
  uid_t uid = 0;
  std::optional<int32_t> restart_count;
  std::optional<int64_t> start_time_ms;
  std::string sluid;
  int64_t last_seen_ms = 0;
};

struct EventCollectorOptions {
  std::string node;              // empty for the controller
  std::string events_directory;  // made with mode 1733 when missing
  std::string state_file;        // known jobs over a restart; empty: kept in memory only
  uid_t service_uid = 0;
  int64_t max_bytes = 64 << 20;
  size_t max_events_a_round = 4096;
};

class EventCollector {
 public:
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
  /// Called with each accepted event, e.g. to give the sampler's floor to a step's facts.
  void OnEvent(std::function<void(const hook::HookEvent&, data::v1::Record&)> fn);

  uint64_t accepted() const { return accepted_; }
  uint64_t rejected() const { return rejected_; }
  bool over_cap() const { return over_cap_; }
  const std::string& last_rejection() const { return last_rejection_; }

 private:
  struct Listed;
  Result<std::vector<Listed>> ListFiles();
  Result<hook::HookEvent> ReadEvent(const Listed& file) const;
  Status CheckOwner(const hook::HookEvent& event, uid_t owner) const;
  void Note(const hook::HookEvent& event);
  void ForgetOldJobs();
  void LoadState();
  void SaveState();

  EventCollectorOptions options_;
  const platform::Clock& clock_;
  const platform::Fs& fs_;
  std::map<std::string, KnownJob> jobs_;
  std::function<void(const hook::HookEvent&, data::v1::Record&)> on_event_;
  bool jobs_changed_ = false;
  bool over_cap_ = false;
  uint64_t accepted_ = 0;
  uint64_t rejected_ = 0;
  std::string last_rejection_;
};

/// The facts of one event, without the run's start and the user that only a KnownJob adds.
data::v1::Record FactsOfEvent(const hook::HookEvent& event, const std::string& node);

}  // namespace expanse::collect::host
