// SPDX-License-Identifier: Apache-2.0
#include "collect/host/step_collector.h"

#include <algorithm>

#include <time.h>

#include "base/strings.h"

namespace expanse::collect::host {
namespace {

constexpr uint64_t kSlowTicks = 10;  // seconds between two readings of what changes slowly
constexpr Millis kNewStep{2'500};    // its processes come one after the other
constexpr double kNsPerSecond = 1e9;
constexpr double kUsPerSecond = 1e6;

double ThreadSeconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/// Adds the CPU time of its scope.
class CostOf {
 public:
  explicit CostOf(double* sum) : sum_(sum), before_(ThreadSeconds()) {}
  ~CostOf() { *sum_ += ThreadSeconds() - before_; }
  CostOf(const CostOf&) = delete;
  CostOf& operator=(const CostOf&) = delete;

 private:
  double* sum_;
  double before_;
};

std::optional<double> Number(const std::optional<int64_t>& v, double divisor = 1) {
  if (!v) return std::nullopt;
  return static_cast<double>(*v) / divisor;
}

void KeepLargest(std::optional<int64_t> now, std::optional<int64_t>* largest) {
  if (now && (!*largest || **largest < *now)) *largest = now;
}

/// What a job's steps need together at one time: no more than the job does.
class SumOfSteps {
 public:
  /// Gives the sum to the job before and begins another's; null: there is none.
  void Begin(TrackedUnit* job) {
    if (job_ != nullptr) {
      KeepLargest(need_, &job_->need_peak);
      KeepLargest(cache_, &job_->cache_peak);
    }
    job_ = job;
    need_.reset();
    cache_.reset();
  }
  void Add(const CgroupUsage& usage) {
    if (const auto need = usage.Need()) need_ = Sum(need_.value_or(0), need);
    if (usage.reclaimable) cache_ = Sum(cache_.value_or(0), usage.reclaimable);
  }

 private:
  TrackedUnit* job_ = nullptr;
  std::optional<int64_t> need_;
  std::optional<int64_t> cache_;
};

/// In the order of StepMetric; names of domain/metric_catalogue.h.
constexpr std::array<std::string_view, static_cast<size_t>(StepMetric::kCount)> kNames = {
    "cpu",           "memory",          "memory-anon",
    "memory-shmem",  "memory-file",     "memory-need",
    "memory-limit",  "memory-kernel",   "memory-swap",
    "memory-slope",  "cpu-user",        "cpu-system",
    "cpu-throttled", "processes",       "threads",
    "oom-kills",     "limit-hits",      "io-read",
    "io-write",      "network-receive", "network-transmit",
    "exits",         "pressure-cpu",    "pressure-memory",
    "pressure-io",
};

std::string_view SourceOf(StepMetric metric) {
  switch (metric) {
    case StepMetric::kProcesses:
    case StepMetric::kNetworkReceive:
    case StepMetric::kNetworkTransmit:
      return "proc";
    case StepMetric::kExits:
      return "taskstats";
    default:
      return "cgroup";
  }
}

/// Whether a process is in a step, by /proc; nothing when it is gone or ending.
std::optional<std::string> LocateProcess(const platform::Fs& fs, const CgroupReader& reader,
                                         int32_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const auto text = fs.Read(directory + "/cgroup", 16 << 10);
  if (!text.ok()) return std::nullopt;
  std::string unit = reader.UnitOf(*text);
  if (!unit.empty()) return unit;
  // The kernel shows "/" for one that is ending.
  const std::string stat = ReadText(fs, directory + "/stat");
  const size_t close = stat.rfind(')');
  if (close == std::string::npos || close + 2 >= stat.size()) return std::nullopt;
  const char state = stat[close + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  return std::string();
}

}  // namespace

StepCollector::StepCollector(const platform::Fs& fs, std::unique_ptr<CgroupReader> reader,
                             EventCollector& events, bool use_taskstats)
    : fs_(fs), reader_(std::move(reader)), events_(events), processes_(fs) {
  if (reader_ == nullptr) {
    cgroup_problem_ = "no cgroup file system with a memory controller";
    taskstats_problem_ = "without cgroups nothing tells which step a process belonged to";
    return;
  }
  if (!use_taskstats) {
    taskstats_problem_ = "exit records are switched off";
    return;
  }
  // From the listener's thread: UnitOf looks at nothing that Refresh or Read change.
  auto started =
      TaskstatsListener::Start([this](int32_t pid) { return LocateProcess(fs_, *reader_, pid); });
  if (started.ok())
    taskstats_ = std::move(*started);
  else
    taskstats_problem_ = started.error().message();
}

expanse::common::v1::RunKey StepCollector::KeyOf(const CgroupUnit& unit, WallTime seen) const {
  expanse::common::v1::RunKey key;
  key.set_source_type(expanse::common::v1::SOURCE_TYPE_SLURM);
  key.set_native_id(unit.job_id);
  key.set_sluid(unit.sluid);
  key.set_observed_time_ms(ToUnixMillis(seen));
  if (const KnownJob* job = events_.Find(unit.job_id)) {
    if (job->restart_count) key.set_restart_count(*job->restart_count);
    if (job->start_time_ms) key.set_start_time_ms(*job->start_time_ms);
    if (key.sluid().empty()) key.set_sluid(job->sluid);
  }
  return key;
}

bool StepCollector::IsCurrent(const expanse::common::v1::RunKey& key) const {
  const KnownJob* job = events_.Find(key.native_id());
  if (job == nullptr) return true;
  return (!job->restart_count ||
          (key.has_restart_count() && key.restart_count() == *job->restart_count)) &&
         (!job->start_time_ms ||
          (key.has_start_time_ms() && key.start_time_ms() == *job->start_time_ms)) &&
         (job->sluid.empty() || !key.sluid().empty());
}

std::optional<uint32_t> StepCollector::UserOf(const TrackedUnit& t) const {
  if (t.unit.uid) return *t.unit.uid;
  if (const KnownJob* job = events_.Find(t.unit.job_id)) return job->uid;
  return std::nullopt;
}

uint64_t StepCollector::Losses() const { return taskstats_ ? taskstats_->state().losses : 0; }

void StepCollector::NoteBegin(TrackedUnit* t) {
  // What is there in the first round may have begun long ago.
  t->is_whole = ticks_ > 0;
  t->losses_before = losses_;
  t->unexplained_before = ExitLedger::CountOf(unexplained_, UserOf(*t));
}

void StepCollector::ReadProcesses(TrackedUnit* t) {
  const CostOf cost(&cost_.processes);
  const std::vector<int32_t> pids = reader_->Processes(t->unit);
  IoBytes network = t->processes.network;
  t->processes = processes_.Read(pids);
  // The counts of a network of its own go with its last process.
  KeepLargest(network.read, &t->processes.network.read);
  KeepLargest(network.written, &t->processes.network.written);
  KeepLargest(t->processes.io.read, &t->process_io.read);
  KeepLargest(t->processes.io.written, &t->process_io.written);
  if (!taskstats_) return;
  taskstats_->With([&](ExitLedger& ledger) {
    for (const int32_t pid : pids) ledger.Learn(pid, t->unit.path);
  });
}

StepIo StepCollector::IoOf(const TrackedUnit& t) {
  StepIo io;
  io.bytes = t.process_io;
  KeepLargest(t.last.io.read, &io.bytes.read);
  KeepLargest(t.last.io.written, &io.bytes.written);
  if (!taskstats_) {
    io.reason =
        !io.bytes.read && !t.processes.io_problem.empty()
            ? t.processes.io_problem + "; " + taskstats_problem_
            : "sampled: without what ended between two samples (" + taskstats_problem_ + ")";
    return io;
  }
  ExitTotals exits;
  uint64_t unexplained = 0;
  taskstats_->With([&](ExitLedger& ledger) {
    exits = ledger.TotalsOf(t.unit.path);
    unexplained = ledger.UnexplainedOf(UserOf(t)) - t.unexplained_before;
  });
  if (exits.threads > 0 || t.is_whole) {
    KeepLargest(exits.read_bytes, &io.bytes.read);
    KeepLargest(exits.write_bytes, &io.bytes.written);
  }
  if (!t.gone_since) {
    io.reason = "read while running";
  } else if (!t.is_whole) {
    io.reason = "the collector started after the step";
  } else if (Losses() != t.losses_before) {
    io.reason = "the kernel dropped exit records meanwhile";
  } else if (unexplained > 0) {
    io.reason = std::to_string(unexplained) +
                " ended processes of the user could not be assigned to a step";
  }
  return io;
}

bool StepCollector::HasAllRecords(const TrackedUnit& t, uint64_t unexplained) const {
  return taskstats_ != nullptr && t.is_whole && Losses() == t.losses_before &&
         unexplained == t.unexplained_before;
}

/// No less than what the step read and wrote until now, when that is known: its ended processes and
/// the living ones, whose counts hold their ended children a second time.
std::optional<int64_t> StepCollector::MostIo(TrackedUnit* t) {
  if (!taskstats_) return std::nullopt;
  std::optional<int64_t> living = 0;
  if (!t->gone_since) {
    ReadProcesses(t);
    for (const Process& process : t->processes.processes)
      living = Sum(living, Sum(process.io.read, process.io.written));
  }
  ExitTotals exits;
  uint64_t unexplained = 0;
  taskstats_->With([&](ExitLedger& ledger) {
    exits = ledger.TotalsOf(t->unit.path);
    unexplained = ledger.UnexplainedOf(UserOf(*t));
  });
  if (!HasAllRecords(*t, unexplained)) return std::nullopt;
  return Sum(living, exits.read_bytes + exits.write_bytes);
}

MemorySeen StepCollector::SeenOf(const std::string& job_id, const std::string& step_id) {
  MemorySeen seen;
  TrackedUnit* t = tracker_.FindOf(job_id, step_id);
  if (t == nullptr) return seen;
  seen.need = t->need_peak;
  seen.cache = t->cache_peak;
  if (!step_id.empty()) {
    if (!t->gone_since) seen.cache_most = MostIo(t);
    return seen;
  }
  seen.cache_most = t->is_whole ? t->ended_steps_io : std::nullopt;
  for (auto& [path, step] : tracker_.units())
    if (seen.cache_most && !step.gone_since && path.starts_with(t->unit.path + "/"))
      seen.cache_most = Sum(seen.cache_most, MostIo(&step));
  return seen;
}

void StepCollector::Release(TrackedUnit& t) {
  if (!t.unit.step_id.empty()) {
    const auto io = MostIo(&t);
    TrackedUnit* job = tracker_.FindOf(t.unit.job_id, "");
    if (job != nullptr) job->ended_steps_io = Sum(job->ended_steps_io, io);
  }
  if (taskstats_) taskstats_->With([&](ExitLedger& ledger) { ledger.Forget(t.unit.path); });
}

CollectorCost StepCollector::cost() const {
  CollectorCost cost = cost_;
  if (taskstats_) cost.taskstats = taskstats_->state().cpu_seconds;
  return cost;
}

void StepCollector::AddSamples(TrackedUnit* t, const CgroupUsage& usage, bool with_processes,
                               WallTime now, SampleBatch* batch) {
  const bool is_fuller = !IsCurrent(t->key);
  if (is_fuller) t->series = {};  // begins other series
  if (is_fuller || !batch->IsCurrent(t->series[0], now)) t->key = KeyOf(t->unit, t->first_seen);
  SeriesId id;
  id.run = &t->key;
  id.step_id = t->unit.step_id;
  const auto add = [&](StepMetric metric, std::optional<double> value) {
    if (!value) return;
    const auto n = static_cast<size_t>(metric);
    if (!batch->IsCurrent(t->series[n], now)) {
      id.metric = kNames[n];
      id.source = SourceOf(metric);
      id.unit = t->unit.path;
    }
    batch->Add(id, now, value, &t->series[n]);
  };
  add(StepMetric::kCpu, t->cores_now);
  add(StepMetric::kMemory, Number(usage.usage));
  add(StepMetric::kAnon, Number(usage.anon));
  add(StepMetric::kShmem, Number(usage.shmem));
  add(StepMetric::kFile, Number(usage.file));
  add(StepMetric::kNeed, Number(usage.Need()));
  add(StepMetric::kOomKills, Number(usage.oom_kills));
  add(StepMetric::kLimitHits, Number(usage.limit_hits));
  if (with_processes) {
    const StepProcesses& p = t->processes;
    if (!p.processes.empty()) add(StepMetric::kProcesses, static_cast<double>(p.processes.size()));
    add(StepMetric::kThreads, Number(usage.threads ? usage.threads : p.threads));
    add(StepMetric::kNetworkReceive, Number(p.network.read));
    add(StepMetric::kNetworkTransmit, Number(p.network.written));
  }
  if (!usage.is_all) return;
  add(StepMetric::kLimit, Number(usage.limit));
  add(StepMetric::kKernel, Number(usage.kernel));
  add(StepMetric::kSwap, Number(usage.swap));
  add(StepMetric::kSlope, t->NeedSlope());
  add(StepMetric::kCpuUser, Number(usage.cpu_user_ns, kNsPerSecond));
  add(StepMetric::kCpuSystem, Number(usage.cpu_system_ns, kNsPerSecond));
  add(StepMetric::kThrottled, Number(usage.throttled_ns, kNsPerSecond));
  const StepIo io = IoOf(*t);
  add(StepMetric::kIoRead, Number(io.bytes.read));
  add(StepMetric::kIoWrite, Number(io.bytes.written));
  add(StepMetric::kCpuPressure, Number(usage.cpu_pressure.some_us, kUsPerSecond));
  add(StepMetric::kMemoryPressure, Number(usage.memory_pressure.some_us, kUsPerSecond));
  add(StepMetric::kIoPressure, Number(usage.io_pressure.some_us, kUsPerSecond));
  if (taskstats_)
    taskstats_->With([&](ExitLedger& ledger) {
      add(StepMetric::kExits, static_cast<double>(ledger.TotalsOf(t->unit.path).processes));
    });
}

void StepCollector::Read(WallTime now, MonoTime mono, SampleBatch* batch) {
  jobs_ = {};
  if (reader_ == nullptr) return;
  const CostOf cost(&cost_.cgroup);
  const double processes_before = cost_.processes;
  const Status refreshed = reader_->Refresh();
  cgroup_problem_ = refreshed.ok() ? "" : refreshed.error().message();
  if (!refreshed.ok()) return;
  size_t index = 0;
  SumOfSteps steps;
  CgroupUnit named;
  for (const CgroupUnit& listed : reader_->units()) {
    const bool is_named = !listed.job_id.empty();
    if (!is_named) {
      named = listed;
      named.job_id = events_.JobOfSluid(listed.sluid);
    }
    const CgroupUnit& unit = is_named ? listed : named;
    if (unit.uid && unit.step_id.empty() && is_named) events_.Learn(unit.job_id, *unit.uid);
    TrackedUnit* known = tracker_.Find(unit.path);
    const bool is_due = known == nullptr || (ticks_ + index++) % kSlowTicks == 0;
    const CgroupUsage usage = reader_->Read(unit, is_due ? Depth::kAll : Depth::kEachSecond);
    TrackedUnit* t = tracker_.Update(unit, usage, now, mono);
    if (t == nullptr) continue;
    if (t->first_seen == now) NoteBegin(t);
    if (unit.step_id.empty()) {
      ++jobs_.jobs;
      jobs_.cores += t->cores_now.value_or(0);
      jobs_.memory += usage.usage.value_or(0);
      steps.Begin(t);
      continue;
    }
    steps.Add(usage);
    // Only steps have series: the job's are their sum, and a sum of both would count twice.
    const bool with_processes = is_due || now - t->first_seen < kNewStep;
    if (with_processes) ReadProcesses(t);
    AddSamples(t, usage, with_processes, now, batch);
  }
  steps.Begin(nullptr);
  if (ticks_ % (2 * kSlowTicks) == 0) processes_.ForgetOthers();
  if (taskstats_) {
    taskstats_->With([this](ExitLedger& ledger) {
      ledger.Age();
      unexplained_ = ledger.unexplained();
    });
    losses_ = Losses();
    taskstats_problem_ =
        losses_ == 0 ? "" : "the kernel dropped exit records that were not read in time";
  }
  ++ticks_;
  cost_.cgroup -= cost_.processes - processes_before;  // has its own line
}

}  // namespace expanse::collect::host
