// SPDX-License-Identifier: Apache-2.0
// The daemon on the slurmctld host: reconciler, aggregator, uplink and heartbeats. The only process
// of a compute that holds its credential and opens connections.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/daemon/daemon_config.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/metrics/metrics.h"
#include "platform/process/process.h"
#include "platform/random/random.h"
#include "rpc/channel.h"

namespace expanse::collect::daemon {

struct ControllerOptions {
  DaemonConfig config;
  std::string version;
  Millis poll{10'000};         // between rounds when nothing is owed
  Millis fastest_poll{2'000};  // while jobs are new or ended and accounting is owed
  Millis heartbeat{30'000};    // until the data plane names its interval (at most 5 min)
};

/// What it works with; references outlive the daemon.
struct ControllerParts {
  const platform::Clock& clock;
  const platform::Fs& fs;
  platform::ProcessRunner& runner;
  platform::Random& random;
  rpc::Channel& data_plane;
};

class ControllerDaemon {
 public:
  /// Starts every loop. kFailedPrecondition: another controller uses the state directory.
  static Result<std::unique_ptr<ControllerDaemon>> Start(ControllerOptions options,
                                                         ControllerParts parts);
  /// Ends the rounds in progress and sends what is left for at most some seconds (a call that was
  /// begun before ends by its own time-out); the rest stays in the spools.
  ~ControllerDaemon();
  ControllerDaemon(const ControllerDaemon&) = delete;
  ControllerDaemon& operator=(const ControllerDaemon&) = delete;

  std::vector<data::v1::CollectorHealth> health() const;
  /// Sources, queue, deliveries and clock; read at each scrape. The registry's last Text() comes
  /// before the daemon's end.
  void AddMetrics(platform::MetricsRegistry& registry) const;

 private:
  struct Impl;
  explicit ControllerDaemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::collect::daemon
