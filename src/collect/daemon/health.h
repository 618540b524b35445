// SPDX-License-Identifier: Apache-2.0
// Marker files and the health table, and the probe that reads them.
//
// <directory>/loop       touched by every turn of the heartbeat loop (liveness)
// <directory>/accepted   touched when the data plane took a heartbeat (readiness)
// <directory>/health.json  the table of every source, as proto3 JSON of ComputeFacts
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "expanse/data/v1/ingest.pb.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"

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

struct HealthcheckOptions {
  std::string directory;
  Millis max_age{20 * 60'000};             // of the loop marker
  std::optional<Millis> max_accepted_age;  // of the accepted marker; absent: not judged
  bool json = false;
};

struct HealthcheckReport {
  bool healthy = false;
  std::string text;  // what to print, with its line ends
};

/// Never fails: what cannot be read is unhealthy and named. Degraded sources are listed and do not
/// make the daemon unhealthy: collection goes on without them.
HealthcheckReport Healthcheck(const HealthcheckOptions& options, const platform::Fs& fs,
                              const platform::Clock& clock);

}  // namespace expanse::collect::daemon
