// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/sampler_daemon.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "collect/core/spool.h"
#include "collect/daemon/health.h"
#include "collect/host/cgroup_reader.h"
#include "collect/host/sampler.h"
#include "platform/metrics/process_metrics.h"
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

  void Tick();
  /// The sampler's sources and the disks that it needs.
  std::vector<data::v1::CollectorHealth> ReadTable();

  /// What other threads see, since the sampler itself belongs to one.
  struct Seen {
    host::SamplerStats stats;
    std::vector<data::v1::CollectorHealth> table;
    int64_t spool_bytes = 0;
    uint64_t dropped_records = 0;
  };

  const platform::Clock& clock;
  HealthFiles files;
  std::string node;
  std::string spool_directory;
  std::string local_directory;
  DropWatch drops;
  mutable std::mutex mutex;
  Seen seen;
  uint64_t ticks = 0;
  std::unique_ptr<SpoolWriter> spool;
  std::unique_ptr<host::Sampler> sampler;
  std::unique_ptr<platform::PeriodicTask> task;
};

std::vector<data::v1::CollectorHealth> SamplerDaemon::Impl::ReadTable() {
  std::vector<data::v1::CollectorHealth> table = sampler->health();
  std::string disk = DiskProblem(spool_directory);
  if (disk.empty()) disk = DiskProblem(local_directory);
  auto& line = table.emplace_back();
  line.set_node(node);
  line.set_part("disk");
  line.set_status(disk.empty() ? "ok" : "degraded");
  line.set_reason(ToUtf8(disk));
  for (auto& told : table)
    if (told.part() == "spool") told.set_dropped_records(spool->dropped_records());
  drops.Judge(clock, &table);
  return table;
}

void SamplerDaemon::Impl::Tick() {
  sampler->Tick();
  const bool is_marked = ticks++ % kTicksPerMarker == 0;
  std::vector<data::v1::CollectorHealth> table;
  if (is_marked) {
    table = ReadTable();
    (void)files.TouchLoop(clock).ok();
    (void)files.WriteTable(table).ok();
  }
  const std::lock_guard lock(mutex);
  seen.stats = sampler->stats();
  seen.spool_bytes = spool->bytes();
  seen.dropped_records = spool->dropped_records();
  if (is_marked) seen.table = std::move(table);
}

void SamplerDaemon::AddMetrics(platform::MetricsRegistry& registry) const {
  const Impl& impl = *impl_;
  const auto read = [&impl](auto value) {
    return [&impl, value]() -> std::optional<double> {
      const std::lock_guard lock(impl.mutex);
      return static_cast<double>(value(impl.seen));
    };
  };
  using Seen = Impl::Seen;
  AddSourceMetrics(registry, [&impl] {
    const std::lock_guard lock(impl.mutex);
    return impl.seen.table;
  });
  registry.AddGauge("expanse_spool_bytes", "Records of this node that wait in the shared spool.",
                    read([](const Seen& s) { return s.spool_bytes; }));
  registry.AddCounter("expanse_spool_dropped_records_total",
                      "Records lost: the spool was full or could not be written.", {},
                      read([](const Seen& s) { return s.dropped_records; }));
  const auto counter = [&](const char* name, const char* help, auto field) {
    registry.AddCounter(name, help, {}, read([field](const Seen& s) { return s.stats.*field; }));
  };
  using Stats = host::SamplerStats;
  counter("expanse_sampler_ticks_total", "Rounds of sampling.", &Stats::ticks);
  counter("expanse_sampler_late_ticks_total", "Rounds missed: one took too long.",
          &Stats::late_ticks);
  counter("expanse_sampler_samples_total", "Samples taken.", &Stats::samples);
  counter("expanse_sampler_events_total", "Events of hooks taken.", &Stats::events);
  counter("expanse_sampler_rejected_events_total", "Events of hooks refused.",
          &Stats::rejected_events);
  counter("expanse_sampler_cpu_seconds_total", "CPU time of all rounds.", &Stats::cpu_seconds);
  platform::AddDiskMetrics(registry, impl.spool_directory);
}

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
  impl->node = options.node;
  impl->spool_directory = spool.directory;
  impl->local_directory = fs.Host(local);
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
  impl->task = std::make_unique<platform::PeriodicTask>("sampler", kTick,
                                                        [raw = impl.get()] { raw->Tick(); });
  log::Info("sampler.started", {{"node", options.node}, {"spool", spool.directory}});
  return std::unique_ptr<SamplerDaemon>(new SamplerDaemon(std::move(impl)));
}

SamplerDaemon::SamplerDaemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SamplerDaemon::~SamplerDaemon() {
  impl_->task.reset();
  impl_->sampler->Drain();
}

}  // namespace expanse::collect::daemon
