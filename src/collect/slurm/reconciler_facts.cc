// SPDX-License-Identifier: Apache-2.0
// What a round learned, told to the sink: facts, bundles, log tails, the cluster and health.
#include <algorithm>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/log.h"
#include "base/strings.h"
#include "collect/slurm/reconciler.h"
#include "collect/slurm/state_map.h"
#include "platform/crypto/crypto.h"

namespace expanse::collect::slurm {
namespace {

namespace pb = expanse::common::v1;

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

}  // namespace

namespace {

/// SLUIDs and resizes of a row, and what was asked for before the first of them.
void NoteParts(const JobRecord& job, RunState* run) {
  const auto add = [&](const std::string& sluid) {
    if (!sluid.empty() && !run->Knows(sluid)) run->sluids.push_back(sluid);
  };
  const auto resized = [&](std::optional<int64_t> when) {
    auto& times = run->resize_times;
    // slurmctld may still show the resize of an earlier attempt.
    if (when && *when >= run->attempt_submit &&
        std::find(times.begin(), times.end(), *when) == times.end())
      times.push_back(*when);
  };
  add(job.original_sluid);
  for (const SegmentRecord& part : job.segments) add(part.sluid);
  add(job.sluid);
  for (size_t i = 1; i < job.segments.size(); ++i) resized(job.segments[i].submit);
  if (job.state == "RESIZING") resized(job.end);
  resized(job.resized);
  // What stands in a row that was not resized yet was asked for; pending jobs may still be changed.
  if (run->IsResized() || job.requested.empty) return;
  if (!run->request || !run->start) run->request = job.requested;
}

}  // namespace

void Reconciler::Note(const JobRecord& job, RunState* run) {
  const auto keep = [](const std::optional<std::string>& from, std::string* to) {
    if (from && !from->empty()) *to = *from;
  };
  const bool live_tool = job.tool != Tool::kSacct;
  if (job.uid) run->uid = job.uid;
  // The row index of a resized run is that of its first part.
  if (job.db_index && !(run->IsResized() && run->db_index)) run->db_index = job.db_index;
  NoteParts(job, run);
  if (HasStarted(job) && job.start && !(run->IsResized() && run->start && run->start < job.start))
    run->start = job.start;
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
  if (job.paths_expanded && job.tool != Tool::kSacct && !run->many_tasks) {
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
    ended.sluid.clear();
    ended.original_sluid.clear();
    ended.segments.clear();
    ended.resized.reset();
    EXPANSE_CHECK_OK(SendFacts(ended, earlier, report));
    // Not before it was told: a queue that is full is tried again in the next round.
    earlier->ended = true;
    earlier->ended_seen_ms = NowMs();
    changed_ = true;
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

Status Reconciler::SendFacts(const JobRecord& row, RunState* run, RoundReport* report) {
  JobRecord job = row;
  if (job.tool == Tool::kSacct && job.segments.empty() && run->IsResized() && run->start &&
      job.start && *run->start < *job.start) {  // a later part alone: the run began earlier
    job.submit = run->attempt_submit;
    job.start = run->start;
  }
  RunContext context;
  context.exit = run->exit;
  context.memory_form = run->memory_form;
  if (run->IsResized()) context.original_request = run->request;
  // A settled run has its rows already, unless there is no accounting at all.
  if (!run->settled || sacct_disabled_) context.sacct_unavailable = sacct_unavailable_;
  data::v1::Record record;
  auto* facts = record.mutable_facts();
  *facts = BuildFacts(job, run->id, context);
  if (run->db_index && !facts->key().has_db_index())
    facts->mutable_key()->set_db_index(*run->db_index);
  if (!run->sluids.empty() && facts->key().original_sluid().empty())
    facts->mutable_key()->set_original_sluid(run->sluids.front());
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

Status Reconciler::LookAfterVanished(bool squeue_answered, RoundReport* report) {
  const int64_t now_ms = NowMs();
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
    if (!squeue_answered || run.seen_round == round_) continue;
    ++vanished;
    if (!sacct_disabled_ && run.asked_sacct < 4) continue;
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
  // First what slurmctld still knows and may forget; accounting keeps the scripts of the others.
  for (const bool known : {true, false}) {
    for (auto& [id, run] : table_.runs()) {
      if ((run.seen_round == round_) != known) continue;
      if (run.bundle_sent && (run.logs_sent || !run.ended)) continue;
      if (budget.Expired()) {
        report->work_left = true;
        return {};
      }
      EXPANSE_CHECK_OK(SendEvidenceOf(&run, report));
    }
  }
  return {};
}

Status Reconciler::SendEvidenceOf(RunState* run, RoundReport* report) {
  // The names of --export are part of a bundle's identity; only accounting has the submit line.
  const bool line_may_come =
      run->submit_line.empty() && sacct_unavailable_.empty() && !run->settled &&
      ElapsedMs(run->first_seen_ms) < options_.submit_line_wait_seconds * 1000;
  if (!run->bundle_sent && line_may_come) {
    window_due_ = true;
    return {};
  }
  if (!run->bundle_sent) {
    data::v1::Record record;
    *record.mutable_bundle() = evidence_.Bundle(*run);
    EXPANSE_CHECK_OK(Send(std::move(record)));
    run->bundle_sent = true;
    ++report->bundles;
  }
  if (!run->ended || run->logs_sent) return {};
  if (run->start) {
    for (auto& tail : evidence_.LogTails(*run)) {
      data::v1::Record record;
      *record.mutable_log_tail() = std::move(tail);
      EXPANSE_CHECK_OK(Send(std::move(record)));
      ++report->log_tails;
    }
  }
  run->logs_sent = true;
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
  EXPANSE_CHECK_OK(Send(std::move(record)));
  last_compute_ = now;
  return {};
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
