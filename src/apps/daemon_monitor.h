// SPDX-License-Identifier: Apache-2.0
// How a daemon can be watched: metrics.prom beside its marker files (for node_exporter's textfile
// collector; it needs no socket), and a listener when the operator asks for one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "platform/clock/clock.h"
#include "platform/config/config.h"
#include "platform/fs/fs.h"
#include "platform/metrics/metrics.h"
#include "platform/net/http_server.h"
#include "platform/service/service.h"

namespace expanse::apps {

class DaemonMonitor {
 public:
  /// directory: of the marker files. fs and clock outlive the monitor.
  DaemonMonitor(std::string directory, const platform::Fs& fs, const platform::Clock& clock);

  platform::MetricsRegistry& metrics() { return metrics_; }
  /// Settings metrics-listen, tls-certificate and tls-key.
  Status Start(const platform::Config& settings);
  void Stop();
  void ReloadTls();
  void ReloadChangedTls();

 private:
  platform::HttpResponse Handle(const platform::HttpRequest& request) const;
  void WriteFile();

  const std::string directory_;
  const platform::Fs& fs_;
  const platform::Clock& clock_;
  platform::MetricsRegistry metrics_;
  bool write_failed_ = false;
  std::unique_ptr<platform::HttpServer> server_;
  std::unique_ptr<platform::PeriodicTask> writer_;
};

}  // namespace expanse::apps
