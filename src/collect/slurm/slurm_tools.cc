// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/slurm_tools.h"

#include "base/log.h"
#include "base/strings.h"
#include "collect/slurm/marked_text.h"
#include "collect/slurm/node_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/squeue_reader.h"

namespace expanse::collect::slurm {
namespace {

using platform::ProcessResult;

/// First line of what a tool wrote to stderr, safe for a log.
std::string FirstLine(const std::string& text) {
  return ToUtf8(Trim(std::string_view(text).substr(0, text.find('\n'))));
}

Error ToolError(const std::string& what, const ProcessResult& result) {
  std::string message = what + " ended with status " + std::to_string(result.exit_code);
  if (const std::string line = FirstLine(result.err); !line.empty()) message += ": " + line;
  return Error(Code::kUnavailable, message);
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The form is not there, and will not be at the next call: the serializer is a plugin that some
/// packages leave out, or it has other versions. Other failures are tried again.
bool IsRefusedForm(const Error& error) {
  for (const char* word : {"serializer", "data_parser", "unrecognized option", "invalid option"})
    if (Contains(error.message(), word)) return true;
  return false;
}

}  // namespace

SlurmTools::SlurmTools(SlurmToolsOptions options, platform::ProcessRunner& runner,
                       const platform::Clock& clock, platform::Random& random)
    : options_(std::move(options)), runner_(runner), clock_(clock), random_(random) {}

Result<ProcessResult> SlurmTools::Run(const std::vector<std::string>& argv, Millis timeout,
                                      bool epoch_times) {
  platform::ProcessSpec spec;
  spec.argv = argv;
  spec.timeout = timeout;
  spec.max_output = size_t{512} << 20;
  spec.env = {{"PATH", options_.path}, {"TZ", "UTC"}, {"LC_ALL", "C"}};
  if (epoch_times) spec.env["SLURM_TIME_FORMAT"] = "%s";
  if (!options_.slurm_conf.empty()) spec.env["SLURM_CONF"] = options_.slurm_conf;
  auto result = runner_.Run(spec);
  if (!result.ok()) return result.error().WithContext(argv[0]);
  return result;
}

template <typename T>
Result<T> SlurmTools::Note(const std::string& tool, Result<T> result) {
  ToolHealth now;
  if (!result.ok()) {
    now.status = result.error().code() == Code::kFailedPrecondition ? "disabled" : "degraded";
    now.reason = result.error().message();
  }
  const std::lock_guard lock(mutex_);
  ToolHealth& kept = health_[tool];
  if (kept.status != now.status || kept.since_ms == 0) {
    if (now.status == "degraded")
      log::Warning("slurm.tool_degraded", {{"tool", tool}, {"reason", now.reason}});
    now.since_ms = ToUnixMillis(clock_.Now());
    kept = now;
  } else {
    kept.reason = now.reason;
  }
  return result;
}

std::map<std::string, ToolHealth> SlurmTools::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void SlurmTools::LearnForms() {
  const MonoTime now = clock_.Mono();
  if (ask_forms_at_ && now < *ask_forms_at_) return;
  const auto version = Run({"squeue", "--version"}, options_.timeout);
  std::optional<SlurmVersion> client;
  if (version.ok() && version->exit_code == 0) client = ParseSlurmVersion(version->out);
  if (!client) {
    // What every version takes, unless it was told before.
    if (!ask_forms_at_) forms_ = FormsOf(std::nullopt);
    ask_forms_at_ = now + options_.ask_version_again;
    return;
  }
  ask_forms_at_ = now + options_.ask_version_every;
  forms_ = FormsOf(client);
  sacct_text_refused_ = false;
  const auto fields = Run({"sacct", "--helpformat"}, options_.timeout);
  sacct_fields_ =
      fields.ok() && fields->exit_code == 0 ? ParseSacctFields(fields->out) : SacctFields{};
}

void SlurmTools::NoteMaxRss(const std::string& config, const data::v1::ComputeFacts& nodes) {
  std::optional<SlurmVersion> oldest;
  for (const auto& node : nodes.nodes()) {
    const auto version = ParseSlurmVersion(node.version());
    // A node that is down tells no version; it measures nothing either.
    if (version && (!oldest || *version < *oldest)) oldest = version;
  }
  max_rss_kind_ = MaxRssKindOf(oldest, ConfigValue(config, "JobAcctGatherType").value_or(""));
  max_rss_known_ = true;
}

void SlurmTools::LearnMaxRss() {
  if (max_rss_known_) return;
  const auto config = Show("config");
  const auto nodes = Show("node");
  if (!config.ok() || !nodes.ok()) return;
  data::v1::ComputeFacts facts;
  ParseNodes(*nodes, &facts);
  NoteMaxRss(*config, facts);
}

Result<RecordBatch> SlurmTools::SqueueJson(const std::vector<std::string>& argv) {
  EXPANSE_TRY(const ProcessResult result, Run(argv, options_.timeout, /*epoch_times=*/false));
  if (result.exit_code != 0) return ToolError("squeue " + argv[1], result);
  auto batch = ParseSqueueJson(result.out);
  if (!batch.ok()) return batch.error().WithContext("squeue " + argv[1]);
  return batch;
}

Result<RecordBatch> SlurmTools::SqueueText() {
  const std::string mark = NewMark(random_);
  EXPANSE_TRY(const ProcessResult result, Run(SqueueTextArguments(mark), options_.timeout));
  if (result.exit_code != 0) return ToolError("squeue", result);
  auto batch = ParseSqueueText(result.out, mark);
  if (!batch.ok()) return batch.error().WithContext("squeue");
  return batch;
}

Result<RecordBatch> SlurmTools::Squeue() {
  LearnForms();
  while (!forms_.squeue_json.empty()) {
    auto batch = SqueueJson(forms_.squeue_json.front());
    if (batch.ok() || !IsRefusedForm(batch.error())) return Note("squeue", std::move(batch));
    log::Warning("slurm.squeue_json_refused", {{"reason", batch.error().message()}});
    forms_.squeue_json.erase(forms_.squeue_json.begin());
  }
  return Note("squeue", SqueueText());
}

Result<RecordBatch> SlurmTools::ScontrolJson() {
  EXPANSE_TRY(const ProcessResult result,
              Run({"scontrol", "show", "job", "--json"}, options_.timeout, /*epoch_times=*/false));
  if (result.exit_code != 0) return ToolError("scontrol show job --json", result);
  auto batch = ParseScontrolJson(result.out);
  if (!batch.ok()) return batch.error().WithContext("scontrol show job --json");
  return batch;
}

Result<RecordBatch> SlurmTools::ScontrolText(const RecordBatch& squeue) {
  EXPANSE_TRY(const ProcessResult result,
              Run({"scontrol", "show", "job", "-dd"}, options_.timeout));
  if (result.exit_code != 0) return ToolError("scontrol show job", result);
  if (result.out.empty())
    return Error(Code::kDataLoss, "scontrol show job answered nothing with status 0");
  KnownNames known;
  for (const auto& job : squeue.jobs)
    if (job.name) known[job.job_id] = *job.name;
  return ParseScontrolJobs(result.out, &known);
}

Result<RecordBatch> SlurmTools::ScontrolJobs(const RecordBatch& squeue) {
  if (forms_.scontrol_json) {
    auto batch = ScontrolJson();
    if (batch.ok() || !IsRefusedForm(batch.error())) return Note("scontrol", std::move(batch));
    log::Warning("slurm.scontrol_json_refused", {{"reason", batch.error().message()}});
    forms_.scontrol_json = false;
  }
  return Note("scontrol", ScontrolText(squeue));
}

Result<bool> SlurmTools::IsForgotten(int64_t job_id) {
  EXPANSE_TRY(const ProcessResult result,
              Run({"scontrol", "show", "job", std::to_string(job_id)}, options_.timeout));
  if (result.exit_code == 0 && Contains(result.out, "JobId=")) return false;
  if (Contains(result.err, "Invalid job id specified")) return true;
  return ToolError("scontrol show job", result);
}

Result<RecordBatch> SlurmTools::SacctText(const SacctQuery& query) {
  const std::string mark = NewMark(random_);
  EXPANSE_TRY(const ProcessResult result,
              Run(SacctTextArguments(query, mark, sacct_fields_), options_.sacct_timeout));
  if (Contains(result.err, "accounting storage is disabled"))
    return Error(Code::kFailedPrecondition, "sacct: " + FirstLine(result.err));
  if (result.exit_code != 0) return ToolError("sacct", result);
  auto batch = ParseSacctText(result.out, mark, {forms_.sacct_exact_codes, max_rss_kind_});
  if (!batch.ok()) {
    const std::string line = FirstLine(result.err);
    return line.empty() ? batch.error() : batch.error().WithContext(line);
  }
  return batch;
}

Result<RecordBatch> SlurmTools::SacctJson(const SacctQuery& query) {
  // sacct --json of 22.05 refuses its own times when SLURM_TIME_FORMAT is %s.
  EXPANSE_TRY(const ProcessResult result,
              Run(SacctJsonArguments(query), options_.sacct_timeout, /*epoch_times=*/false));
  if (result.exit_code != 0) return ToolError("sacct --json", result);
  if (Contains(result.err, "Invalid time specification"))
    return Error(Code::kUnavailable, "sacct --json: " + FirstLine(result.err));
  auto batch = ParseSacctJson(result.out);
  if (!batch.ok()) {
    // A serializer that it lacks: nothing on stdout, exit status 0.
    const std::string line = FirstLine(result.err);
    return batch.error().WithContext(line.empty() ? "sacct --json" : "sacct --json: " + line);
  }
  for (JobRecord& job : batch->jobs) job.max_rss_kind = max_rss_kind_;
  return batch;
}

Result<RecordBatch> SlurmTools::Sacct(const SacctQuery& query) {
  LearnForms();
  LearnMaxRss();
  if (!sacct_text_refused_) {
    auto batch = SacctText(query);
    if (batch.ok() || !Contains(batch.error().message(), "Invalid field requested"))
      return Note("sacct", std::move(batch));
    sacct_text_refused_ = true;
    log::Warning("slurm.sacct_text_refused", {{"reason", batch.error().message()}});
  }
  return Note("sacct", SacctJson(query));
}

Result<std::string> SlurmTools::BatchScript(int64_t job_id) {
  const std::string id = std::to_string(job_id);
  std::string why;
  auto live = Run({"scontrol", "write", "batch_script", id, "-"}, options_.timeout);
  // Exit status 0 also for an id that slurmctld does not know.
  if (live.ok() && live->exit_code == 0 && !live->out.empty()) return std::move(live->out);
  why = live.ok() ? "scontrol: " + FirstLine(live->err) : live.error().message();
  auto stored = Run({"sacct", "--batch-script", "--jobs=" + id}, options_.sacct_timeout);
  if (stored.ok() && stored->exit_code == 0) {
    // "Batch Script for 3\n-----...\n" and the bytes; with several rows the first one is meant.
    const std::string head = "Batch Script for " + id + "\n";
    if (stored->out.starts_with(head)) {
      const size_t line = stored->out.find('\n', head.size());
      if (line != std::string::npos && line + 1 < stored->out.size()) {
        std::string script = stored->out.substr(line + 1);
        if (script.ends_with('\n')) script.pop_back();  // sacct's own
        if (!script.starts_with("NONE")) return script;
      }
    }
    why += "; sacct: no script stored";
  } else {
    why += "; " + (stored.ok() ? "sacct: " + FirstLine(stored->err) : stored.error().message());
  }
  return Error(Code::kNotFound, why);
}

Result<std::string> SlurmTools::Show(const char* what) {
  EXPANSE_TRY(ProcessResult result, Run({"scontrol", "show", what}, options_.timeout));
  if (result.exit_code != 0) return ToolError(std::string("scontrol show ") + what, result);
  if (result.out.empty())
    return Error(Code::kDataLoss, std::string("scontrol show ") + what + " answered nothing");
  return std::move(result.out);
}

Result<data::v1::ComputeFacts> SlurmTools::Cluster() {
  EXPANSE_TRY(const std::string nodes, Show("node"));
  EXPANSE_TRY(const std::string partitions, Show("partition"));
  data::v1::ComputeFacts facts;
  ParseNodes(nodes, &facts);
  ParsePartitions(partitions, &facts);
  EXPANSE_TRY(const std::string config, Show("config"));
  NoteMaxRss(config, facts);
  facts.set_cluster(ToUtf8(ConfigValue(config, "ClusterName").value_or("")));
  facts.set_scheduler_version(ToUtf8(ConfigValue(config, "SLURM_VERSION").value_or("")));
  return facts;
}

Result<std::string> SlurmTools::Config() {
  EXPANSE_TRY(ProcessResult result, Run({"scontrol", "show", "config"}, options_.timeout));
  if (result.exit_code != 0) return ToolError("scontrol show config", result);
  return std::move(result.out);
}

Result<std::string> SlurmTools::ClusterName() {
  EXPANSE_TRY(const std::string config, Config());
  const auto name = ConfigValue(config, "ClusterName");
  if (!name) return Error(Code::kDataLoss, "scontrol show config names no cluster");
  return *name;
}

}  // namespace expanse::collect::slurm
