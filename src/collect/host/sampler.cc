// SPDX-License-Identifier: Apache-2.0
#include "collect/host/sampler.h"

#include <cstdio>
#include <map>

#include <time.h>

#include "base/log.h"
#include "collect/host/event_collector.h"
#include "collect/host/node_sampler.h"
#include "collect/host/unit_tracker.h"

namespace expanse::collect::host {
namespace {

constexpr Millis kLateTick{1500};  // more than half a period late: samples were missed
constexpr Millis kKeepGoneUnits{60'000};
constexpr Millis kChangedHealth{10'000};

double ThreadCpuMillis() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

EventCollectorOptions CollectorOptions(const SamplerOptions& options) {
  EventCollectorOptions out;
  out.node = options.node;
  out.events_directory = options.events_directory;
  out.state_file = options.state_file;
  out.service_uid = options.service_uid;
  out.max_bytes = options.events_max_bytes;
  return out;
}

}  // namespace

struct Sampler::Impl {
  SamplerOptions options;
  const platform::Clock& clock;
  const platform::Fs& fs;
  SpoolWriter& spool;
  EventCollector events;
  StepCollector steps;
  NodeSampler node;
  SampleBatch batch;
  std::vector<std::unique_ptr<SeriesSource>> sources;
  SamplerStats stats;

  std::optional<MonoTime> last_tick;
  std::optional<MonoTime> batch_started;
  std::optional<MonoTime> health_sent;
  std::string events_problem;
  std::string spool_problem;
  std::string sent_problems;  // of the last health record: a change is sent at once
  struct HealthState {
    bool is_fine = true;
    int64_t since_ms = 0;
  };
  std::map<std::string, HealthState> health_states;  // by part
  double health_cpu_seconds = 0;
  bool appended = false;

  Impl(SamplerOptions o, const platform::Clock& c, const platform::Fs& f,
       std::unique_ptr<CgroupReader> r, SpoolWriter& s)
      : options(std::move(o)),
        clock(c),
        fs(f),
        spool(s),
        events(CollectorOptions(options), c, f),
        steps(f, std::move(r), events, options.use_taskstats),
        node(f) {
    events.SetSeenOf([this](const std::string& job, const std::string& step) {
      return steps.SeenOf(job, step);
    });
  }

  void ReportGone(WallTime now);
  void ReportRunning(WallTime now);
  void AppendFacts(TrackedUnit* t, WallTime now);
  void Append(const data::v1::Record& record);
  void SendBatch(WallTime now);
  std::vector<data::v1::CollectorHealth> told;  // by the last health record
  void SendHealth(WallTime now, MonoTime mono);
  void AddHealth(const std::string& part, const std::string& problem, const std::string& fine,
                 data::v1::ComputeFacts* compute);
  void NoteHealth(const std::string& part, const std::string& problem);
  void FlushSpool();
};

void Sampler::Impl::Append(const data::v1::Record& record) {
  appended = true;
  const auto sequence = spool.Append(record);
  if (sequence.ok()) return;
  ++stats.failed_appends;
  log::Warning("sampler.append_failed", {{"error", sequence.error().message()}});
}

void Sampler::Impl::AppendFacts(TrackedUnit* t, WallTime now) {
  data::v1::Record record;
  record.set_observed_time_ms(ToUnixMillis(t->last_seen));
  record.set_node(options.node);
  const StepIo io = t->unit.step_id.empty() ? StepIo{} : steps.IoOf(*t);
  // Of the attempt in which the cgroup began: it may outlive the attempt's end.
  SetCgroupFacts(*t, io, options.node, steps.KeyOf(t->unit, t->first_seen), record.mutable_facts());
  Append(record);
  t->reported = now;
}

void Sampler::Impl::ReportGone(WallTime now) {
  for (TrackedUnit* t : steps.tracker().MarkGone(now)) {
    AppendFacts(t, now);
    steps.Release(*t);
  }
  steps.tracker().Forget(now, kKeepGoneUnits);
}

void Sampler::Impl::ReportRunning(WallTime now) {
  for (auto& [path, t] : steps.tracker().units())
    if (!t.gone_since && now - t.reported >= options.running_facts) AppendFacts(&t, now);
}

void Sampler::Impl::SendBatch(WallTime now) {
  batch_started.reset();
  if (batch.empty()) return;
  stats.samples = batch.samples();
  data::v1::Record record;
  record.set_observed_time_ms(ToUnixMillis(now));
  record.set_node(options.node);
  *record.mutable_samples() = batch.Take();
  Append(record);
}

void Sampler::Impl::AddHealth(const std::string& part, const std::string& problem,
                              const std::string& fine, data::v1::ComputeFacts* compute) {
  auto* health = compute->add_health();
  health->set_node(options.node);
  health->set_part(part);
  health->set_status(problem.empty() ? "ok" : "degraded");
  health->set_reason(problem.empty() ? fine : problem);
  health->set_since_ms(health_states.at(part).since_ms);
  if (part == "spool") health->set_dropped_records(spool.dropped_records());
}

/// Every tick, whether or not it is told: a line says since when it is so.
void Sampler::Impl::NoteHealth(const std::string& part, const std::string& problem) {
  const int64_t now = ToUnixMillis(clock.Now());
  auto [state, added] = health_states.try_emplace(part, HealthState{problem.empty(), now});
  if (state->second.is_fine != problem.empty()) state->second = {problem.empty(), now};
}

void Sampler::Impl::SendHealth(WallTime now, MonoTime mono) {
  NoteHealth("sampler", steps.cgroup_problem());
  NoteHealth("taskstats", steps.taskstats_problem());
  NoteHealth("hooks", events_problem);
  NoteHealth("spool", spool_problem);
  const std::string problems = steps.cgroup_problem() + "|" + steps.taskstats_problem() + "|" +
                               events_problem + "|" + spool_problem;
  const MonoTime::duration since = health_sent ? mono - *health_sent : MonoTime::duration(0);
  const bool due = !health_sent || since >= options.health;
  // A change is told soon, but a problem whose text changes every second is no flood of records.
  if (!due && (problems == sent_problems || since < kChangedHealth)) return;
  char cost[120];
  const std::chrono::duration<double> elapsed = since;
  const double share =
      elapsed.count() > 0 ? (stats.cpu_seconds - health_cpu_seconds) / elapsed.count() : 0;
  std::snprintf(cost, sizeof cost, "%zu cgroups, %.3f %% of a core, %llu late ticks",
                steps.tracker().alive(), 100 * share,
                static_cast<unsigned long long>(stats.late_ticks));
  data::v1::Record record;
  record.set_observed_time_ms(ToUnixMillis(now));
  record.set_node(options.node);
  auto* compute = record.mutable_compute();
  AddHealth("sampler", steps.cgroup_problem(), cost, compute);
  AddHealth("taskstats", steps.taskstats_problem(), "every process that ends is counted", compute);
  if (!steps.has_taskstats()) compute->mutable_health()->rbegin()->set_status("disabled");
  AddHealth("hooks", events_problem,
            std::to_string(events.accepted()) + " events, " + std::to_string(events.rejected()) +
                " rejected",
            compute);
  AddHealth("spool", spool_problem, std::to_string(spool.bytes()) + " bytes", compute);
  told.assign(compute->health().begin(), compute->health().end());
  Append(record);
  health_sent = mono;
  health_cpu_seconds = stats.cpu_seconds;
  sent_problems = problems;
}

void Sampler::Impl::FlushSpool() {
  if (!appended) return;
  appended = false;
  const Status flushed = spool.Flush();
  spool_problem = flushed.ok() ? "" : flushed.error().message();
  if (!flushed.ok()) ++stats.failed_appends;
}

Sampler::Sampler(SamplerOptions options, const platform::Clock& clock, const platform::Fs& fs,
                 std::unique_ptr<CgroupReader> reader, SpoolWriter& spool)
    : impl_(std::make_unique<Impl>(std::move(options), clock, fs, std::move(reader), spool)) {}

Sampler::~Sampler() = default;

void Sampler::AddSource(std::unique_ptr<SeriesSource> source) {
  impl_->sources.push_back(std::move(source));
}

void Sampler::Tick() {
  Impl& s = *impl_;
  const double cpu_before = ThreadCpuMillis();
  const WallTime now = s.clock.Now();
  const MonoTime mono = s.clock.Mono();
  if (s.last_tick && mono - *s.last_tick > kLateTick) ++s.stats.late_ticks;
  if (!s.batch_started) s.batch_started = mono;

  s.steps.Read(now, mono, &s.batch);
  s.node.Read(now, mono, s.steps.jobs(), &s.batch);
  for (const auto& source : s.sources) source->Read(now, &s.batch);
  // Events before the units that are gone: a task's epilog wants the floor that was sampled.
  const Status collected = s.events.Collect(s.spool);
  s.events_problem = collected.ok() ? "" : collected.error().message();
  if (collected.ok() && s.events.over_cap())
    s.events_problem = "too many event files wait; hooks write none until half are read";
  if (s.events_problem.empty()) s.events_problem = s.events.flood();
  if (s.steps.cgroup_problem().empty()) s.ReportGone(now);
  s.ReportRunning(now);
  s.node.AddOwnCost(now, s.steps.cost(), s.stats.cpu_seconds, s.stats.late_ticks, &s.batch);
  if (mono - *s.batch_started >= s.options.batch - Millis(500)) s.SendBatch(now);
  s.SendHealth(now, mono);
  s.FlushSpool();

  s.last_tick = mono;
  ++s.stats.ticks;
  s.stats.events = s.events.accepted();
  s.stats.rejected_events = s.events.rejected();
  s.stats.tick_cpu_ms = ThreadCpuMillis() - cpu_before;
  s.stats.cpu_seconds += s.stats.tick_cpu_ms / 1e3;
  s.stats.cost = s.steps.cost();
}

void Sampler::Drain() {
  impl_->SendBatch(impl_->clock.Now());
  impl_->FlushSpool();
}

SamplerStats Sampler::stats() const { return impl_->stats; }

const std::vector<data::v1::CollectorHealth>& Sampler::health() const { return impl_->told; }

}  // namespace expanse::collect::host
