// SPDX-License-Identifier: Apache-2.0
#include "intelligence/analyse/submission_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"

namespace expanse::intelligence::analyse {
namespace {

constexpr size_t kMostWarnings = 20;

bool EndsIn(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [text](std::string_view suffix) { return text.ends_with(suffix); });
}

/// A script that sbatch could be given. A program of another language is one when it carries
/// directives.
bool IsBatchScript(const std::string& target, const submission::SbatchScript& sbatch) {
  if (!sbatch.lines.empty() || EndsIn(target, {".slurm", ".sbatch", ".sh", ".bash"})) return true;
  return sbatch.interpreter.ends_with("sh") || sbatch.interpreter.find("/sh ") != std::string::npos;
}

Result<std::string> ScriptOf(const v1::AnalyseRequest& request) {
  const auto& bundle = request.bundle();
  for (const auto& file : bundle.files()) {
    if (file.path() != bundle.script_path()) continue;
    if (!file.has_content()) break;
    if (platform::Sha256Hex(file.content()) != file.sha256()) {
      return Error(Code::kInvalidArgument,
                   fmt::format("bundle: the content of {} does not match its SHA-256",
                               EscapeForTerminal(file.path())));
    }
    return file.content();
  }
  return Error(Code::kInvalidArgument, "bundle: the target's own content is missing");
}

Status CheckKind(const v1::AnalyseRequest& request) {
  const auto type = request.bundle().key().source_type();
  const bool kubernetes = type == common::v1::SOURCE_TYPE_KUBERNETES;
  if (!kubernetes && type != common::v1::SOURCE_TYPE_NOMAD) return {};
  return Error(Code::kUnimplemented,
               fmt::format("analyse {}: {} are not read yet; SLURM batch scripts and source files "
                           "are",
                           EscapeForTerminal(request.target()),
                           kubernetes ? "Kubernetes manifests" : "Nomad jobspecs"));
}

void Warn(SubmissionView* view, std::string text) {
  if (view->warnings.size() < kMostWarnings) view->warnings.push_back(std::move(text));
}

void AddNotes(SubmissionView* view) {
  const auto add = [view](const submission::ScriptNote& note, std::string_view prefix) {
    Warn(view, note.line > 0 ? fmt::format("line {}: {}{}", note.line, prefix, note.text)
                             : fmt::format("{}{}", prefix, note.text));
  };
  for (const auto* notes : {&view->sbatch.refusals, &view->request.refusals})
    for (const auto& note : *notes) add(note, "sbatch would refuse the script: ");
  for (const auto* notes : {&view->sbatch.warnings, &view->request.warnings})
    for (const auto& note : *notes) add(note, "");
  if (view->sbatch.components > 1) {
    Warn(view, fmt::format("a heterogeneous job of {} components: figures are those of the first",
                           view->sbatch.components));
  }
}

void ReadRequested(SubmissionView* view, const data::v1::PartitionFacts* partition) {
  const auto& r = view->request;
  auto& out = view->stated;
  out.cpu_cores = r.total_cores;
  if (r.total_memory) {
    out.memory_bytes = r.total_memory->value;
  } else if (r.memory_form == submission::MemoryForm::kDefault && partition != nullptr &&
             partition->default_memory_per_cpu_bytes() > 0) {
    out.memory_bytes = partition->default_memory_per_cpu_bytes() * r.total_cores;
    Warn(view, fmt::format("the script states no memory; partition {} gives {} MiB for each core",
                           EscapeForTerminal(partition->name()),
                           partition->default_memory_per_cpu_bytes() / kMiB));
  } else {
    const auto reason = r.unresolved.find("memory");
    out.unknown["host_ram_requested_bytes"] =
        reason != r.unresolved.end() ? reason->second : "the script states none";
  }
  if (r.time && r.time->limit) {
    out.walltime_seconds = r.time->limit->count();
  } else if (!r.time && partition != nullptr && partition->default_walltime_seconds() > 0) {
    out.walltime_seconds = partition->default_walltime_seconds();
    Warn(view, fmt::format("the script states no time limit; partition {} gives {} minutes",
                           EscapeForTerminal(partition->name()),
                           partition->default_walltime_seconds() / 60));
  } else {
    const auto reason = r.unresolved.find("walltime");
    out.unknown["walltime_seconds"] =
        reason != r.unresolved.end() ? reason->second : "the script states none";
  }
  if (r.total_gpus) out.gpu_count = r.total_gpus;
}

/// Figures the user states on the command line stand for the script's.
void ApplyOverrides(const v1::AnalyseRequest& request, Requested* out) {
  if (request.has_cpu_cores()) out->cpu_cores = request.cpu_cores();
  if (request.has_memory_bytes()) {
    out->memory_bytes = request.memory_bytes();
    out->unknown.erase("host_ram_requested_bytes");
  }
  if (request.has_gpu_count()) out->gpu_count = request.gpu_count();
  if (request.has_walltime_seconds()) {
    out->walltime_seconds = request.walltime_seconds();
    out->unknown.erase("walltime_seconds");
  }
}

}  // namespace

const data::v1::PartitionFacts* PartitionOf(const SubmissionView& view,
                                            const data::v1::ComputeFacts* facts) {
  if (facts == nullptr) return nullptr;
  // With several names the scheduler takes the first that can start the job: not known here.
  for (const auto& partition : facts->partitions()) {
    if (view.request.partition.empty() ? partition.is_default()
                                       : partition.name() == view.request.partition) {
      return &partition;
    }
  }
  return nullptr;
}

Result<SubmissionView> ReadSubmission(const v1::AnalyseRequest& request,
                                      const data::v1::ComputeFacts* facts) {
  EXPANSE_CHECK_OK(CheckKind(request));
  SubmissionView view;
  EXPANSE_TRY(view.script, ScriptOf(request));
  const std::string target =
      request.target().empty() ? request.bundle().script_path() : request.target();
  view.sbatch = submission::ReadSbatchScript(view.script);
  view.is_batch_script = IsBatchScript(target, view.sbatch);
  view.job_name = platform::BaseName(target);
  if (view.is_batch_script) {
    view.request = submission::ReadSbatchRequest(view.sbatch, target);
    view.job_name = ToUtf8(view.request.job_name);
    view.nodes = std::max(view.request.total_nodes, 1);
    view.tasks = std::max(view.request.total_tasks, 1);
    AddNotes(&view);
    ReadRequested(&view, PartitionOf(view, facts));
  } else {
    Warn(&view,
         "a source file carries no resource request: figures come from --cpu, --memory, --gpu "
         "and --walltime; analyse the batch script that runs it for a recommendation with history");
    view.stated.unknown["host_ram_requested_bytes"] = "a source file states no memory";
    view.stated.unknown["walltime_seconds"] = "a source file states no time limit";
    view.stated.unknown["cpu_cores"] = "a source file states no cores";
  }
  view.requested = view.stated;
  ApplyOverrides(request, &view.requested);
  if (view.requested.cpu_cores) view.requested.unknown.erase("cpu_cores");
  return view;
}

}  // namespace expanse::intelligence::analyse
