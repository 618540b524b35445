// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/scontrol_job_parser.h"

#include <array>

#include "base/strings.h"
#include "base/units.h"

namespace expanse::collect::slurm {
namespace {

constexpr std::string_view kRecordStart = "JobId=";
/// Keys after WorkDir that can begin a line, in the order of SLURM 22.05 to 26.05.
constexpr std::array<std::string_view, 24> kTailKeys = {
    "AdminComment=",  "SystemComment=", "Comment=",     "SubmitLine=",    "BatchFeatures=",
    "BurstBuffer=",   "StdErr=",        "StdIn=",       "StdOut=",        "CpusPerTres=",
    "MemPerTres=",    "TresBind=",      "TresFreq=",    "TresPerJob=",    "TresPerNode=",
    "TresPerSocket=", "TresPerTask=",   "MailUser=",    "Power=",         "MemUpdate=",
    "NtasksPerTRES:", "Container=",     "ContainerID=", "StepMgrEnabled="};

using Values = std::map<std::string, std::string, std::less<>>;

size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

/// True when a record can begin here: "JobId=12 " and one of the keys that follow it.
bool IsRecordStart(std::string_view text, size_t at) {
  if (text.substr(at, kRecordStart.size()) != kRecordStart) return false;
  const size_t digits = at + kRecordStart.size();
  const size_t end = SkipDigits(text, digits);
  if (end == digits) return false;
  const std::string_view rest = text.substr(end);
  return rest.starts_with(" ArrayJobId=") || rest.starts_with(" HetJobId=") ||
         rest.starts_with(" JobName=");
}

size_t FindRecordStart(std::string_view text, size_t from) {
  for (size_t at = text.find(kRecordStart, from); at != std::string_view::npos;
       at = text.find(kRecordStart, at + 1)) {
    if ((at == 0 || text[at - 1] == '\n') && IsRecordStart(text, at)) return at;
  }
  return std::string_view::npos;
}

/// The text that separates lines of one record: "\n   ", or a blank in the one-line form.
std::string_view SeparatorOf(std::string_view text) {
  const size_t multi = text.find("\n   UserId=");
  const size_t single = text.find(" UserId=");
  if (multi == std::string_view::npos) return " ";
  return single != std::string_view::npos && single + 4 < multi ? " " : "\n   ";
}

/// "alice(1001)" to name and uid.
void ReadUser(std::string_view text, JobRecord* job) {
  const size_t open = text.rfind('(');
  if (open == std::string_view::npos || text.back() != ')') return;
  job->user = std::string(text.substr(0, open));
  job->uid = ParseInt64(text.substr(open + 1, text.size() - open - 2));
}

/// A number, or the first of a range ("2-4").
std::optional<int64_t> ReadCount(std::string_view text) {
  return ParseSlurmCount(text.substr(0, text.find('-')));
}

std::optional<std::string> NullToAbsent(const std::string& text) {
  if (IsSlurmNull(text)) return std::nullopt;
  return text;
}

Values ReadTokens(std::string_view text) {
  Values values;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ' || text[at] == '\n') {
      ++at;
      continue;
    }
    size_t end = text.find_first_of(" \n", at);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view token = text.substr(at, end - at);
    if (const size_t equals = token.find('='); equals != std::string_view::npos)
      values.emplace(token.substr(0, equals), token.substr(equals + 1));
    at = end;
  }
  return values;
}

class RecordReader {
 public:
  RecordReader(std::string_view text, std::string_view separator, const KnownNames* known)
      : text_(text), separator_(separator), known_(known) {
    user_anchor_ = std::string(separator_) + "UserId=";
    // 26.05 prints the SLUID, every version the components of a heterogeneous job, before the user.
    for (const char* key : {"UserId=", "SLUID=", "HetJobIdSet="})
      name_ends_.push_back(std::string(separator_) + key);
  }

  /// Reads the record that starts here; sets *next to where the search for another goes on.
  void Read(size_t start, size_t* next, RecordBatch* out) {
    JobRecord job;
    job.tool = Tool::kScontrol;
    const size_t name_key = text_.find("JobName=", start);
    *next = start + 1;
    if (name_key == std::string_view::npos) return Problem(job, "cut off", out);
    ReadHeader(text_.substr(start, name_key - start), &job);
    if (job.job_id <= 0) return Problem(job, "has no job id", out);
    const size_t name_at = name_key + 8;
    const size_t name_end = FindNameEnd(job.job_id, name_at, out);
    if (name_end == std::string_view::npos) return;
    job.name = std::string(text_.substr(name_at, name_end - name_at));
    size_t end = FindRecordStart(text_, name_end);
    if (end == std::string_view::npos) end = text_.size();
    *next = end;
    const std::string_view body = text_.substr(name_end, end - name_end);
    if (known_ == nullptr && (IsTwice(body, "UserId=") || IsTwice(body, "SLUID=")))
      return Problem(job, "its name cannot be told from its fields", out);
    const std::string command_key = std::string(separator_) + "Command=";
    const size_t command_at = body.find(command_key);
    if (command_at == std::string_view::npos) return Problem(job, "cut off", out);
    const Values values = ReadTokens(body.substr(0, command_at));
    if (!values.contains("JobState")) return Problem(job, "has no JobState", out);
    // An interactive job has no files; its record ends with the working directory.
    const auto batch = values.find("BatchFlag");
    const std::string_view last =
        batch != values.end() && batch->second == "0" ? "WorkDir=" : "StdOut=";
    if (body.rfind(std::string(separator_) + std::string(last)) == std::string_view::npos)
      return Problem(job, "cut off", out);
    FillFields(values, &job);
    FillTail(body.substr(command_at + command_key.size()), &job);
    out->jobs.push_back(std::move(job));
  }

 private:
  static void Problem(const JobRecord& job, const char* what, RecordBatch* out) {
    out->problems.push_back("scontrol: record of job " + std::to_string(job.job_id) + " " + what);
  }

  static void ReadHeader(std::string_view header, JobRecord* job) {
    const Values values = ReadTokens(header);
    const auto number = [&](std::string_view key) -> std::optional<int64_t> {
      const auto it = values.find(key);
      return it == values.end() ? std::nullopt : ParseInt64(it->second);
    };
    job->job_id = number("JobId").value_or(0);
    job->array_job_id = number("ArrayJobId");
    job->array_task_id = number("ArrayTaskId");
    if (job->array_job_id && !job->array_task_id)
      if (const auto it = values.find("ArrayTaskId"); it != values.end())
        job->array_task_text = it->second;
    job->het_job_id = number("HetJobId");
    job->het_component = number("HetJobOffset");
  }

  /// End of the job name, or npos after a problem was noted.
  size_t FindNameEnd(int64_t job_id, size_t name_at, RecordBatch* out) {
    JobRecord job;
    job.job_id = job_id;
    if (known_ != nullptr) {
      const auto it = known_->find(job_id);
      const std::string_view rest = text_.substr(name_at);
      if (it == known_->end()) {
        Problem(job, "is not confirmed by squeue", out);
      } else if (!rest.starts_with(it->second)) {
        Problem(job, "has another name than in squeue", out);
      } else {
        const std::string_view after = rest.substr(it->second.size());
        for (const std::string& anchor : name_ends_)
          if (after.starts_with(anchor)) return name_at + it->second.size();
        Problem(job, "has another name than in squeue", out);
      }
      return std::string_view::npos;
    }
    const size_t user = text_.find(user_anchor_, name_at);
    if (user == std::string_view::npos) {
      Problem(job, "cut off", out);
      return user;
    }
    size_t end = user;
    for (const std::string& anchor : name_ends_) end = std::min(end, text_.find(anchor, name_at));
    return end;
  }

  bool IsTwice(std::string_view body, std::string_view key) const {
    const std::string anchor = std::string(separator_) + std::string(key);
    const size_t first = body.find(anchor);
    return first != std::string_view::npos &&
           body.find(anchor, first + 1) != std::string_view::npos;
  }

  void FillFields(const Values& values, JobRecord* job) const;
  void FillTail(std::string_view tail, JobRecord* job) const;

  std::string_view text_;
  std::string_view separator_;
  const KnownNames* known_;
  std::string user_anchor_;
  std::vector<std::string> name_ends_;  // what can follow a job's name
};

void RecordReader::FillFields(const Values& values, JobRecord* job) const {
  const auto text = [&](std::string_view key) -> std::string {
    const auto it = values.find(key);
    return it == values.end() ? std::string() : it->second;
  };
  ReadUser(text("UserId"), job);
  job->account = NullToAbsent(text("Account"));
  job->qos = NullToAbsent(text("QOS"));
  job->partition = NullToAbsent(text("Partition"));
  job->state_text = text("JobState");
  job->state = job->state_text;
  if (const std::string reason = text("Reason"); !IsSlurmNull(reason)) job->reason = reason;
  job->restarts = ParseInt64(text("Restarts"));
  job->batch = text("BatchFlag") != "0";
  job->exit = ParseScontrolExit(text("ExitCode"));
  const std::string derived = text("DerivedExitCode");
  job->derived_exit = ParseScontrolExit(derived);
  job->derived_exit_code = ParseInt64(derived.substr(0, derived.find(':')));
  // While a requeued job completes, whose the SLUID is is not told (see controller_json.cc).
  if (job->state != "COMPLETING" && !job->state.starts_with("REQUEUE")) job->sluid = text("SLUID");
  job->resized = ParseSlurmTime(text("ResizeTime"));
  job->submit = ParseSlurmTime(text("SubmitTime"));
  job->eligible = ParseSlurmTime(text("EligibleTime"));
  job->start = ParseSlurmTime(text("StartTime"));
  job->end = ParseSlurmTime(text("EndTime"));
  const std::string limit = text("TimeLimit");
  job->time_limit_unlimited = limit == "UNLIMITED";
  if (const auto seconds = ParseSlurmDuration(limit))
    job->time_limit_seconds = static_cast<int64_t>(*seconds);
  job->req_nodes = ReadCount(text("NumNodes"));
  job->req_cpus = ReadCount(text("NumCPUs"));
  job->req_tasks = ReadCount(text("NumTasks"));
  job->memory_per_node_bytes = ParseSlurmSize(text("MinMemoryNode"), kMiB);
  job->memory_per_cpu_bytes = ParseSlurmSize(text("MinMemoryCPU"), kMiB);
  if (const std::string nodes = text("NodeList"); !IsSlurmNull(nodes)) job->node_list = nodes;
  // 22.05 prints one TRES=: what is allocated, or before a start what is asked for.
  const Tres one = ParseTres(text("TRES"), kMiB);
  if (!one.empty) (job->node_list.empty() ? job->requested : job->allocated) = one;
  if (const std::string req = text("ReqTRES"); !IsSlurmNull(req))
    job->requested = ParseTres(req, kMiB);
  if (const std::string alloc = text("AllocTRES"); !IsSlurmNull(alloc))
    job->allocated = ParseTres(alloc, kMiB);
}

void RecordReader::FillTail(std::string_view tail, JobRecord* job) const {
  const auto find = [&](std::string_view key, size_t from) {
    return tail.find(std::string(separator_) + std::string(key), from);
  };
  const auto value = [&](size_t key_at, size_t key_size, size_t end) {
    const size_t begin = key_at + separator_.size() + key_size;
    return std::string(tail.substr(begin, end - begin));
  };
  // The three paths come last; what stands before them may be forged by a comment.
  const size_t out_at = tail.rfind(std::string(separator_) + "StdOut=");
  const size_t in_at = tail.rfind(std::string(separator_) + "StdIn=", out_at);
  const size_t err_at = tail.rfind(std::string(separator_) + "StdErr=", in_at);
  size_t out_end = tail.size();
  if (out_at != std::string_view::npos) {
    for (std::string_view key : kTailKeys) out_end = std::min(out_end, find(key, out_at + 1));
    if (const size_t line = tail.find('\n', out_at + 1); line != std::string_view::npos)
      out_end = std::min(out_end, line);
  }
  job->paths_expanded = true;
  if (out_at != std::string_view::npos && err_at != std::string_view::npos &&
      in_at != std::string_view::npos) {
    job->stderr_path = NullToAbsent(value(err_at, 7, in_at));
    job->stdout_path = NullToAbsent(value(out_at, 7, out_end));
  }
  SettlePaths(job);
  const size_t dir_at = find("WorkDir=", 0);
  if (dir_at == std::string_view::npos || find("WorkDir=", dir_at + 1) != std::string_view::npos) {
    job->unknown["command"] = "scontrol prints it so that it can be read in two ways";
    job->unknown["work_dir"] = job->unknown["command"];
    return;
  }
  size_t dir_end = tail.size();
  for (std::string_view key : kTailKeys) dir_end = std::min(dir_end, find(key, dir_at + 1));
  std::string work_dir = value(dir_at, 8, dir_end);
  if (dir_end == tail.size())  // of an interactive job: the end of the record follows
    while (!work_dir.empty() && (work_dir.back() == '\n' || work_dir.back() == ' '))
      work_dir.pop_back();
  job->work_dir = NullToAbsent(work_dir);
  // 26.05 prints the submit line between the two, unquoted.
  const size_t line_at = find("SubmitLine=", 0);
  if (line_at >= dir_at) {
    job->command = NullToAbsent(std::string(tail.substr(0, dir_at)));
  } else if (find("SubmitLine=", line_at + 1) < dir_at) {
    job->unknown["command"] = "scontrol prints it so that it can be read in two ways";
    job->unknown["submit_line"] = job->unknown["command"];
  } else {
    job->command = NullToAbsent(std::string(tail.substr(0, line_at)));
    job->submit_line = NullToAbsent(value(line_at, 11, dir_at));
  }
}

}  // namespace

RecordBatch ParseScontrolJobs(std::string_view text, const KnownNames* known) {
  RecordBatch out;
  const std::string_view separator = SeparatorOf(text);
  RecordReader reader(text, separator, known);
  size_t at = FindRecordStart(text, 0);
  while (at != std::string_view::npos) {
    size_t next = at + 1;
    reader.Read(at, &next, &out);
    at = FindRecordStart(text, next);
  }
  // slurmctld has one record for an id; a second one was made by a name.
  std::map<int64_t, int> seen;
  for (const auto& job : out.jobs) ++seen[job.job_id];
  std::erase_if(out.jobs, [&](const JobRecord& job) { return seen[job.job_id] > 1; });
  for (const auto& [id, count] : seen)
    if (count > 1) out.problems.push_back("scontrol: two records of job " + std::to_string(id));
  return out;
}

}  // namespace expanse::collect::slurm
