// SPDX-License-Identifier: Apache-2.0
// What the collector remembers of each attempt of each job, over restarts of the daemon: which
// attempt a row speaks of, what was sent already, and what is still owed.
//
// SLURM keeps a job's id over a requeue, sets its submit time anew, and counts restarts; sacct of
// 22.05 has one row an attempt and no count. Ids are also used again (a wiped state directory, the
// wrap at MaxJobId). A row belongs to an attempt by its SLUID (24.11 and newer), or by (id, submit
// time), where the submit time of a later part of a resized run is that of the resize; an attempt
// continues an earlier one when SLURM says so (Restarts) or when the earlier one ended as one that
// is requeued.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/job_record.h"
#include "platform/fs/fs.h"

namespace expanse::collect::slurm {

struct RunState {
  RunIdentity id;
  int64_t attempt_submit = 0;  // epoch seconds, as SLURM reports it for this attempt
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  std::optional<int64_t> db_index;
  std::vector<std::string> sluids;    // every one that was seen; the first part's first
  std::vector<int64_t> resize_times;  // epoch seconds; accounting's submit times of later parts
  std::optional<Tres> request;        // as it was before any resize; frozen once it runs
  std::optional<int64_t> uid;
  std::string state;
  bool ended = false;    // SLURM said so
  bool settled = false;  // accounting's last word was sent, or it will not come
  bool bundle_sent = false;
  bool logs_sent = false;
  std::string requeue_cause;  // "launch" when the next attempt says that the launch failed
  std::map<std::string, std::string> sent;  // tool to fingerprint of the facts sent last
  int64_t first_seen_ms = 0;
  bool seen_live = false;   // squeue or scontrol has shown it
  uint64_t seen_round = 0;  // last round that squeue showed it; of this process, not kept
  uint64_t told_round = 0;  // last round that any tool told of it
  int64_t ended_seen_ms = 0;
  int64_t ask_sacct_ms = 0;  // not before this
  int32_t asked_sacct = 0;

  // For the bundle and the logs; dropped when both were sent.
  std::optional<ExitStatus> exit;  // from squeue or scontrol
  std::string memory_form;
  std::string user;
  std::string name;
  std::string command;
  std::string work_dir;
  std::string stdout_path;  // expanded, from scontrol
  std::string stderr_path;
  std::string submit_line;
  std::string node_list;
  std::optional<bool> batch;
  std::optional<int64_t> array_job_id;
  std::optional<int64_t> array_task_id;
  bool many_tasks = false;  // a pending array record

  bool IsResized() const { return !resize_times.empty(); }
  bool Knows(std::string_view sluid) const;
};

class RunTable {
 public:
  /// The attempt a row speaks of; made when new. *created tells.
  RunState& Resolve(const JobRecord& job, int64_t now_ms, bool* created);
  RunState* Find(const RunIdentity& id);
  RunState* FindAttempt(int64_t job_id, int64_t attempt_submit);
  /// By SLUID, or by a resize at the row's submit time: the run whose later part the row is.
  RunState* FindByPart(const JobRecord& job);
  /// Attempts of one id, oldest first.
  std::vector<RunState*> OfJob(int64_t job_id);
  /// True when the row's attempt is known, or it is a first one: no earlier attempt has to be
  /// looked for in accounting.
  bool KnowsChain(const JobRecord& job);
  std::map<RunIdentity, RunState>& runs() { return runs_; }
  const std::map<RunIdentity, RunState>& runs() const { return runs_; }
  /// Drops settled attempts that ended before this time and that no tool told of in this round.
  void Forget(int64_t ended_before_ms, uint64_t round);

  int64_t sacct_cursor = 0;  // epoch seconds up to which windows were read; 0: never

  /// JSON. A file that cannot be read is an error: starting anew is the caller's decision.
  Status Load(const platform::Fs& fs, const std::string& path);
  /// The content of such a file. kDataLoss or kInvalidArgument: damaged, nothing of it is used.
  Status Parse(std::string_view text);
  Status Save(const platform::Fs& fs, const std::string& path) const;

 private:
  RunIdentity IdentifyLive(const JobRecord& job);
  RunIdentity IdentifyRow(const JobRecord& job);
  std::map<RunIdentity, RunState> runs_;
};

/// Keys of attempts for other threads (the aggregator completes the hooks' partial keys).
class KeyIndex {
 public:
  struct Attempt {
    RunIdentity id;
    std::optional<int64_t> start;
    std::optional<int64_t> end;  // epoch seconds, or when the end was seen; absent: it lives
    std::optional<int64_t> db_index;
    std::vector<std::string> sluids;
  };
  void Replace(const RunTable& table);
  /// Fills what a partial key lacks. A key may have a SLUID alone, as cgroups of 26.05 are named.
  /// origin: of the facts that the key stands in; unspecified for samples. False: no attempt of
  /// this id is known to have lived then (its next attempt may not be known yet), it cannot be told
  /// which of two it was, or nobody knows the SLUID.
  bool Complete(common::v1::RunKey* key, int64_t observed_ms, data::v1::FactOrigin origin) const;
  /// Job ids in the index.
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  static const Attempt* Find(const std::vector<Attempt>& attempts, const common::v1::RunKey& key,
                             int64_t observed_ms, data::v1::FactOrigin origin);
  static const Attempt* FindEnded(const std::vector<const Attempt*>& attempts, int64_t when);
  struct Index {
    std::map<int64_t, std::vector<Attempt>> by_job;
    std::map<std::string, std::pair<int64_t, size_t>, std::less<>> by_sluid;  // into by_job
  };
  std::shared_ptr<const Index> index_;
};

}  // namespace expanse::collect::slurm
