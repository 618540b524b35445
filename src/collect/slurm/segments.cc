// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/segments.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/strings.h"
#include "collect/slurm/submit_line.h"

namespace expanse::collect::slurm {
namespace {

constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

SegmentRecord SegmentOf(const JobRecord& row) {
  // The row of a later part has the run's start in 22.05, and its own in 26.05.
  const std::optional<int64_t> start = row.start ? std::max(row.start, row.submit) : row.start;
  return {row.sluid, row.db_index, row.submit, start, row.end, row.allocated};
}

bool Follows(const JobRecord& earlier, const JobRecord& later) {
  if (earlier.state != "RESIZING") return false;
  if (!later.original_sluid.empty() && !earlier.original_sluid.empty())
    return later.original_sluid == earlier.original_sluid && later.sluid != earlier.sluid;
  return earlier.end && later.submit == earlier.end;
}

/// Nodes of both, each once, in order: a run was on every node that it ever had.
std::string JoinNodes(const std::string& first, const std::string& second) {
  const auto a = ExpandHostList(first), b = ExpandHostList(second);
  if (!a || !b) return first.empty() ? second : first;
  if (std::all_of(b->begin(), b->end(), [&](const std::string& node) {
        return std::find(a->begin(), a->end(), node) != a->end();
      }))
    return first;
  std::string out = first;
  for (const std::string& node : *b)
    if (std::find(a->begin(), a->end(), node) == a->end()) out += (out.empty() ? "" : ",") + node;
  return out;
}

void Append(const JobRecord& later, JobRecord* run) {
  if (run->segments.empty()) run->segments.push_back(SegmentOf(*run));
  run->segments.push_back(SegmentOf(later));
  JobRecord out = later;
  out.segments = std::move(run->segments);
  out.db_index = run->db_index;
  out.original_sluid = run->original_sluid.empty() ? run->sluid : run->original_sluid;
  out.submit = run->submit;
  out.eligible = run->eligible;
  out.start = run->start;
  out.resized = later.submit;
  out.node_list = JoinNodes(run->node_list, later.node_list);
  if (!out.submit_line) out.submit_line = run->submit_line;
  if (run->cpu_seconds) out.cpu_seconds = out.cpu_seconds.value_or(0) + *run->cpu_seconds;
  std::vector<StepRecord> steps = std::move(run->steps);
  for (const StepRecord& step : later.steps) {
    const auto same = std::find_if(steps.begin(), steps.end(), [&](const StepRecord& known) {
      return known.step_id == step.step_id;
    });
    if (same == steps.end())
      steps.push_back(step);
    else if (step.end)
      *same = step;
  }
  out.steps = std::move(steps);
  *run = std::move(out);
}

}  // namespace

std::string SluidOfIndex(uint64_t index) {
  std::string out = "s0000000000000";
  for (size_t at = out.size() - 1; at > 0; --at, index >>= 5) out[at] = kCrockford[index & 31];
  return out;
}

std::optional<uint64_t> IndexOfSluid(std::string_view sluid) {
  if (sluid.size() != 14 || sluid[0] != 's') return std::nullopt;
  uint64_t value = 0;
  for (const char c : sluid.substr(1)) {
    const size_t digit = kCrockford.find(c);
    if (digit == std::string_view::npos || value > (UINT64_MAX >> 5)) return std::nullopt;
    value = value << 5 | digit;
  }
  if (value == 0) return std::nullopt;
  return value;
}

std::optional<int64_t> SluidTimeMs(std::string_view sluid) {
  const auto index = IndexOfSluid(sluid);
  if (!index) return std::nullopt;
  return static_cast<int64_t>((*index >> 10) & ((uint64_t{1} << 41) - 1));
}

void ReadDbIndex(std::string_view text, JobRecord* job) {
  uint64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index == 0) return;
  if (index < kLargestRowNumber)
    job->db_index = static_cast<int64_t>(index);
  else if (job->sluid.empty())
    job->sluid = SluidOfIndex(index);
}

bool IsLaterPartAlone(const JobRecord& job) {
  return job.segments.empty() && !job.original_sluid.empty() && !job.sluid.empty() &&
         job.original_sluid != job.sluid;
}

Tres OriginalRequest(const JobRecord& job) {
  Tres out;
  // The extern step is made when the job starts and spans its whole allocation; without one the
  // batch step tells of the first node only.
  for (const StepRecord& step : job.steps) {
    if (step.step_id == "extern" && !step.allocated.empty) out = step.allocated;
  }
  if (out.empty) {
    for (const StepRecord& step : job.steps)
      if (step.step_id == "batch" && step.allocated.nodes == 1 && job.segments.size() > 1 &&
          job.segments.front().allocated.nodes == 1)
        out = step.allocated;
  }
  if (!job.submit_line) return out;
  const SubmitRequest asked = ReadSubmitRequest(*job.submit_line);
  if (!out.nodes) out.nodes = asked.nodes;
  if (!out.nodes && !job.segments.empty()) out.nodes = job.segments.front().allocated.nodes;
  if (asked.memory_per_node && out.nodes)
    out.memory_bytes = *asked.memory_per_node * *out.nodes;
  else if (asked.memory_per_cpu && out.cpus)
    out.memory_bytes = *asked.memory_per_cpu * *out.cpus;
  return out;
}

void ShowOriginalRequest(JobRecord* run) {
  const Tres original = OriginalRequest(*run);
  const std::string why = "the run was resized: only the request after that is shown";
  const auto settle = [&](std::optional<int64_t> first, std::optional<int64_t>* shown,
                          const char* field) {
    if (!first && *shown) run->unknown[std::string("requested.") + field] = why;
    *shown = first;
  };
  settle(original.cpus, &run->requested.cpus, "cpu_cores");
  settle(original.memory_bytes, &run->requested.memory_bytes, "memory_bytes");
  settle(original.nodes, &run->requested.nodes, "nodes");
  run->req_cpus = original.cpus;
  run->req_nodes = original.nodes;
}

void MergeSegments(RecordBatch* batch) {
  auto& jobs = batch->jobs;
  if (std::none_of(jobs.begin(), jobs.end(),
                   [](const JobRecord& job) { return job.state == "RESIZING"; }))
    return;
  std::map<int64_t, std::vector<size_t>> by_id;
  for (size_t i = 0; i < jobs.size(); ++i) by_id[jobs[i].job_id].push_back(i);
  std::vector<bool> taken(jobs.size(), false);
  for (auto& [id, rows] : by_id) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      return jobs[a].submit.value_or(0) < jobs[b].submit.value_or(0);
    });
    size_t first = rows.front();
    for (size_t i = 1; i < rows.size(); ++i) {
      if (Follows(jobs[first], jobs[rows[i]])) {
        Append(jobs[rows[i]], &jobs[first]);
        taken[rows[i]] = true;
      } else {
        first = rows[i];
      }
    }
  }
  std::vector<JobRecord> out;
  out.reserve(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (taken[i]) continue;
    // A part that a later one has to follow: its request is the new one already.
    if (jobs[i].state == "RESIZING" && jobs[i].segments.empty())
      jobs[i].segments.push_back(SegmentOf(jobs[i]));
    if (!jobs[i].segments.empty()) ShowOriginalRequest(&jobs[i]);
    out.push_back(std::move(jobs[i]));
  }
  jobs = std::move(out);
}

}  // namespace expanse::collect::slurm
