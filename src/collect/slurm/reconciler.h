// SPDX-License-Identifier: Apache-2.0
// Polls squeue, scontrol and sacct, and sends what changed. Complete by itself: no hook has to run,
// and after hours of absence accounting fills what slurmctld forgot.
//
// One round makes one squeue call; one scontrol call when a job is new or changed; one sacct window
// when something may be new in accounting, and one sacct call by id for what a window cannot show.
// A run ends only by an ended state of some tool, never by its absence from squeue's answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/slurm/evidence.h"
#include "collect/slurm/run_table.h"
#include "collect/slurm/slurm_tools.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

namespace expanse::collect::slurm {

struct ReconcilerOptions {
  std::string state_file;                // the run table
  int64_t backfill_seconds = 86'400;     // first start: how far back accounting is read
  int64_t window_overlap_seconds = 600;  // accounting writes late
  int64_t sweep_overlap_seconds = 6 * 3600;
  int64_t sweep_every_seconds = 3600;
  int64_t idle_window_seconds = 60;  // a window at least this often
  int64_t window_chunk_seconds = 6 * 3600;
  int64_t compute_facts_seconds = 300;
  int64_t keep_seconds = 8 * 3600;   // settled runs; more than sweep_overlap_seconds
  int64_t give_up_seconds = 86'400;  // an ended run that accounting never shows
  int64_t submit_line_wait_seconds = 60;
  Millis window_budget{10'000};   // per round, for reading a long absence
  Millis evidence_budget{3'000};  // per round, for scripts and logs
};

struct RoundReport {
  int new_runs = 0;
  int facts = 0;
  int bundles = 0;
  int log_tails = 0;
  int live = 0;            // runs that have not ended
  int unsettled = 0;       // ended, accounting still owed
  bool work_left = false;  // another round should come soon
  Millis polling{0};       // time that went to SLURM's tools, scripts apart
};

class Reconciler {
 public:
  /// Takes records in order; an error means that the record was not taken.
  using Sink = std::function<Status(const data::v1::Record&)>;
  /// Makes durable what the sink took; called before the state file says that it was told.
  using Sync = std::function<Status()>;

  Reconciler(ReconcilerOptions options, SlurmTools& tools, const platform::Clock& clock,
             const platform::Fs& fs, KeyIndex& index, Sink sink, Sync sync = nullptr);

  /// Reads the state file. An unreadable one is put aside, logged, and everything starts anew (the
  /// data plane takes repeated facts).
  Status Start();
  /// One round. Fails only when the sink or the state file does.
  Result<RoundReport> Round();
  /// Nodes and GPUs of the cluster when last asked; nothing before the first answer.
  struct ClusterSize {
    int32_t nodes = 0;
    std::optional<int32_t> gpus;  // absent when a node does not tell
  };
  std::optional<ClusterSize> cluster_size() const;
  /// Since when and why the picture is incomplete, for the health table; beside the tools' own.
  std::vector<data::v1::CollectorHealth> health() const;

 private:
  struct Answers;
  void Ask(int64_t now, Answers* answers);
  SacctQuery NextWindow(int64_t now, bool* due);
  Status Save();
  void AskWindows(int64_t now, Answers* answers);
  void AskByIds(int64_t now, Answers* answers);
  RunState* Learn(const JobRecord& job, RoundReport* report);
  Status Tell(const JobRecord& job, RunState* run, RoundReport* report);
  void Note(const JobRecord& job, RunState* run);
  Status EndEarlierAttempts(const JobRecord& job, const RunState& run, RoundReport* report);
  Status SendFacts(const JobRecord& job, RunState* run, RoundReport* report);
  Status SendNotSeen(RunState* run, RoundReport* report);
  Status LookAfterVanished(bool squeue_answered, RoundReport* report);
  Status SendEvidence(RoundReport* report);
  Status SendEvidenceOf(RunState* run, RoundReport* report);
  Status SendComputeFacts();
  Status Send(data::v1::Record record);
  /// Since a stored time; a time in the future (the clock was set back) is long ago.
  int64_t ElapsedMs(int64_t since_ms) const;
  int64_t NowMs() const { return ToUnixMillis(clock_.Now()); }

  ReconcilerOptions options_;
  SlurmTools& tools_;
  const platform::Clock& clock_;
  const platform::Fs& fs_;
  KeyIndex& index_;
  Sink sink_;
  Sync sync_;
  RunTable table_;
  EvidenceReader evidence_;
  std::string sacct_unavailable_;  // why; empty: it answered last time
  bool sacct_disabled_ = false;    // this cluster keeps no accounting
  bool changed_ = false;
  bool window_due_ = true;
  bool scontrol_due_ = true;
  bool round_failed_ = false;
  uint64_t round_ = 0;
  int64_t last_window_ = 0;
  int64_t last_sweep_ = 0;
  int64_t last_compute_ = 0;
  mutable std::mutex health_mutex_;
  data::v1::CollectorHealth queue_health_;
  std::optional<ClusterSize> cluster_size_;
};

}  // namespace expanse::collect::slurm
