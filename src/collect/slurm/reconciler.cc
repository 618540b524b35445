// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/reconciler.h"

#include <algorithm>
#include <set>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/log.h"
#include "base/strings.h"
#include "collect/slurm/state_map.h"
#include "platform/crypto/crypto.h"

namespace expanse::collect::slurm {
namespace {

namespace pb = expanse::common::v1;

/// Most ids in one sacct call, so that its command line stays short.
constexpr size_t kMostIds = 500;

/// Same message, same text: map entries are sorted.
std::string Fingerprint(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return platform::Sha256Hex(bytes).substr(0, 24);
}

/// Seconds to wait before accounting is asked again for one run.
int64_t Backoff(int32_t asked) { return std::min<int64_t>(600, int64_t{5} << std::min(asked, 7)); }

}  // namespace

struct Reconciler::Answers {
  Result<RecordBatch> squeue = RecordBatch{};
  std::optional<RecordBatch> scontrol;
  std::vector<JobRecord> sacct;
  bool sacct_answered = false;
};

Reconciler::Reconciler(ReconcilerOptions options, SlurmTools& tools, const platform::Clock& clock,
                       const platform::Fs& fs, KeyIndex& index, Sink sink)
    : options_(std::move(options)),
      tools_(tools),
      clock_(clock),
      fs_(fs),
      index_(index),
      sink_(std::move(sink)),
      evidence_(tools, fs) {}

Status Reconciler::Start() {
  const Status loaded = table_.Load(fs_, options_.state_file);
  if (!loaded.ok()) {
    log::Error("reconciler.state_unreadable",
               {{"reason", loaded.error().message()}, {"kept_as", options_.state_file + ".bad"}});
    EXPANSE_CHECK_OK(fs_.Rename(options_.state_file, options_.state_file + ".bad"));
    table_ = RunTable();
  }
  index_.Replace(table_);
  return {};
}

SacctQuery Reconciler::NextWindow(int64_t now, bool* due) {
  SacctQuery query;
  const bool sweep = now - last_sweep_ >= options_.sweep_every_seconds || now < last_sweep_;
  const bool idle_due = now - last_window_ >= options_.idle_window_seconds || now < last_window_;
  *due = window_due_ || sweep || idle_due;
  const int64_t overlap = sweep ? options_.sweep_overlap_seconds : options_.window_overlap_seconds;
  // A clock that was set back leaves the cursor in the future.
  const int64_t cursor = table_.sacct_cursor == 0 ? now - options_.backfill_seconds
                                                  : std::min(table_.sacct_cursor, now);
  query.from = std::max<int64_t>(0, cursor - overlap);
  query.to = std::min(now + 1, query.from + overlap + options_.window_chunk_seconds);
  if (*due && sweep) last_sweep_ = now;
  return query;
}

void Reconciler::AskByIds(int64_t now, Answers* answers) {
  std::set<int64_t> ids;
  SacctQuery query;
  query.from = now;
  const int64_t now_ms = now * 1000;
  const auto want = [&](int64_t id, int64_t submit) {
    if (ids.size() >= kMostIds) return;
    ids.insert(id);
    query.from = std::min(query.from, submit);
  };
  if (answers->squeue.ok())
    for (const auto& job : answers->squeue->jobs)
      if (!table_.KnowsChain(job)) want(job.job_id, now - options_.backfill_seconds);
  for (auto& [id, run] : table_.runs()) {
    if (run.settled) continue;
    const bool vanished =
        !run.ended && answers->squeue.ok() && run.seen_live && run.seen_round != round_;
    const bool too_early = run.ask_sacct_ms > now_ms && run.ask_sacct_ms < now_ms + 3'600'000;
    if ((!run.ended && !vanished) || too_early) continue;
    want(id.job_id, std::min(id.submit, run.attempt_submit));
    ++run.asked_sacct;
    run.ask_sacct_ms = now_ms + Backoff(run.asked_sacct) * 1000;
  }
  if (ids.empty()) return;
  query.from = std::max<int64_t>(0, query.from - 60);
  query.job_ids.assign(ids.begin(), ids.end());
  auto batch = tools_.Sacct(query);
  if (!batch.ok()) return;
  answers->sacct_answered = true;
  for (auto& job : batch->jobs) answers->sacct.push_back(std::move(job));
}

void Reconciler::AskWindows(int64_t now, Answers* answers) {
  const Deadline budget = Deadline::In(options_.window_budget);
  bool due = false;
  SacctQuery window = NextWindow(now, &due);
  // A long absence is read in chunks, several in one round while they come quickly.
  while (due) {
    auto batch = tools_.Sacct(window);
    sacct_unavailable_ = batch.ok() ? "" : batch.error().message();
    if (!batch.ok()) return;
    answers->sacct_answered = true;
    last_window_ = now;
    window_due_ = window.to <= now;
    changed_ = changed_ || table_.sacct_cursor != window.to;
    table_.sacct_cursor = window.to;
    for (auto& job : batch->jobs) answers->sacct.push_back(std::move(job));
    for (const auto& problem : batch->problems)
      log::Warning("reconciler.row_skipped", {{"problem", problem}});
    if (!window_due_ || budget.Expired()) return;
    window = NextWindow(now, &due);
  }
}

void Reconciler::Ask(int64_t now, Answers* answers) {
  answers->squeue = tools_.Squeue();
  bool changed = false;
  if (answers->squeue.ok()) {
    for (const auto& job : answers->squeue->jobs) {
      RunState* run = job.submit ? table_.FindAttempt(job.job_id, *job.submit) : nullptr;
      changed = changed || run == nullptr || run->state != job.state ||
                (HasStarted(job) && run->start != job.start);
      if (run != nullptr) run->seen_round = round_;  // before vanished runs are looked for
    }
    scontrol_due_ = scontrol_due_ || changed;
    if (scontrol_due_) {
      auto scontrol = tools_.ScontrolJobs(*answers->squeue);
      if (scontrol.ok()) {
        answers->scontrol = std::move(*scontrol);
        scontrol_due_ = false;
      }
    }
  }
  window_due_ = window_due_ || changed;
  AskWindows(now, answers);
  if (sacct_unavailable_.empty()) AskByIds(now, answers);
}

Result<RoundReport> Reconciler::Round() {
  RoundReport report;
  changed_ = false;
  ++round_;
  Answers answers;
  Ask(NowMs() / 1000, &answers);
  // Accounting first: it shows the attempts that went before the live one.
  std::stable_sort(answers.sacct.begin(), answers.sacct.end(), [](const auto& a, const auto& b) {
    return std::pair(a.job_id, a.submit.value_or(0)) < std::pair(b.job_id, b.submit.value_or(0));
  });
  // Everything is learned before anything is sent: each row's facts are completed by the others'
  // (squeue's exact exit codes, sacct's row ids).
  std::vector<std::pair<const JobRecord*, RunState*>> told;
  const auto learn = [&](const std::vector<JobRecord>& jobs) {
    for (const auto& job : jobs)
      if (RunState* run = Learn(job, &report)) told.emplace_back(&job, run);
  };
  learn(answers.sacct);
  if (answers.squeue.ok()) learn(answers.squeue->jobs);
  if (answers.scontrol) {
    for (const auto& problem : answers.scontrol->problems)
      log::Debug("reconciler.record_skipped", {{"problem", problem}});
    learn(answers.scontrol->jobs);
  }
  for (const auto& [job, run] : told) EXPANSE_CHECK_OK(Tell(*job, run, &report));
  EXPANSE_CHECK_OK(LookAfterVanished(answers, &report));
  EXPANSE_CHECK_OK(SendEvidence(&report));
  EXPANSE_CHECK_OK(SendComputeFacts());
  const int64_t now_ms = NowMs();
  table_.Forget(now_ms - options_.keep_seconds * 1000, round_);
  for (const auto& [id, run] : table_.runs()) {
    if (!run.ended)
      ++report.live;
    else if (!run.settled)
      ++report.unsettled;
  }
  report.work_left = report.work_left || window_due_ || report.unsettled > 0;
  index_.Replace(table_);
  if (changed_) EXPANSE_CHECK_OK(table_.Save(fs_, options_.state_file));
  return report;
}

void Reconciler::Note(const JobRecord& job, RunState* run) {
  const auto keep = [](const std::optional<std::string>& from, std::string* to) {
    if (from && !from->empty()) *to = *from;
  };
  const bool live_tool = job.tool != Tool::kSacct;
  if (job.uid) run->uid = job.uid;
  if (job.db_index) run->db_index = job.db_index;
  if (HasStarted(job) && job.start) run->start = job.start;
  if (IsEnded(job) && job.end) run->end = job.end;
  // The controller forgets a running job's end only by ending it; accounting may lag behind.
  if (live_tool || !run->ended || IsEnded(job)) run->state = job.state;
  if (live_tool && IsEnded(job) && job.exit) run->exit = job.exit;
  if (job.memory_explicit) {
    if (!*job.memory_explicit)
      run->memory_form = "default";
    else
      run->memory_form = job.memory_per_cpu_bytes ? "mem-per-cpu" : "mem";
  }
  keep(job.user, &run->user);
  keep(job.command, &run->command);
  keep(job.work_dir, &run->work_dir);
  keep(job.submit_line, &run->submit_line);
  if (!job.node_list.empty()) run->node_list = job.node_list;
  if (job.batch) run->batch = job.batch;
  if (live_tool || run->name.empty()) keep(job.name, &run->name);
  run->array_job_id = job.array_job_id;
  run->array_task_id = job.array_task_id;
  run->many_tasks = job.array_job_id && !job.array_task_id;
  if (job.tool == Tool::kScontrol && !run->many_tasks) {
    keep(job.stdout_path, &run->stdout_path);
    keep(job.stderr_path, &run->stderr_path);
  }
  if (IsEnded(job) && !run->ended) {
    run->ended = true;
    run->ended_seen_ms = NowMs();
    changed_ = true;
  }
}

Status Reconciler::EndEarlierAttempts(const JobRecord& job, const RunState& run,
                                      RoundReport* report) {
  if (job.tool == Tool::kSacct || run.id.restarts == 0) return {};
  for (RunState* earlier : table_.OfJob(run.id.job_id)) {
    if (earlier->id.submit != run.id.submit || earlier->id.restarts >= run.id.restarts) continue;
    if (job.reason.starts_with("launch_failed") && earlier->requeue_cause.empty())
      earlier->requeue_cause = "launch";
    if (earlier->ended) continue;
    // Until accounting says how it ended (node failure, preemption): it was put back.
    earlier->ended = true;
    earlier->ended_seen_ms = NowMs();
    changed_ = true;
    JobRecord ended = job;
    ended.tool = Tool::kSqueue;
    ended.restarts = earlier->id.restarts;
    ended.state = "REQUEUED";
    ended.reason.clear();
    ended.submit = earlier->attempt_submit;
    ended.start = earlier->start;
    ended.end = run.attempt_submit;
    ended.node_list = earlier->node_list;
    ended.exit.reset();
    ended.derived_exit.reset();
    ended.derived_exit_code.reset();
    ended.db_index = earlier->db_index;
    EXPANSE_CHECK_OK(SendFacts(ended, earlier, report));
  }
  return {};
}

RunState* Reconciler::Learn(const JobRecord& job, RoundReport* report) {
  if (!job.submit) return nullptr;  // nothing can tell which run it is
  bool created = false;
  RunState& run = table_.Resolve(job, NowMs(), &created);
  if (created) {
    ++report->new_runs;
    changed_ = true;
  }
  run.told_round = round_;
  if (job.tool != Tool::kSacct) {
    run.seen_live = true;
    run.seen_round = round_;
  }
  Note(job, &run);
  return &run;
}

Status Reconciler::Tell(const JobRecord& job, RunState* run, RoundReport* report) {
  EXPANSE_CHECK_OK(EndEarlierAttempts(job, *run, report));
  EXPANSE_CHECK_OK(SendFacts(job, run, report));
  if (job.tool == Tool::kSacct && IsEnded(job) && !run->settled) {
    run->settled = true;
    changed_ = true;
  }
  return {};
}

Status Reconciler::SendFacts(const JobRecord& job, RunState* run, RoundReport* report) {
  RunContext context;
  context.exit = run->exit;
  context.memory_form = run->memory_form;
  context.sacct_unavailable = sacct_unavailable_;
  data::v1::Record record;
  auto* facts = record.mutable_facts();
  *facts = BuildFacts(job, run->id, context);
  if (run->db_index && !facts->key().has_db_index())
    facts->mutable_key()->set_db_index(*run->db_index);
  if (job.state == "REQUEUED" && run->requeue_cause == "launch")
    facts->mutable_execution()->set_ending_cause(pb::ENDING_CAUSE_LAUNCH_FAILURE);
  if (job.tool == Tool::kSacct && !IsEnded(job) && run->seen_live) {
    // Accounting lags behind the controller and outweighs it: its word counts from the end on.
    facts->mutable_execution()->clear_status();
    facts->mutable_execution()->clear_scheduler_state();
  }
  const std::string print = Fingerprint(*facts);
  std::string& sent = run->sent[ToolName(job.tool)];
  if (sent == print) return {};
  record.set_observed_time_ms(NowMs());
  EXPANSE_CHECK_OK(sink_(record));
  sent = print;
  changed_ = true;
  ++report->facts;
  return {};
}

Status Reconciler::SendNotSeen(RunState* run, RoundReport* report) {
  JobRecord job;
  // What was sent last says that it runs: this stands in its place until the tool tells more.
  job.tool = run->sent.contains("sacct")      ? Tool::kSacct
             : run->sent.contains("scontrol") ? Tool::kScontrol
                                              : Tool::kSqueue;
  run->sent.erase(ToolName(job.tool));
  job.job_id = run->id.job_id;
  job.submit = run->attempt_submit;
  job.start = run->start;
  job.node_list = run->node_list;
  job.state = run->state;
  job.array_job_id = run->array_job_id;
  job.array_task_id = run->array_task_id;
  RunContext context;
  context.memory_form = run->memory_form;
  data::v1::Record record;
  *record.mutable_facts() = BuildFacts(job, run->id, context);
  auto* execution = record.mutable_facts()->mutable_execution();
  const std::string why = "slurmctld forgot the job before its end was seen" +
                          (sacct_unavailable_.empty() ? std::string(", and sacct has no row of it")
                                                      : "; " + sacct_unavailable_);
  execution->clear_requested();
  execution->set_status(pb::EXECUTION_STATUS_UNKNOWN);
  execution->set_outcome(pb::EXECUTION_OUTCOME_UNKNOWN);
  execution->set_ending_cause(pb::ENDING_CAUSE_NOT_SEEN);
  for (const char* field : {"end_time_ms", "exit_code", "runtime_seconds", "steps"})
    (*execution->mutable_unknown())[field] = ToUtf8(why);
  record.set_observed_time_ms(NowMs());
  EXPANSE_CHECK_OK(sink_(record));
  ++report->facts;
  run->ended = run->settled = true;
  run->ended_seen_ms = NowMs();
  changed_ = true;
  return {};
}

Status Reconciler::LookAfterVanished(const Answers& answers, RoundReport* report) {
  const int64_t now_ms = NowMs();
  const bool disabled = tools_.health()["sacct"].status == "disabled";
  int vanished = 0;
  for (auto& [id, run] : table_.runs()) {
    if (run.settled) continue;
    if (run.ended) {
      // Without accounting the controller's word is the last one.
      const bool waited = now_ms - run.ended_seen_ms > options_.give_up_seconds * 1000;
      const bool no_accounting =
          !sacct_unavailable_.empty() && tools_.health()["sacct"].status == "disabled";
      if (waited || no_accounting) {
        run.settled = true;
        changed_ = true;
      }
      continue;
    }
    if (!answers.squeue.ok() || run.seen_round == round_) continue;
    ++vanished;
    if (!disabled && run.asked_sacct < 4) continue;
    if (vanished > 20) continue;  // one call each
    const auto forgotten = tools_.IsForgotten(id.job_id);
    if (forgotten.ok() && *forgotten) EXPANSE_CHECK_OK(SendNotSeen(&run, report));
  }
  const std::lock_guard lock(health_mutex_);
  queue_health_.set_part("reconciler");
  const std::string status = vanished > 0 ? "degraded" : "ok";
  if (queue_health_.status() != status) queue_health_.set_since_ms(now_ms);
  queue_health_.set_status(status);
  queue_health_.set_reason(
      vanished == 0 ? ""
                    : std::to_string(vanished) +
                          " jobs are gone from squeue and accounting does not show their end yet");
  return {};
}

Status Reconciler::SendEvidence(RoundReport* report) {
  const Deadline budget = Deadline::In(options_.evidence_budget);
  for (auto& [id, run] : table_.runs()) {
    if (run.bundle_sent && (run.logs_sent || !run.ended)) continue;
    if (budget.Expired()) {
      report->work_left = true;
      return {};
    }
    // The names of --export are part of a bundle's identity; only accounting has the submit line.
    const bool line_may_come =
        run.submit_line.empty() && sacct_unavailable_.empty() && !run.settled &&
        ElapsedMs(run.first_seen_ms) < options_.submit_line_wait_seconds * 1000;
    if (!run.bundle_sent && line_may_come) {
      window_due_ = true;
      continue;
    }
    if (!run.bundle_sent) {
      data::v1::Record record;
      *record.mutable_bundle() = evidence_.Bundle(run);
      EXPANSE_CHECK_OK(Send(std::move(record)));
      run.bundle_sent = true;
      ++report->bundles;
    }
    if (run.ended && !run.logs_sent) {
      if (run.start) {
        for (auto& tail : evidence_.LogTails(run)) {
          data::v1::Record record;
          *record.mutable_log_tail() = std::move(tail);
          EXPANSE_CHECK_OK(Send(std::move(record)));
          ++report->log_tails;
        }
      }
      run.logs_sent = true;
    }
  }
  return {};
}

Status Reconciler::SendComputeFacts() {
  const int64_t now = NowMs() / 1000;
  if (now - last_compute_ < options_.compute_facts_seconds && now >= last_compute_) return {};
  auto facts = tools_.Cluster();
  if (!facts.ok()) {
    log::Warning("reconciler.cluster_unread", {{"reason", facts.error().message()}});
    return {};
  }
  last_compute_ = now;
  ClusterSize size;
  size.nodes = facts->nodes_size();
  size.gpus = 0;
  for (const auto& node : facts->nodes()) {
    if (!node.has_gpus()) size.gpus.reset();
    if (size.gpus) *size.gpus += node.gpus();
  }
  {
    const std::lock_guard lock(health_mutex_);
    cluster_size_ = size;
  }
  data::v1::Record record;
  *record.mutable_compute() = std::move(*facts);
  for (auto& health : this->health()) *record.mutable_compute()->add_health() = std::move(health);
  return Send(std::move(record));
}

Status Reconciler::Send(data::v1::Record record) {
  record.set_observed_time_ms(NowMs());
  changed_ = true;
  return sink_(record);
}

std::optional<Reconciler::ClusterSize> Reconciler::cluster_size() const {
  const std::lock_guard lock(health_mutex_);
  return cluster_size_;
}

int64_t Reconciler::ElapsedMs(int64_t since_ms) const {
  const int64_t elapsed = NowMs() - since_ms;
  return elapsed < 0 ? INT64_MAX : elapsed;
}

std::vector<data::v1::CollectorHealth> Reconciler::health() const {
  std::vector<data::v1::CollectorHealth> out;
  for (const auto& [tool, state] : tools_.health()) {
    auto& health = out.emplace_back();
    health.set_part(tool);
    health.set_status(state.status);
    health.set_reason(ToUtf8(state.reason));
    health.set_since_ms(state.since_ms);
  }
  const std::lock_guard lock(health_mutex_);
  if (!queue_health_.part().empty()) out.push_back(queue_health_);
  return out;
}

}  // namespace expanse::collect::slurm
