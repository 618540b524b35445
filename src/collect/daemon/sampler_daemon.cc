// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/sampler_daemon.h"

#include <algorithm>

#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "collect/core/spool.h"
#include "collect/daemon/health.h"
#include "collect/host/cgroup_reader.h"
#include "collect/host/sampler.h"
#include "platform/service/service.h"

namespace expanse::collect::daemon {
namespace {

constexpr Millis kTick{1'000};
constexpr uint64_t kTicksPerMarker = 10;

/// The files of cgroups are kept open: some eight a step.
void AllowOpenFiles() {
  constexpr rlim_t kMost = 65'536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMost));
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // with fewer, files are opened each time
}

}  // namespace

struct SamplerDaemon::Impl {
  Impl(const platform::Clock& c, HealthFiles f) : clock(c), files(std::move(f)) {}

  const platform::Clock& clock;
  HealthFiles files;
  uint64_t ticks = 0;
  std::unique_ptr<SpoolWriter> spool;
  std::unique_ptr<host::Sampler> sampler;
  std::unique_ptr<platform::PeriodicTask> task;
};

Result<std::unique_ptr<SamplerDaemon>> SamplerDaemon::Start(SamplerDaemonOptions options,
                                                            const platform::Clock& clock,
                                                            const platform::Fs& fs,
                                                            platform::Random& random) {
  const std::string local = platform::JoinPath(options.hook_spool, options.node);
  auto impl = std::make_unique<Impl>(clock, HealthFiles(local, fs));
  if (const Status made = fs.MakeDirs(local, 0755); !made.ok())
    log::Warning("sampler.no_hook_spool", {{"reason", made.error().message()}});
  SpoolOptions spool;
  spool.directory =
      fs.Host(platform::JoinPath(platform::JoinPath(options.shared_prefix, "spool"), options.node));
  EXPANSE_TRY(impl->spool, SpoolWriter::Open(spool, clock, random));
  AllowOpenFiles();
  auto reader = host::CgroupReader::Detect(fs, options.node);
  if (!reader.ok()) log::Warning("sampler.no_cgroups", {{"reason", reader.error().message()}});
  host::SamplerOptions sampler;
  sampler.node = options.node;
  sampler.events_directory = platform::JoinPath(local, "events");
  sampler.state_file = platform::JoinPath(local, "jobs.state");
  sampler.service_uid = geteuid();
  sampler.use_taskstats = true;
  impl->sampler = std::make_unique<host::Sampler>(
      sampler, clock, fs, reader.ok() ? std::move(*reader) : nullptr, *impl->spool);
  impl->task = std::make_unique<platform::PeriodicTask>("sampler", kTick, [raw = impl.get()] {
    raw->sampler->Tick();
    if (raw->ticks++ % kTicksPerMarker == 0) (void)raw->files.TouchLoop(raw->clock).ok();
  });
  log::Info("sampler.started", {{"node", options.node}, {"spool", spool.directory}});
  return std::unique_ptr<SamplerDaemon>(new SamplerDaemon(std::move(impl)));
}

SamplerDaemon::SamplerDaemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SamplerDaemon::~SamplerDaemon() {
  impl_->task.reset();
  impl_->sampler->Drain();
}

}  // namespace expanse::collect::daemon
