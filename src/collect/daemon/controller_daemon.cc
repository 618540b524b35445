// SPDX-License-Identifier: Apache-2.0
#include "collect/daemon/controller_daemon.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "collect/core/spool.h"
#include "collect/daemon/adaptive_loop.h"
#include "collect/daemon/health.h"
#include "collect/host/event_collector.h"
#include "collect/slurm/reconciler.h"
#include "collect/uplink/aggregator.h"
#include "collect/uplink/record_queue.h"
#include "collect/uplink/uplink.h"
#include "expanse/data/v1/data.rpc.h"
#include "platform/fs/file_lock.h"
#include "platform/metrics/process_metrics.h"

namespace expanse::collect::daemon {
namespace {

constexpr Millis kUplinkPeriod{1'000};
constexpr Millis kMostHeartbeatInterval{5 * 60'000};
constexpr Millis kHeartbeatTimeout{10'000};
/// What a stop gives the backlog, before the loops end and once more after: the rest waits on disk.
constexpr Millis kLastDelivery{5'000};
constexpr Millis kHookCheck{600'000};

slurm::SlurmToolsOptions ToolsOptions(const DaemonConfig& config) {
  slurm::SlurmToolsOptions options;
  options.slurm_conf = config.slurm_conf;
  return options;
}

slurm::ReconcilerOptions ReconcilerOptionsOf(const DaemonConfig& config) {
  slurm::ReconcilerOptions options;
  options.state_file = platform::JoinPath(config.state_dir, "runs.json");
  return options;
}

uplink::AggregatorOptions AggregatorOptionsOf(const DaemonConfig& config) {
  uplink::AggregatorOptions options;
  options.spool_directory = platform::JoinPath(config.shared_prefix, "spool");
  return options;
}

}  // namespace

struct ControllerDaemon::Impl {
  Impl(ControllerOptions o, ControllerParts p)
      : options(std::move(o)),
        parts(p),
        tools(ToolsOptions(options.config), p.runner, p.clock, p.random),
        sender(p.data_plane, options.config.credential, p.clock),
        aggregator(
            AggregatorOptionsOf(options.config), sender,
            [this](common::v1::RunKey* key, int64_t when, data::v1::FactOrigin origin) {
              return index.Complete(key, when, origin);
            },
            p.clock, p.fs),
        reconciler(
            ReconcilerOptionsOf(options.config), tools, p.clock, p.fs, index,
            [this](const data::v1::Record& record) { return queue->Append(record); },
            [this] { return queue->Sync(); }),
        enrolment(p.data_plane),
        files(options.config.state_dir, p.fs) {}

  Status Open();
  void StartLoops();
  Pause Reconcile();
  Millis Deliver();
  Millis Beat();
  void CollectControllerEvents();
  void CheckHooks();
  std::vector<data::v1::CollectorHealth> Table() const;
  void SetProblem(std::string* kept, const std::string& problem, const char* event);

  const ControllerOptions options;
  ControllerParts parts;
  std::unique_ptr<platform::FileLock> lock;
  std::unique_ptr<uplink::RecordQueue> queue;
  std::unique_ptr<SpoolReader> queue_reader;
  std::unique_ptr<SpoolWriter> events_writer;
  std::unique_ptr<SpoolReader> events_reader;
  std::unique_ptr<host::EventCollector> events;
  slurm::KeyIndex index;
  slurm::SlurmTools tools;
  uplink::Uplink sender;
  uplink::Aggregator aggregator;
  slurm::Reconciler reconciler;
  data::v1::EnrolmentServiceClient enrolment;
  HealthFiles files;

  mutable std::mutex mutex;  // those down to the loops
  std::string hook_problem = "not looked at yet";
  std::optional<Millis> clock_offset;  // the data plane's clock less ours
  int64_t accepted_heartbeat_ms = 0;
  mutable DropWatch drops;
  std::string round_problem;
  std::string queue_problem;
  std::string heartbeat_problem;
  int64_t heartbeat_since_ms = 0;
  Millis heartbeat_interval{0};

  std::optional<MonoTime> hooks_checked;  // by the reconciler's thread alone

  AdaptiveLoop heartbeat_loop;
  AdaptiveLoop uplink_loop;
  AdaptiveLoop reconcile_loop;
};

Status ControllerDaemon::Impl::Open() {
  const std::string& state = options.config.state_dir;
  EXPANSE_CHECK_OK(parts.fs.MakeDirs(state, 0750));
  auto locked = platform::FileLock::Try(parts.fs.Host(platform::JoinPath(state, "lock")));
  if (!locked.ok()) return locked.error().WithContext("another controller daemon may be running");
  lock = std::move(*locked);
  SpoolOptions spool;
  spool.directory = parts.fs.Host(platform::JoinPath(state, "queue"));
  EXPANSE_TRY(queue, uplink::RecordQueue::Open(spool, parts.clock, parts.random));
  EXPANSE_TRY(queue_reader, SpoolReader::Open(spool.directory));
  return reconciler.Start();
}

void ControllerDaemon::Impl::StartLoops() {
  heartbeat_interval = options.heartbeat;
  heartbeat_loop.Start([this] { return Pause{Beat()}; });
  uplink_loop.Start([this] { return Pause{Deliver()}; });
  reconcile_loop.Start([this] { return Reconcile(); });
}

void ControllerDaemon::Impl::SetProblem(std::string* kept, const std::string& problem,
                                        const char* event) {
  const std::lock_guard guard(mutex);
  if (*kept == problem) return;
  if (!problem.empty() && kept->empty()) log::Error(event, {{"reason", problem}});
  *kept = problem;
}

void ControllerDaemon::Impl::CheckHooks() {
  const MonoTime now = parts.clock.Mono();
  if (hooks_checked && now - *hooks_checked < kHookCheck) return;
  hooks_checked = now;
  const auto config = tools.Config();
  const std::string problem =
      config.ok() ? HookProblem(*config, options.config.hook_directory)
                  : "whether they are wired is not known: " + config.error().message();
  const std::lock_guard guard(mutex);
  if (!problem.empty() && problem != hook_problem)
    log::Warning("hooks.degraded", {{"reason", problem}});
  hook_problem = problem;
}

Pause ControllerDaemon::Impl::Reconcile() {
  CheckHooks();
  PollLimits limits;
  limits.usual = options.poll;
  limits.fastest = options.fastest_poll;
  const MonoTime start = parts.clock.Mono();
  const auto report = reconciler.Round();
  SetProblem(&round_problem, report.ok() ? "" : report.error().message(),
             "reconciler.round_failed");
  if (!report.ok())
    return PauseAfterRound(false, false,
                           std::chrono::duration_cast<Millis>(parts.clock.Mono() - start), limits);
  if (report->facts + report->bundles + report->log_tails > 0) {
    log::Info("reconciler.round", {{"new", report->new_runs},
                                   {"facts", report->facts},
                                   {"bundles", report->bundles},
                                   {"log_tails", report->log_tails},
                                   {"live", report->live},
                                   {"unsettled", report->unsettled},
                                   {"polling_ms", static_cast<int64_t>(report->polling.count())}});
    uplink_loop.Wake();
  }
  const bool soon = report->work_left || report->new_runs > 0;
  return PauseAfterRound(true, soon, report->polling, limits);
}

void ControllerDaemon::Impl::CollectControllerEvents() {
  const std::string directory = platform::JoinPath(options.config.hook_spool, "ctld/events");
  if (events == nullptr) {
    // Only where PrologSlurmctld or EpilogSlurmctld are wired does the installer make it.
    if (!parts.fs.Exists(directory)) return;
    SpoolOptions spool;
    spool.directory = parts.fs.Host(platform::JoinPath(options.config.state_dir, "ctld-spool"));
    auto writer = SpoolWriter::Open(spool, parts.clock, parts.random);
    auto reader = SpoolReader::Open(spool.directory);
    if (!writer.ok() || !reader.ok()) return;
    events_writer = std::move(*writer);
    events_reader = std::move(*reader);
    host::EventCollectorOptions collector;
    collector.events_directory = directory;
    collector.state_file = platform::JoinPath(options.config.state_dir, "ctld-jobs.json");
    collector.service_uid = geteuid();
    events = std::make_unique<host::EventCollector>(collector, parts.clock, parts.fs);
  }
  (void)events->Collect(*events_writer).ok();  // what stays is taken in the next round
}

Millis ControllerDaemon::Impl::Deliver() {
  CollectControllerEvents();
  const auto own = sender.Drain(*queue_reader, nullptr);
  // What every source meets has its own line.
  const bool is_stuck = !own.ok() && !uplink::IsOfEverySource(own.error().code());
  SetProblem(&queue_problem, is_stuck ? own.error().message() : "", "uplink.queue_stuck");
  if (events_reader != nullptr) {
    // Completed like a node's: hooks know only a part of the key.
    (void)sender
        .Drain(*events_reader,
               [this](data::v1::Record* record) {
                 auto* key = record->mutable_facts()->mutable_key();
                 index.Complete(key, record->observed_time_ms(), record->facts().origin());
                 return uplink::Passage::kSend;
               })
        .ok();
  }
  const auto pass = aggregator.Pass();
  if (pass.held) reconcile_loop.Wake();
  return kUplinkPeriod;
}

Millis ControllerDaemon::Impl::Beat() {
  data::v1::HeartbeatRequest request;
  request.set_daemon_version(options.version);
  request.set_sender_clock_ms(ToUnixMillis(parts.clock.Now()));
  if (const auto size = reconciler.cluster_size()) {
    request.set_nodes(size->nodes);
    if (size->gpus) request.set_gpus(*size->gpus);
  }
  const auto table = Table();
  for (const auto& line : table) *request.add_health() = line;
  const WallTime sent = parts.clock.Now();
  const auto response = enrolment.Heartbeat(options.config.credential.Reveal(), request,
                                            Deadline::In(kHeartbeatTimeout));
  const int64_t now = ToUnixMillis(parts.clock.Now());
  Millis next{0};
  {
    const std::lock_guard guard(mutex);
    const std::string problem = response.ok() ? "" : response.error().message();
    if (problem.empty() != heartbeat_problem.empty() || heartbeat_since_ms == 0) {
      heartbeat_since_ms = now;
      if (problem.empty())
        log::Info("heartbeat.accepted", {{"compute", response->compute_id()}});
      else
        log::Warning("heartbeat.refused", {{"reason", problem}});
    }
    heartbeat_problem = problem;
    if (response.ok()) accepted_heartbeat_ms = now;
    // Their clock was read somewhere between the call and its answer: in the middle, as in NTP.
    if (response.ok() && response->server_clock_ms() > 0)
      clock_offset = Millis(response->server_clock_ms() - (ToUnixMillis(sent) + now) / 2);
    if (response.ok() && response->interval_seconds() > 0)
      heartbeat_interval =
          std::min(kMostHeartbeatInterval, Millis(response->interval_seconds() * 1000));
    // Before the first acceptance people are waiting for the compute to become active.
    next = response.ok() ? heartbeat_interval : std::min(heartbeat_interval, Millis(5'000));
  }
  (void)files.TouchLoop(parts.clock).ok();
  if (response.ok()) (void)files.TouchAccepted(parts.clock).ok();
  (void)files.WriteTable(Table()).ok();
  return next;
}

std::vector<data::v1::CollectorHealth> ControllerDaemon::Impl::Table() const {
  std::vector<data::v1::CollectorHealth> table = reconciler.health();
  const auto add = [&](const char* part, const std::string& problem, int64_t since) {
    auto& line = table.emplace_back();
    line.set_part(part);
    line.set_status(problem.empty() ? "ok" : "degraded");
    line.set_reason(ToUtf8(problem));
    line.set_since_ms(since);
  };
  const uplink::UplinkHealth sending = sender.health();
  add("uplink", sending.reason, sending.since_ms);
  if (sending.rejected > 0)
    add("ingest", std::to_string(sending.rejected) + " records were refused by the data plane", 0);
  {
    const std::lock_guard guard(mutex);
    if (!round_problem.empty()) add("reconciler", round_problem, 0);
    add("queue", queue_problem, 0);
    table.back().set_dropped_records(queue->dropped_records());
    add("heartbeat", heartbeat_problem, heartbeat_since_ms);
    add("hooks", hook_problem, 0);
    if (clock_offset) add("clock", ClockProblem(*clock_offset), 0);
  }
  std::string disk = DiskProblem(parts.fs.Host(options.config.state_dir));
  if (disk.empty()) disk = DiskProblem(parts.fs.Host(options.config.shared_prefix));
  add("disk", disk, 0);
  for (auto& line : aggregator.health()) table.push_back(std::move(line));
  const std::lock_guard guard(mutex);
  drops.Judge(parts.clock, &table);
  return table;
}

Result<std::unique_ptr<ControllerDaemon>> ControllerDaemon::Start(ControllerOptions options,
                                                                  ControllerParts parts) {
  auto impl = std::make_unique<Impl>(std::move(options), parts);
  EXPANSE_CHECK_OK(impl->Open());
  impl->StartLoops();
  return std::unique_ptr<ControllerDaemon>(new ControllerDaemon(std::move(impl)));
}

ControllerDaemon::ControllerDaemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControllerDaemon::~ControllerDaemon() {
  impl_->sender.StopWithin(kLastDelivery);
  impl_->heartbeat_loop.Stop();
  impl_->reconcile_loop.Stop();
  impl_->uplink_loop.Stop();
  impl_->sender.StopWithin(kLastDelivery);
  impl_->Deliver();
}

void ControllerDaemon::AddMetrics(platform::MetricsRegistry& registry) const {
  const Impl& impl = *impl_;
  AddSourceMetrics(registry, [&impl] { return impl.Table(); });
  registry.AddGauge("expanse_queue_bytes", "Records of this host that wait for the data plane.",
                    [&impl] { return static_cast<double>(impl.queue->bytes()); });
  const auto counter = [&](const char* name, const char* help, auto field) {
    registry.AddCounter(name, help, {}, [&impl, field] {
      return static_cast<double>(impl.sender.health().*field);
    });
  };
  using Health = uplink::UplinkHealth;
  counter("expanse_uplink_delivered_records_total", "Records that the data plane acknowledged.",
          &Health::delivered);
  counter("expanse_uplink_rejected_records_total", "Records that the data plane refused for good.",
          &Health::rejected);
  counter("expanse_uplink_missing_records_total", "Records lost before they could be sent.",
          &Health::gaps);
  registry.AddGauge("expanse_heartbeat_accepted_seconds",
                    "When the data plane last took a heartbeat, since the epoch.",
                    [&impl]() -> std::optional<double> {
                      const std::lock_guard guard(impl.mutex);
                      if (impl.accepted_heartbeat_ms == 0) return std::nullopt;
                      return static_cast<double>(impl.accepted_heartbeat_ms) / 1000;
                    });
  registry.AddGauge("expanse_clock_offset_seconds",
                    "The data plane's clock less this host's, at the last heartbeat.",
                    [&impl]() -> std::optional<double> {
                      const std::lock_guard guard(impl.mutex);
                      if (!impl.clock_offset) return std::nullopt;
                      return static_cast<double>(impl.clock_offset->count()) / 1000;
                    });
  for (const std::string& directory :
       {impl.options.config.state_dir, impl.options.config.shared_prefix})
    platform::AddDiskMetrics(registry, impl.parts.fs.Host(directory));
}

std::vector<data::v1::CollectorHealth> ControllerDaemon::health() const { return impl_->Table(); }

}  // namespace expanse::collect::daemon
