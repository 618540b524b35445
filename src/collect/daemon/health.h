// SPDX-License-Identifier: Apache-2.0
// Marker files and the health table, and the probe that reads them.
//
// <directory>/loop       touched by every turn of the heartbeat loop (liveness)
// <directory>/accepted   touched when the data plane took a heartbeat (readiness)
// <directory>/health.json  the table of every source, as proto3 JSON of ComputeFacts
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/metrics/metrics.h"

namespace expanse::collect::daemon {

class HealthFiles {
 public:
  HealthFiles(std::string directory, const platform::Fs& fs)
      : directory_(std::move(directory)), fs_(fs) {}
  Status TouchLoop(const platform::Clock& clock) const;
  Status TouchAccepted(const platform::Clock& clock) const;
  Status WriteTable(const std::vector<data::v1::CollectorHealth>& table) const;

 private:
  std::string directory_;
  const platform::Fs& fs_;
};

/// Marks the lines of sources that lost records lately: a count that rose within the last hour.
/// Calls come from one thread at a time.
class DropWatch {
 public:
  void Judge(const platform::Clock& clock, std::vector<data::v1::CollectorHealth>* table);

 private:
  struct Seen {
    uint64_t dropped = 0;
    std::optional<WallTime> rose;
  };
  std::map<std::pair<std::string, std::string>, Seen> seen_;  // by node and part
};

/// expanse_collector_source_degraded and expanse_collector_dropped_records, by node and part.
void AddSourceMetrics(platform::MetricsRegistry& registry,
                      std::function<std::vector<data::v1::CollectorHealth>()> table);

/// "" when the directory is on a disk that can be written and has 64 MiB and 1,000 inodes left.
std::string DiskProblem(const std::string& directory);

/// What `scontrol show config` says of our hooks: "" when Prolog, Epilog, TaskProlog and TaskEpilog
/// each name a program in the directory, else which do not and what that costs.
std::string HookProblem(std::string_view slurm_config, std::string_view hook_directory);

/// "": this host's clock and the data plane's agree within two seconds. offset: theirs less ours.
std::string ClockProblem(Millis offset);

struct HealthcheckOptions {
  std::string directory;
  Millis max_age{20 * 60'000};             // of the loop marker
  std::optional<Millis> max_accepted_age;  // of the accepted marker; absent: not judged
  bool json = false;
};

struct HealthcheckReport {
  bool healthy = false;
  int degraded = 0;  // sources
  std::string text;  // what to print, with its line ends
};

/// Never fails: what cannot be read is unhealthy and named. Degraded sources are listed and do not
/// make the daemon unhealthy: collection goes on without them.
HealthcheckReport Healthcheck(const HealthcheckOptions& options, const platform::Fs& fs,
                              const platform::Clock& clock);

}  // namespace expanse::collect::daemon
