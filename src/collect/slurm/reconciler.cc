// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/reconciler.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "collect/slurm/segments.h"
#include "collect/slurm/state_map.h"

namespace expanse::collect::slurm {
namespace {

/// Most ids in one sacct call, so that its command line stays short.
constexpr size_t kMostIds = 500;

/// Seconds to wait before accounting is asked again for one run.
int64_t Backoff(int32_t asked) { return std::min<int64_t>(600, int64_t{5} << std::min(asked, 7)); }

}  // namespace

struct Reconciler::Answers {
  Result<RecordBatch> squeue = RecordBatch{};
  std::optional<RecordBatch> scontrol;
  std::vector<JobRecord> sacct;
  /// Later parts of resized runs whose first part the window did not show.
  std::vector<JobRecord> parts;
  bool sacct_answered = false;

  void Take(RecordBatch* batch, RunTable* table);
  void GiveBackParts();
};

void Reconciler::Answers::Take(RecordBatch* batch, RunTable* table) {
  // Without SLUIDs only the controller tells when a job was resized.
  std::set<std::pair<int64_t, int64_t>> resizes;
  if (squeue.ok())
    for (const JobRecord& live : squeue->jobs)
      if (live.resized) resizes.emplace(live.job_id, *live.resized);
  const auto is_later_part = [&](const JobRecord& job) {
    if (!job.segments.empty() || !job.submit) return false;
    if (IsLaterPartAlone(job)) return true;
    const RunState* run = table->FindByPart(job);
    if (run != nullptr && run->IsResized()) return job.submit != run->attempt_submit;
    return resizes.contains({job.job_id, *job.submit});
  };
  for (auto& job : batch->jobs) (is_later_part(job) ? parts : sacct).push_back(std::move(job));
}

/// Parts that asking by id did not complete stand for themselves.
void Reconciler::Answers::GiveBackParts() {
  for (auto& part : parts) {
    const bool whole = std::any_of(sacct.begin(), sacct.end(), [&](const JobRecord& job) {
      if (job.job_id != part.job_id) return false;
      return std::any_of(job.segments.begin(), job.segments.end(), [&](const SegmentRecord& s) {
        return part.sluid.empty() ? s.submit == part.submit : s.sluid == part.sluid;
      });
    });
    if (!whole) sacct.push_back(std::move(part));
  }
  parts.clear();
}

Reconciler::Reconciler(ReconcilerOptions options, SlurmTools& tools, const platform::Clock& clock,
                       const platform::Fs& fs, KeyIndex& index, Sink sink, Sync sync)
    : options_(std::move(options)),
      tools_(tools),
      clock_(clock),
      fs_(fs),
      index_(index),
      sink_(std::move(sink)),
      sync_(std::move(sync)),
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

Status Reconciler::Save() {
  if (!changed_) return {};
  if (sync_ != nullptr) {
    const Status synced = sync_();
    if (!synced.ok()) {
      // What was told since the last save may be lost: it is told again.
      if (const Status loaded = table_.Load(fs_, options_.state_file); !loaded.ok())
        table_ = RunTable();
      return synced;
    }
  }
  return table_.Save(fs_, options_.state_file);
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
  for (const auto& part : answers->parts) {
    const RunState* run = table_.FindByPart(part);
    want(part.job_id, run != nullptr ? run->attempt_submit : now - options_.backfill_seconds);
  }
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
  answers->Take(&*batch, &table_);
}

void Reconciler::AskWindows(int64_t now, Answers* answers) {
  const Deadline budget = Deadline::In(options_.window_budget);
  bool due = false;
  SacctQuery window = NextWindow(now, &due);
  // A long absence is read in chunks, several in one round while they come quickly.
  while (due) {
    auto batch = tools_.Sacct(window);
    sacct_unavailable_ = batch.ok() ? "" : batch.error().message();
    sacct_disabled_ = !batch.ok() && batch.error().code() == Code::kFailedPrecondition;
    if (!batch.ok()) return;
    answers->sacct_answered = true;
    last_window_ = now;
    window_due_ = window.to <= now;
    changed_ = changed_ || table_.sacct_cursor != window.to;
    table_.sacct_cursor = window.to;
    answers->Take(&*batch, &table_);
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
  answers->GiveBackParts();
}

Result<RoundReport> Reconciler::Round() {
  RoundReport report;
  changed_ = false;
  ++round_;
  // What a round learned and could not tell is asked for again.
  scontrol_due_ = scontrol_due_ || round_failed_;
  window_due_ = window_due_ || round_failed_;
  round_failed_ = true;  // until its end
  Answers answers;
  const MonoTime begun = clock_.Mono();
  Ask(NowMs() / 1000, &answers);
  // A controller that does not answer costs nobody anything: it is asked again at the usual time.
  if (answers.squeue.ok())
    report.polling = std::chrono::duration_cast<Millis>(clock_.Mono() - begun);
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
  EXPANSE_CHECK_OK(LookAfterVanished(answers.squeue.ok(), &report));
  // Scripts and logs take their time: what was sent so far is not to be sent again after a kill.
  EXPANSE_CHECK_OK(Save());
  index_.Replace(table_);
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
  EXPANSE_CHECK_OK(Save());
  round_failed_ = false;
  return report;
}

}  // namespace expanse::collect::slurm
