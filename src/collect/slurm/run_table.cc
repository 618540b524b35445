// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/run_table.h"

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "collect/slurm/state_map.h"

namespace expanse::collect::slurm {
namespace {

/// Longest time between the end of an attempt and the submit time of the next one. SLURM sets the
/// latter when the nodes are given back: KillWait, epilogs, an unresponsive node.
constexpr int64_t kRequeueGap = 900;
/// Two clocks that print whole seconds.
constexpr int64_t kSlack = 2;

/// How long after its end, by the scheduler's clock, a node may still tell of an attempt. The next
/// attempt's first samples come within seconds, so that theirs is short; after the end of the last
/// step processes may take long to die, and an epilog may run for minutes.
constexpr int64_t kSampleSlackMs = 5'000;
constexpr int64_t kTaskEndSlackMs = 120'000;
constexpr int64_t kEpilogSlackMs = 600'000;

int64_t EndSlackMs(data::v1::FactOrigin origin) {
  switch (origin) {
    case data::v1::FACT_ORIGIN_HOOK_EPILOG:
      return kEpilogSlackMs;
    case data::v1::FACT_ORIGIN_HOOK_TASK_EPILOG:
      return kTaskEndSlackMs;
    default:
      return kSampleSlackMs;
  }
}

bool IsRequeueState(const std::string& state) {
  return state == "REQUEUED" || state == "NODE_FAIL" || state == "PREEMPTED" ||
         state == "BOOT_FAIL" || state == "LAUNCH_FAILED" || state == "RECONFIG_FAIL";
}

bool Continues(const RunState& earlier, const JobRecord& job) {
  if (!IsRequeueState(earlier.state)) return false;
  if (earlier.uid && job.uid && *earlier.uid != *job.uid) return false;
  if (earlier.state == "REQUEUED") return true;  // there is always a next attempt
  if (!earlier.end || !job.submit) return false;
  return *job.submit >= *earlier.end - kSlack && *job.submit <= *earlier.end + kRequeueGap;
}

}  // namespace

bool RunState::Knows(std::string_view sluid) const {
  return !sluid.empty() && std::find(sluids.begin(), sluids.end(), sluid) != sluids.end();
}

RunState* RunTable::Find(const RunIdentity& id) {
  const auto it = runs_.find(id);
  return it == runs_.end() ? nullptr : &it->second;
}

std::vector<RunState*> RunTable::OfJob(int64_t job_id) {
  std::vector<RunState*> out;
  for (auto it = runs_.lower_bound({job_id, INT64_MIN, INT32_MIN});
       it != runs_.end() && it->first.job_id == job_id; ++it)
    out.push_back(&it->second);
  return out;
}

RunState* RunTable::FindAttempt(int64_t job_id, int64_t attempt_submit) {
  for (RunState* run : OfJob(job_id))
    if (run->attempt_submit == attempt_submit) return run;
  return nullptr;
}

RunState* RunTable::FindByPart(const JobRecord& job) {
  for (RunState* run : OfJob(job.job_id)) {
    if (run->Knows(job.sluid) || run->Knows(job.original_sluid)) return run;
    if (job.submit && job.segments.empty() &&
        std::find(run->resize_times.begin(), run->resize_times.end(), *job.submit) !=
            run->resize_times.end())
      return run;
  }
  return nullptr;
}

bool RunTable::KnowsChain(const JobRecord& job) {
  if (job.restarts.value_or(0) == 0) return true;
  if (job.submit && FindAttempt(job.job_id, *job.submit) != nullptr) return true;
  const auto attempts = OfJob(job.job_id);
  return !attempts.empty() && attempts.back()->id.restarts + 1 == *job.restarts;
}

RunIdentity RunTable::IdentifyLive(const JobRecord& job) {
  const int64_t submit = job.submit.value_or(0);
  const auto restarts = static_cast<int32_t>(job.restarts.value_or(0));
  const RunState* earlier = nullptr;
  for (const RunState* run : OfJob(job.job_id)) {
    const bool same_user = !run->uid || !job.uid || *run->uid == *job.uid;
    if (same_user && run->attempt_submit <= submit) earlier = run;
  }
  if (restarts > 0) {
    if (earlier != nullptr && earlier->id.restarts < restarts)
      return {job.job_id, earlier->id.submit, restarts};
    return {job.job_id, submit, restarts};
  }
  // The text form of squeue has no count.
  if (!job.restarts && earlier != nullptr && Continues(*earlier, job))
    return {job.job_id, earlier->id.submit, earlier->id.restarts + 1};
  return {job.job_id, submit, 0};
}

RunIdentity RunTable::IdentifyRow(const JobRecord& job) {
  const int64_t submit = job.submit.value_or(0);
  const RunState* earlier = nullptr;
  for (const RunState* run : OfJob(job.job_id))
    if (run->attempt_submit < submit) earlier = run;
  if (earlier != nullptr && Continues(*earlier, job))
    return {job.job_id, earlier->id.submit, earlier->id.restarts + 1};
  return {job.job_id, submit, 0};
}

RunState& RunTable::Resolve(const JobRecord& job, int64_t now_ms, bool* created) {
  *created = false;
  if (RunState* run = FindByPart(job)) return *run;
  if (job.submit)
    if (RunState* run = FindAttempt(job.job_id, *job.submit)) return *run;
  if (job.db_index)
    for (RunState* run : OfJob(job.job_id))
      if (run->db_index == job.db_index) return *run;
  // Accounting counts restarts from 24.11 on.
  const bool counted = job.tool != Tool::kSacct || job.restarts;
  RunIdentity id = counted ? IdentifyLive(job) : IdentifyRow(job);
  auto [it, inserted] = runs_.try_emplace(id);
  // A record of the same first submit and count but another submit time cannot be the same attempt.
  while (!inserted && job.submit && it->second.attempt_submit != *job.submit) {
    ++id.restarts;
    std::tie(it, inserted) = runs_.try_emplace(id);
  }
  RunState& run = it->second;
  if (inserted) {
    run.id = id;
    run.attempt_submit = job.submit.value_or(0);
    run.first_seen_ms = now_ms;
    *created = true;
  }
  return run;
}

void RunTable::Forget(int64_t ended_before_ms, uint64_t round) {
  std::erase_if(runs_, [&](const auto& entry) {
    const RunState& run = entry.second;
    return run.told_round != round && run.settled && run.logs_sent && run.bundle_sent &&
           run.ended_seen_ms < ended_before_ms;
  });
}

void KeyIndex::Replace(const RunTable& table) {
  auto next = std::make_shared<Index>();
  for (const auto& [id, run] : table.runs()) {
    auto& attempts = next->by_job[id.job_id];
    for (const std::string& sluid : run.sluids)
      next->by_sluid[sluid] = {id.job_id, attempts.size()};
    std::optional<int64_t> end;
    if (run.ended) end = run.end.value_or(run.ended_seen_ms / 1000);
    attempts.push_back({id, run.start, end, run.db_index, run.sluids});
  }
  const std::lock_guard lock(mutex_);
  index_ = std::move(next);
}

/// Of several attempts that may have ended by then: an epilog is that of the end next to it. One
/// that lives may have ended without being seen yet; then only an end at that very time decides.
const KeyIndex::Attempt* KeyIndex::FindEnded(const std::vector<const Attempt*>& attempts,
                                             int64_t when) {
  const Attempt* nearest = nullptr;
  const Attempt* alive = nullptr;
  const auto distance = [&](const Attempt& a) { return std::abs(when - *a.end * 1000); };
  for (const Attempt* attempt : attempts) {
    if (!attempt->end)
      alive = attempt;
    else if (nearest == nullptr || distance(*attempt) <= distance(*nearest))
      nearest = attempt;
  }
  if (nearest == nullptr || alive == nullptr) return nearest == nullptr ? alive : nearest;
  return distance(*nearest) <= kSampleSlackMs ? nearest : nullptr;
}

const KeyIndex::Attempt* KeyIndex::Find(const std::vector<Attempt>& attempts,
                                        const common::v1::RunKey& key, int64_t observed_ms,
                                        data::v1::FactOrigin origin) {
  const int64_t when = key.has_start_time_ms() ? key.start_time_ms() : observed_ms;
  const int64_t slack = key.has_start_time_ms() ? kSlack * 1000 : EndSlackMs(origin);
  std::vector<const Attempt*> possible;  // by start
  for (const auto& attempt : attempts) {
    if (!attempt.start || (*attempt.start - kSlack) * 1000 > when) continue;
    if (attempt.end && *attempt.end * 1000 + slack < when) continue;
    if (key.has_restart_count() && key.restart_count() != attempt.id.restarts) continue;
    possible.push_back(&attempt);
  }
  if (possible.empty()) return nullptr;
  if (origin == data::v1::FACT_ORIGIN_HOOK_EPILOG && !key.has_start_time_ms())
    return FindEnded(possible, when);
  return *std::max_element(possible.begin(), possible.end(),
                           [](const auto* a, const auto* b) { return *a->start < *b->start; });
}

bool KeyIndex::Complete(common::v1::RunKey* key, int64_t observed_ms,
                        data::v1::FactOrigin origin) const {
  std::shared_ptr<const Index> index;
  {
    const std::lock_guard lock(mutex_);
    index = index_;
  }
  if (!index) return false;
  const Attempt* best = nullptr;
  const std::string& sluid = key->sluid().empty() ? key->original_sluid() : key->sluid();
  if (const auto it = index->by_sluid.find(sluid); it != index->by_sluid.end())
    best = &index->by_job.at(it->second.first)[it->second.second];
  const auto job_id = ParseInt64(key->native_id());
  const auto it = job_id ? index->by_job.find(*job_id) : index->by_job.end();
  if (best == nullptr && it != index->by_job.end())
    best = Find(it->second, *key, observed_ms, origin);
  if (best == nullptr) return false;
  key->set_native_id(std::to_string(best->id.job_id));
  key->set_submit_time_ms(best->id.submit * 1000);
  key->set_restart_count(best->id.restarts);
  if (best->db_index) key->set_db_index(*best->db_index);
  if (!best->sluids.empty()) key->set_original_sluid(best->sluids.front());
  if (best->start && !key->has_start_time_ms()) key->set_start_time_ms(*best->start * 1000);
  return true;
}

size_t KeyIndex::size() const {
  const std::lock_guard lock(mutex_);
  return index_ ? index_->by_job.size() : 0;
}

}  // namespace expanse::collect::slurm
