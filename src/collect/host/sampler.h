// SPDX-License-Identifier: Apache-2.0
// The node's sampler: once a second it reads the cgroups of SLURM's jobs and the node, takes the
// hooks' event files, and appends records to a spool. It opens no socket and holds no credential.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "collect/core/spool.h"
#include "collect/host/cgroup_reader.h"
#include "collect/host/sample_batch.h"
#include "collect/host/step_collector.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

namespace expanse::collect::host {

struct SamplerOptions {
  std::string node;              // SLURM's name of this node
  std::string events_directory;  // <hook spool>/<node>/events, node-local; made with mode 1733
  std::string state_file;        // node-local; which user owns which job, over a restart
  uid_t service_uid = 0;         // beside root, the owner whose prolog and epilog files count
  int64_t events_max_bytes = 64 << 20;  // more: the hooks are told to stop writing
  Millis batch{5'000};                  // samples of one series wait this long for others
  Millis running_facts{60'000};         // peaks of running jobs are reported this often
  Millis health{60'000};                // CollectorHealth of this node is reported this often
  bool use_taskstats = false;           // exit records of the whole host; see taskstats.h
};

/// What the sampler did and cost since its start.
struct SamplerStats {
  uint64_t ticks = 0;
  uint64_t late_ticks = 0;  // periods missed because a tick took too long
  uint64_t samples = 0;
  uint64_t events = 0;
  uint64_t rejected_events = 0;  // malformed, or written by somebody who does not own the job
  uint64_t failed_appends = 0;
  double tick_cpu_ms = 0;  // CPU time of the last tick
  double cpu_seconds = 0;  // CPU time of all ticks
  CollectorCost cost;      // by source
};

/// One node. Tick() is called once a second by a PeriodicTask (or by a test with a FakeClock).
class Sampler {
 public:
  /// reader may be null: no cgroups (then only hooks and the node are read, and health says so).
  Sampler(SamplerOptions options, const platform::Clock& clock, const platform::Fs& fs,
          std::unique_ptr<CgroupReader> reader, SpoolWriter& spool);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// A further source of series (GPUs); before the first Tick.
  void AddSource(std::unique_ptr<SeriesSource> source);
  /// One round. Never fails: what could not be read is counted and named in the health record.
  void Tick();
  /// Writes what waits in batches (before the process ends).
  void Drain();
  SamplerStats stats() const;
  /// The sources as last told in a health record. On the thread that calls Tick.
  const std::vector<data::v1::CollectorHealth>& health() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::collect::host
