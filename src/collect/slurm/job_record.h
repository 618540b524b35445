// SPDX-License-Identifier: Apache-2.0
// One row of a SLURM tool in a form that does not depend on the tool. What the tool did not print
// is absent. Text is bytes as the tool gave them (names may hold anything).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/slurm/slurm_text.h"

namespace expanse::collect::slurm {

enum class Tool { kSqueue, kScontrol, kSacct };

/// "squeue", "scontrol", "sacct".
const char* ToolName(Tool tool);

/// What a MaxRSS of accounting is; it depends on the nodes' version and JobAcctGatherType.
enum class MaxRssKind {
  kUnknown,     // not asked yet, or nodes differ: a floor of the enforced peak, nothing about need
  kSampledRss,  // resident set of the largest task, sampled: a floor
  kCgroupPeak   // peak of the largest task's cgroup, page cache included: the enforced peak
};

struct StepRecord {
  std::string step_id;  // "batch", "extern", "interactive", "0"
  std::string name;
  std::string state;  // "COMPLETED", "OUT_OF_MEMORY"
  std::optional<ExitStatus> exit;
  std::optional<int64_t> start;  // epoch seconds
  std::optional<int64_t> end;
  std::optional<int64_t> tasks;
  std::vector<std::string> nodes;
  /// Of the largest task; see JobRecord::max_rss_kind.
  std::optional<int64_t> max_rss_bytes;
  std::optional<double> cpu_seconds;
  Tres allocated;  // as it was when the step began; a resize does not change it
};

/// A part of a run between two resizes: a row of its own in accounting.
struct SegmentRecord {
  std::string sluid;
  std::optional<int64_t> db_index;
  std::optional<int64_t> submit;  // of a later part: when the size changed
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  Tres allocated;
};

struct JobRecord {
  Tool tool = Tool::kSqueue;
  int64_t job_id = 0;  // raw id
  std::optional<int64_t> array_job_id;
  std::optional<int64_t> array_task_id;  // absent on a pending record that stands for many tasks
  std::string array_task_text;           // "1-4%2" of such a record
  std::optional<int64_t> het_job_id;
  std::optional<int64_t> het_component;
  std::optional<int64_t> db_index;  // row number; 24.11 and newer have a SLUID in its place
  std::string sluid;                // one for each attempt and each part of a resized run
  std::string original_sluid;       // 26.05: kept over a resize, new at a requeue
  std::optional<int64_t> restarts;
  std::optional<int64_t> resized;  // epoch seconds of the last resize
  /// Of a resized run, oldest first; empty when it was not resized. The record is then all of them.
  std::vector<SegmentRecord> segments;

  std::optional<std::string> name;
  std::optional<std::string> user;
  std::optional<int64_t> uid;
  std::optional<std::string> account;
  std::optional<std::string> partition;
  std::optional<std::string> qos;
  std::optional<std::string> cluster;

  std::string state;                       // one word, "CANCELLED"; see OneState
  std::string state_text;                  // as printed, "CANCELLED by 1001", "PENDING,REQUEUED"
  std::optional<bool> cancelled_by_owner;  // who cancelled; only sacct tells
  std::string reason;                      // as printed; empty when none
  std::optional<ExitStatus> exit;
  std::optional<ExitStatus> derived_exit;
  std::optional<int64_t> derived_exit_code;  // the number before the colon, unshifted

  std::optional<int64_t> submit;  // epoch seconds; a requeue sets it anew
  std::optional<int64_t> eligible;
  std::optional<int64_t> start;
  std::optional<int64_t> end;  // of a running job: the expected end (start + limit)
  std::optional<int64_t> time_limit_seconds;
  bool time_limit_unlimited = false;

  std::optional<int64_t> req_cpus;
  std::optional<int64_t> req_nodes;
  std::optional<int64_t> req_tasks;
  std::optional<int64_t> memory_per_node_bytes;
  std::optional<int64_t> memory_per_cpu_bytes;
  /// False: the memory request is the partition's default. Only squeue --json tells.
  std::optional<bool> memory_explicit;
  /// "gres:gpu:a100:2", from any of tres_per_*; empty: none asked for. Only squeue --json tells.
  std::optional<std::string> gres;
  Tres requested;
  Tres allocated;
  std::string node_list;  // as printed; empty before a start

  std::optional<bool> batch;
  std::optional<std::string> command;  // script and its arguments, joined by blanks
  std::optional<std::string> work_dir;
  std::optional<std::string> stdout_path;
  std::optional<std::string> stderr_path;
  bool paths_expanded = false;  // false: the two are patterns ("%x-%j.out")
  std::optional<std::string> submit_line;
  std::optional<double> cpu_seconds;  // TotalCPU of the job row
  std::vector<StepRecord> steps;
  MaxRssKind max_rss_kind = MaxRssKind::kUnknown;
  /// Field name to reason, for what this row could not tell.
  std::map<std::string, std::string> unknown;
};

/// For expanded paths: stderr is stdout's file when it is empty (26.05 prints it so), and a record
/// that stands for many array tasks has no paths (SLURM prints array-7_4294967294.out).
void SettlePaths(JobRecord* job);

/// Rows that were read, and what was wrong with the rest.
struct RecordBatch {
  std::vector<JobRecord> jobs;
  /// Rows or records that could not be read, one line each. Their jobs are in an unknown state,
  /// not ended.
  std::vector<std::string> problems;
};

}  // namespace expanse::collect::slurm
