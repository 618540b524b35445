// SPDX-License-Identifier: Apache-2.0
// The daemon on a worker: node's sampler once a second into its part of the shared spool. It holds
// no credential and opens no socket.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/metrics/metrics.h"
#include "platform/random/random.h"

namespace expanse::collect::daemon {

struct SamplerDaemonOptions {
  std::string node;           // SLURM's name of this node
  std::string shared_prefix;  // the spool is <shared_prefix>/spool/<node>
  std::string hook_spool;     // node-local; events are in <hook_spool>/<node>/events
};

class SamplerDaemon {
 public:
  /// kFailedPrecondition: another sampler of this node is alive.
  static Result<std::unique_ptr<SamplerDaemon>> Start(SamplerDaemonOptions options,
                                                      const platform::Clock& clock,
                                                      const platform::Fs& fs,
                                                      platform::Random& random);
  /// Writes what waits in batches.
  ~SamplerDaemon();
  SamplerDaemon(const SamplerDaemon&) = delete;
  SamplerDaemon& operator=(const SamplerDaemon&) = delete;

  /// Sources, spool and the sampler's own cost, as of the last second; the registry's last Text()
  /// comes before the daemon's end.
  void AddMetrics(platform::MetricsRegistry& registry) const;

 private:
  struct Impl;
  explicit SamplerDaemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::collect::daemon
