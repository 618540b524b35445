// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/sacct_reader.h"

#include <array>
#include <ctime>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"
#include "collect/slurm/marked_text.h"
#include "collect/slurm/segments.h"

namespace expanse::collect::slurm {
namespace {

/// Columns that are read. What a user can choose stands last, the name very last.
enum Column : size_t {
  kRawId,
  kId,
  kDbIndex,
  kSluid,
  kOriginalSluid,
  kRestarts,
  kState,
  kExit,
  kDerivedExit,
  kSubmit,
  kEligible,
  kStart,
  kEnd,
  kLimit,
  kUser,
  kUid,
  kAccount,
  kPartition,
  kQos,
  kCluster,
  kReqMem,
  kReqCpus,
  kReqNodes,
  kReqTres,
  kAllocTres,
  kTasks,
  kNodes,
  kMaxRss,
  kTotalCpu,
  kReason,
  kWorkDir,
  kSubmitLine,
  kName,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kNames = {
    "JobIDRaw",  "JobID",         "DBIndex",
    "SLUID",     "OriginalSLUID", "Restarts",
    "State",     "ExitCode",      "DerivedExitCode",
    "Submit",    "Eligible",      "Start",
    "End",       "TimelimitRaw",  "User",
    "UID",       "Account",       "Partition",
    "QOS",       "Cluster",       "ReqMem",
    "ReqCPUS",   "ReqNodes",      "ReqTRES",
    "AllocTRES", "NTasks",        "NodeList",
    "MaxRSS",    "TotalCPU",      "Reason",
    "WorkDir",   "SubmitLine",    "JobName"};

/// Not in every version: SLUID and Restarts from 24.11, OriginalSLUID in 26.05.
bool IsNewer(size_t column) {
  return column == kSluid || column == kOriginalSluid || column == kRestarts;
}

/// The fields of one row by column; what was not asked for is empty.
class Row {
 public:
  Row(const std::vector<std::string_view>& fields, const std::array<size_t, kColumns>& places)
      : fields_(fields), places_(places) {}
  std::string_view operator[](size_t column) const {
    return places_[column] < fields_.size() ? fields_[places_[column]] : std::string_view();
  }
  bool Has(size_t column) const { return places_[column] < fields_.size(); }

 private:
  const std::vector<std::string_view>& fields_;
  const std::array<size_t, kColumns>& places_;
};

std::optional<std::string> Text(std::string_view text) {
  if (IsSlurmNull(text)) return std::nullopt;
  return std::string(text);
}

/// "CANCELLED by 1001" to state and whose doing it was.
void ReadState(std::string_view text, JobRecord* job) {
  job->state_text = std::string(text);
  const size_t by = text.find(" by ");
  job->state = std::string(text.substr(0, by));
  if (by == std::string_view::npos) return;
  if (const auto uid = ParseInt64(text.substr(by + 4)); uid && job->uid)
    job->cancelled_by_owner = *uid == *job->uid;
}

/// "7_3", "7_[1-4%2]", "41982+1".
void ReadDisplayId(std::string_view id, JobRecord* job) {
  if (const size_t line = id.find('_'); line != std::string_view::npos) {
    job->array_job_id = ParseInt64(id.substr(0, line));
    const std::string_view task = id.substr(line + 1);
    job->array_task_id = ParseInt64(task);
    if (!job->array_task_id && task.size() > 2)
      job->array_task_text = std::string(task.substr(1, task.size() - 2));
  } else if (const size_t plus = id.find('+'); plus != std::string_view::npos) {
    job->het_job_id = ParseInt64(id.substr(0, plus));
    job->het_component = ParseInt64(id.substr(plus + 1));
  }
}

std::optional<ExitStatus> ReadExit(std::string_view text, const SacctDialect& dialect) {
  return dialect.exact_exit_codes ? ParseScontrolExit(text) : ParseSacctExit(text);
}

JobRecord ReadJobRow(const Row& r, int64_t id, const SacctDialect& dialect) {
  JobRecord job;
  job.tool = Tool::kSacct;
  job.job_id = id;
  ReadDisplayId(r[kId], &job);
  job.sluid = std::string(r[kSluid]);
  ReadDbIndex(r[kDbIndex], &job);
  job.original_sluid = std::string(r[kOriginalSluid]);
  job.restarts = ParseInt64(r[kRestarts]);
  job.uid = ParseInt64(r[kUid]);
  ReadState(r[kState], &job);
  if (!IsSlurmNull(r[kReason])) job.reason = std::string(r[kReason]);
  job.exit = ReadExit(r[kExit], dialect);
  job.derived_exit = ParseScontrolExit(r[kDerivedExit]);
  job.derived_exit_code = ParseInt64(r[kDerivedExit].substr(0, r[kDerivedExit].find(':')));
  job.submit = ParseSlurmTime(r[kSubmit]);
  job.eligible = ParseSlurmTime(r[kEligible]);
  job.start = ParseSlurmTime(r[kStart]);
  job.end = ParseSlurmTime(r[kEnd]);
  if (const auto minutes = ParseSlurmCount(r[kLimit])) job.time_limit_seconds = *minutes * 60;
  job.time_limit_unlimited = r[kLimit] == "UNLIMITED";
  if (r.Has(kName)) job.name = std::string(r[kName]);
  job.user = Text(r[kUser]);
  job.account = Text(r[kAccount]);
  job.partition = Text(r[kPartition]);
  job.qos = Text(r[kQos]);
  job.cluster = Text(r[kCluster]);
  job.req_cpus = ParseSlurmCount(r[kReqCpus]);
  job.req_nodes = ParseSlurmCount(r[kReqNodes]);
  // ReqMem of 22.05 is the sum over nodes, as is the mem of ReqTRES; the form (of a node, of a CPU)
  // is not told.
  job.requested = ParseTres(r[kReqTres], kMiB);
  if (!job.requested.memory_bytes) job.requested.memory_bytes = ParseSlurmSize(r[kReqMem], kMiB);
  job.allocated = ParseTres(r[kAllocTres], kMiB);
  if (!IsSlurmNull(r[kNodes])) job.node_list = std::string(r[kNodes]);
  job.work_dir = Text(r[kWorkDir]);
  job.submit_line = Text(r[kSubmitLine]);
  job.max_rss_kind = dialect.max_rss_kind;
  job.cpu_seconds = ParseSlurmDuration(r[kTotalCpu]);
  return job;
}

StepRecord ReadStepRow(const Row& r, std::string_view step_id, const SacctDialect& dialect) {
  StepRecord step;
  step.step_id = std::string(step_id);
  step.name = std::string(r[kName]);
  step.state = std::string(r[kState].substr(0, r[kState].find(" by ")));
  // Step codes are shifted like job codes; a step that a node failure ended has none.
  step.exit = ReadExit(r[kExit], dialect);
  step.start = ParseSlurmTime(r[kStart]);
  // 22.05 closes the first steps' rows when their job is resized; the steps go on.
  if (step.state != "RESIZING") step.end = ParseSlurmTime(r[kEnd]);
  step.tasks = ParseSlurmCount(r[kTasks]);
  if (auto nodes = ExpandHostList(r[kNodes])) step.nodes = std::move(*nodes);
  step.max_rss_bytes = ParseSlurmSize(r[kMaxRss], 1);
  step.cpu_seconds = ParseSlurmDuration(r[kTotalCpu]);
  step.allocated = ParseTres(r[kAllocTres], kMiB);
  return step;
}

/// Where each column stands in the header, whose names hold neither the mark nor a line break.
Result<std::array<size_t, kColumns>> ReadHeader(std::string_view text, std::string_view mark,
                                                size_t* fields) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (!line.ends_with(mark)) return Error(Code::kDataLoss, "sacct printed no whole header");
  std::array<size_t, kColumns> places;
  places.fill(SIZE_MAX);
  *fields = 0;
  while (!line.empty()) {
    const std::string_view name = line.substr(0, line.find(mark));
    for (size_t i = 0; i < kColumns; ++i)
      if (places[i] == SIZE_MAX && name == kNames[i]) places[i] = *fields;
    line.remove_prefix(name.size() + mark.size());
    ++*fields;
  }
  for (const size_t needed : {size_t{kRawId}, size_t{kState}, size_t{kSubmit}})
    if (places[needed] == SIZE_MAX)
      return Error(Code::kDataLoss, "sacct printed no column " + std::string(kNames[needed]));
  return places;
}

std::string TimeArgument(int64_t epoch) {
  // With TZ=UTC in the tool's environment.
  return FormatRfc3339(FromUnixMillis(epoch * 1000)).substr(0, 19);
}

void AddSelection(const SacctQuery& query, std::vector<std::string>* argv) {
  argv->push_back("--allusers");
  argv->push_back("--duplicates");
  argv->push_back("--starttime=" + TimeArgument(query.from));
  if (query.job_ids.empty()) {
    argv->push_back("--endtime=" + TimeArgument(query.to));
    return;
  }
  std::string ids;
  for (int64_t id : query.job_ids) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  argv->push_back("--jobs=" + ids);
}

}  // namespace

SacctFields ParseSacctFields(std::string_view helpformat) {
  SacctFields offered;
  for (std::string_view line : Split(helpformat, '\n'))
    for (std::string_view word : Split(line, ' '))
      if (!Trim(word).empty()) offered.emplace(ToLower(Trim(word)));
  return offered;
}

std::vector<std::string> SacctTextArguments(const SacctQuery& query, std::string_view mark,
                                            const SacctFields& offered) {
  std::string format;
  for (size_t i = 0; i < kColumns; ++i) {
    if (offered.empty() ? IsNewer(i) : !offered.contains(ToLower(kNames[i]))) continue;
    format += (format.empty() ? "" : ",") + std::string(kNames[i]);
  }
  std::vector<std::string> argv = {"sacct", "--parsable", "--noconvert",
                                   "--delimiter=" + std::string(mark), "--format=" + format};
  AddSelection(query, &argv);
  return argv;
}

std::vector<std::string> SacctJsonArguments(const SacctQuery& query) {
  std::vector<std::string> argv = {"sacct", "--json"};
  AddSelection(query, &argv);
  return argv;
}

Result<RecordBatch> ParseSacctText(std::string_view text, std::string_view mark,
                                   const SacctDialect& dialect) {
  if (text.empty()) return Error(Code::kDataLoss, "sacct answered nothing, not even a header");
  size_t fields = 0;
  EXPANSE_TRY(const auto places, ReadHeader(text, mark, &fields));
  EXPANSE_TRY(const auto rows, SplitMarkedRows(text, mark, fields));
  RecordBatch out;
  std::string_view index;  // of the last job's row
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row row(rows[i], places);
    const size_t dot = row[kRawId].find('.');
    const auto id = ParseInt64(row[kRawId].substr(0, dot));
    if (!id || *id <= 0 || row[kState].empty()) {
      out.problems.push_back("sacct: row " + std::to_string(i) + " without an id or a state");
      continue;
    }
    if (dot == std::string_view::npos) {
      out.jobs.push_back(ReadJobRow(row, *id, dialect));
      index = row[kDbIndex];
      continue;
    }
    if (out.jobs.empty() || out.jobs.back().job_id != *id || row[kDbIndex] != index) {
      out.problems.push_back("sacct: step " + ToUtf8(row[kRawId]) + " without its job");
      continue;
    }
    out.jobs.back().steps.push_back(ReadStepRow(row, row[kRawId].substr(dot + 1), dialect));
  }
  MergeSegments(&out);
  return out;
}

}  // namespace expanse::collect::slurm
