// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/evidence.h"

#include <unistd.h>

#include "base/strings.h"
#include "collect/slurm/log_path.h"
#include "collect/slurm/secrets_filter.h"
#include "collect/slurm/submit_line.h"
#include "submission/bundle/bundle.h"
#include "submission/slurm_script/sbatch_request.h"
#include "submission/slurm_script/sbatch_script.h"

namespace expanse::collect::slurm {
namespace {

common::v1::RunKey KeyOfRun(const RunState& run) {
  common::v1::RunKey key;
  key.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  key.set_native_id(std::to_string(run.id.job_id));
  key.set_submit_time_ms(run.id.submit * 1000);
  key.set_restart_count(run.id.restarts);
  if (run.db_index) key.set_db_index(*run.db_index);
  return key;
}

/// Names of "--export=ALL,A,B=1" on the submit line.
std::vector<std::string> ExportedNames(const std::string& submit_line) {
  std::vector<std::string> names;
  const auto value = SubmitLineOption(submit_line, "export", '\0');
  if (!value) return names;
  for (std::string_view part : Split(*value, ',')) {
    const std::string name(part.substr(0, part.find('=')));
    if (!name.empty() && name != "ALL" && name != "NONE" && name != "NIL") names.push_back(name);
  }
  return names;
}

/// What the data plane takes of one file, of all, and of one argument.
constexpr size_t kMostFileBytes = 1 << 20;
constexpr size_t kMostBundleBytes = 10 << 20;
constexpr size_t kMostArgumentBytes = 20 << 10;

/// The mark in place of a secret can be longer than the secret.
void KeepBounds(data::v1::SourceBundle* bundle) {
  size_t total = 0;
  for (auto& file : *bundle->mutable_files()) {
    if (file.content().size() > kMostFileBytes ||
        total + file.content().size() > kMostBundleBytes) {
      file.clear_content();
      (*bundle->mutable_unknown())[file.path()] = "too large once its secrets were taken out";
    }
    total += file.content().size();
  }
  for (auto& argument : *bundle->mutable_arguments()) {
    if (argument.size() <= kMostArgumentBytes) continue;
    argument = ToUtf8(argument.substr(0, kMostArgumentBytes));
    (*bundle->mutable_unknown())["arguments"] = "longer than what is kept; the end is cut off";
  }
}

/// Takes secrets out of contents and arguments; a file that the job's user may not read is left
/// out.
void CleanFiles(const UserAccess* user, const platform::Fs& fs, const std::string& work_dir,
                data::v1::SourceBundle* bundle) {
  int64_t replaced = 0;
  for (auto& file : *bundle->mutable_files()) {
    const bool is_script = file.path() == bundle->script_path();
    if (user != nullptr && !is_script) {
      const std::string path =
          file.path().starts_with('/') ? file.path() : platform::JoinPath(work_dir, file.path());
      const auto real = fs.RealPath(path);
      if (!real.ok() || !user->MayRead(fs, *real)) {
        file.clear_content();
        (*bundle->mutable_unknown())[file.path()] = "the job's user may not read it";
        continue;
      }
    }
    if (!file.has_content()) continue;
    FilteredText filtered = FilterSecrets(file.content());
    if (filtered.replaced == 0) continue;
    replaced += filtered.replaced;
    file.set_content(std::move(filtered.text));
  }
  std::vector<std::string> arguments(bundle->arguments().begin(), bundle->arguments().end());
  if (const int64_t of_arguments = FilterArguments(&arguments); of_arguments > 0) {
    replaced += of_arguments;
    bundle->clear_arguments();
    for (auto& argument : arguments) bundle->add_arguments(std::move(argument));
  }
  if (replaced > 0)
    (*bundle->mutable_unknown())["secrets"] =
        std::to_string(replaced) +
        " secrets were taken out of contents and arguments; hashes are of the unchanged bytes";
}

}  // namespace

CommandParts SplitCommand(const std::string& command, const platform::Fs& fs) {
  CommandParts out;
  size_t script_end = std::string::npos;
  for (size_t blank = command.find(' ');; blank = command.find(' ', blank + 1)) {
    const auto info = fs.Stat(command.substr(0, blank));
    if (info.ok() && info->is_regular)
      script_end = blank == std::string::npos ? command.size() : blank;
    if (blank == std::string::npos) break;
  }
  if (script_end == std::string::npos) script_end = std::min(command.find(' '), command.size());
  out.script = command.substr(0, script_end);
  if (script_end < command.size())
    for (std::string_view word : Split(std::string_view(command).substr(script_end + 1), ' '))
      if (!word.empty()) out.arguments.emplace_back(word);
  return out;
}

Result<UserAccess> EvidenceReader::Access(const std::string& user) {
  if (user.empty()) return Error(Code::kNotFound, "the job's user is not known");
  return UserAccess::Of(user);
}

const std::string* EvidenceReader::Script(const RunState& run, std::string* why) {
  const int64_t owner = run.array_job_id.value_or(run.id.job_id);
  if (cached_job_ == owner && cached_submit_ == run.id.submit) return &cached_script_;
  auto script = tools_.BatchScript(run.id.job_id);
  if (!script.ok()) {
    *why = script.error().message();
    return nullptr;
  }
  cached_job_ = owner;
  cached_submit_ = run.id.submit;
  cached_script_ = std::move(*script);
  return &cached_script_;
}

data::v1::SourceBundle EvidenceReader::Bundle(const RunState& run) {
  data::v1::SourceBundle out;
  const auto fail = [&](const std::string& what, const std::string& why) {
    *out.mutable_key() = KeyOfRun(run);
    (*out.mutable_unknown())[what] = ToUtf8(why);
    return out;
  };
  if (run.batch == false) return fail("script", "an interactive job has no batch script");
  std::string why;
  const std::string* script = Script(run, &why);
  if (script == nullptr) return fail("script", why);
  submission::BundleInput input;
  input.script = *script;
  const auto access = Access(run.user);
  {
    const auto identity = access.ok() ? access->Assume() : std::nullopt;
    const CommandParts parts = SplitCommand(run.command, fs_);
    input.script_path = parts.script;
    input.arguments = parts.arguments;
  }
  input.work_dir = run.work_dir;
  input.environment_names = ExportedNames(run.submit_line);
  if (access.ok()) {
    input.home = access->home;
    if (geteuid() == 0)
      input.read_as = submission::FileIdentity{access->uid, access->gid, access->gids};
  }
  auto bundle = submission::CollectBundle(input, fs_);
  if (!bundle.ok()) return fail("script", bundle.error().message());
  out = submission::ToProto(*bundle);
  *out.mutable_key() = KeyOfRun(run);
  if (!access.ok()) {
    // Whose rights to read with is not known: keep the script, which the scheduler gave.
    for (auto& file : *out.mutable_files())
      if (file.path() != out.script_path()) file.clear_content();
    (*out.mutable_unknown())["sources"] = ToUtf8(access.error().message());
  }
  // What was read with the user's rights needs no second look, and root may have no right to one.
  CleanFiles(access.ok() && !input.read_as ? &*access : nullptr, fs_, bundle->work_dir, &out);
  KeepBounds(&out);
  return out;
}

EvidenceReader::LogPaths EvidenceReader::FindLogPaths(const RunState& run) {
  LogPaths paths;
  if (!run.stdout_path.empty()) {
    paths.out = run.stdout_path;
    // Empty in scontrol of 26.05 when both go to one file.
    paths.err = run.stderr_path.empty() ? run.stdout_path : run.stderr_path;
    return paths;
  }
  if (run.batch == false) {
    paths.why_unknown = "an interactive job writes to its terminal";
    return paths;
  }
  // scontrol forgot the job: what sbatch was told, else what the script says, else the default.
  std::string why;
  const std::string* script = Script(run, &why);
  if (script == nullptr) {
    paths.why_unknown = "the scheduler forgot the job's paths and its script: " + why;
    return paths;
  }
  const auto parsed = submission::ReadSbatchScript(*script);
  const auto option = [&](const std::string& name, char letter) {
    if (auto value = SubmitLineOption(run.submit_line, name, letter)) return *value;
    const auto* directive = parsed.Find(name);
    return directive == nullptr ? std::string() : directive->value;
  };
  LogPathContext context;
  context.job_id = run.id.job_id;
  context.array_job_id = run.array_job_id;
  context.array_task_id = run.array_task_id;
  context.job_name = run.name;
  context.user = run.user;
  context.work_dir = run.work_dir;
  if (const auto nodes = ExpandHostList(run.node_list); nodes && !nodes->empty())
    context.first_node = nodes->front();
  const std::string error_pattern = option("error", 'e');
  const auto out = ExpandLogPath(option("output", 'o'), context);
  const auto err = error_pattern.empty() ? out : ExpandLogPath(error_pattern, context);
  if (!out || !err) paths.why_unknown = "the file name pattern could not be expanded";
  paths.out = out.value_or("");
  paths.err = err.value_or("");
  return paths;
}

data::v1::LogTail EvidenceReader::Tail(const RunState& run, const std::string& stream,
                                       const std::string& path, const std::string& why_unknown) {
  data::v1::LogTail out;
  *out.mutable_key() = KeyOfRun(run);
  out.set_stream(stream);
  out.set_path(ToUtf8(path));
  if (path.empty()) {
    out.set_unknown_reason(ToUtf8(why_unknown));
    return out;
  }
  const auto access = Access(run.user);
  if (!access.ok()) {
    out.set_unknown_reason(ToUtf8(access.error().message()));
    return out;
  }
  // More than is kept, so that a secret which the cut would split is seen whole.
  auto tail = ReadTailAs(*access, fs_, path, kLogTailBytes + 4096);
  if (!tail.ok()) {
    out.set_unknown_reason(ToUtf8(tail.error().message()));
    return out;
  }
  FilteredText filtered = FilterSecrets(tail->bytes);
  if (filtered.text.size() > kLogTailBytes) {
    const size_t cut = filtered.text.size() - kLogTailBytes;
    filtered.text.erase(0, cut);
    tail->offset += static_cast<int64_t>(cut);
  }
  out.set_total_bytes(tail->total);
  out.set_tail_offset(tail->offset);
  out.set_filtered_secrets(filtered.replaced);
  out.set_content(std::move(filtered.text));
  return out;
}

std::vector<data::v1::LogTail> EvidenceReader::LogTails(const RunState& run) {
  std::vector<data::v1::LogTail> out;
  const LogPaths paths = FindLogPaths(run);
  out.push_back(Tail(run, "stdout", paths.out, paths.why_unknown));
  if (!paths.err.empty() && paths.err == paths.out)
    out.push_back(Tail(run, "stderr", "", "stderr goes to the file of stdout"));
  else
    out.push_back(Tail(run, "stderr", paths.err, paths.why_unknown));
  return out;
}

}  // namespace expanse::collect::slurm
