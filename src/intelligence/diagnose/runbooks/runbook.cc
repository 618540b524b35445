// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/runbooks/runbook.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"
#include "domain/failure_class.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr Runbook kRunbooks[] = {
    {"host_out_of_memory", 4, HostOutOfMemory, "oom_kill"},
    {"jvm_heap_exhausted", 4, nullptr},
    {"shared_memory_exhausted", 4, SharedMemoryExhausted, "shm"},
    {"bus_error", 3, CrashSignal},
    {"unknown_kill", 1, UnknownKill},
    {"gpu_out_of_memory", 4, GpuOutOfMemory},
    {"gpu_kv_cache_insufficient", 4, nullptr},
    {"gpu_fallen_off_bus", 6, nullptr},
    {"gpu_memory_ecc_error", 6, nullptr},
    {"gpu_nvlink_error", 6, nullptr},
    {"gpu_driver_firmware_fault", 6, nullptr},
    {"gpu_illegal_access", 3, nullptr},
    {"cuda_device_assert", 4, nullptr},
    {"gpu_fabric_not_ready", 5, nullptr, "fabric"},
    {"gpu_driver_toolkit_mismatch", 4, nullptr, "driver"},
    {"gpu_arch_unsupported", 4, nullptr, "model"},
    {"gpu_not_visible", 4, nullptr, "devices|dev_nvidia"},
    {"gpu_idle_allocation", 6, GpuIdleAllocation, "processes_in_cgroup|policy"},
    {"nccl_timeout", 2, nullptr},
    {"nccl_network_error", 2, nullptr},
    {"mpi_transport_error", 2, nullptr},
    {"mpi_launch_error", 4, nullptr},
    {"port_conflict", 4, nullptr, "port"},
    {"job_hang", 3, JobHang, "stack"},
    {"data_loader_stalled", 3, DataLoaderStalled, "stack"},
    {"segmentation_fault", 3, CrashSignal, "stack_kb"},
    {"illegal_instruction", 3, CrashSignal, "cpu_flags|cpu_model"},
    {"floating_point_exception", 3, CrashSignal},
    {"training_diverged", 3, nullptr},
    {domain::kUnattributed, 0, TaskFailureUnattributed},
    {"walltime_exceeded", 1, WalltimeExceeded},
    {"requeued_near_time_limit", 5, RequeuedNearTimeLimit},
    {"job_preempted", 6, JobPreempted},
    {"node_failure", 5, NodeFailure, "node_reason|node_state|boot"},
    {"job_cancelled", 4, JobCancelled, "DesiredStatus"},
    {"pod_evicted_node_pressure", 5, nullptr},
    {"probe_killed", 5, nullptr},
    {"scheduling_unsatisfiable", 6, nullptr},
    {"invalid_job_request", 6, InvalidJobRequest},
    {"dependency_never_satisfied", 6, DependencyNeverSatisfied, "Dependency"},
    {"prolog_or_launch_failure", 6, LaunchFailure},
    {"scheduler_control_plane_error", 6, nullptr, "disk"},
    {"glibc_too_old", 4, nullptr},
    {"missing_shared_library", 4, nullptr},
    {"environment_module_error", 4, nullptr},
    {"environment_activation_failed", 4, EnvironmentActivation, "which_python|CONDA_DEFAULT_ENV"},
    {"missing_python_module", 4, nullptr},
    {"python_exception", 1, nullptr},
    {"command_not_found", 4, CommandNotFound},
    {"permission_denied", 4, PermissionDenied},
    {"file_not_found", 4, nullptr},
    {"thread_or_process_limit", 4, nullptr, "nproc|pids"},
    {"too_many_open_files", 4, nullptr, "nofile|open_files"},
    {"disk_full", 4, nullptr, "disk"},
    {"disk_quota_exceeded", 4, nullptr, "quota"},
    {"stale_file_handle", 4, nullptr},
    {"filesystem_io_error", 4, nullptr},
    {"checkpoint_corrupt", 4, nullptr},
    {"checkpoint_incompatible", 4, nullptr},
    {"dataset_checksum_mismatch", 4, nullptr},
    {"image_pull_failed", 6, nullptr},
    {"container_config_error", 6, nullptr},
    {"container_arch_mismatch", 4, nullptr, "arch"},
    {"container_runtime_error", 5, nullptr},
    {"volume_mount_failed", 6, nullptr},
    {"artifact_download_failed", 6, nullptr},
    {"task_driver_failure", 6, nullptr},
    {"secret_backend_failure", 6, nullptr},
    {"license_unavailable", 4, nullptr},
    {"network_unreachable", 4, nullptr},
    {"hub_auth_denied", 4, nullptr},
};

std::string Article(std::string_view source) {
  return source == "kernel" ? "the kernel log" : std::string(source);
}

}  // namespace

std::span<const Runbook> Runbooks() { return kRunbooks; }

std::vector<FactId> FactList(std::initializer_list<FactId> ids) {
  std::vector<FactId> out;
  for (FactId id : ids)
    if (id != 0 && std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
  return out;
}

std::string MemoryText(int64_t bytes) {
  return bytes >= kGiB ? FormatGibProse({bytes}) : FormatSizeProse({bytes});
}

std::string DurationText(int64_t seconds) { return FormatDuration(Seconds(seconds)); }

std::string DefinitionOf(std::string_view failure_class) {
  const auto* row = domain::FindFailureClass(failure_class);
  return row == nullptr ? std::string(failure_class) : std::string(row->definition);
}

Claim Opening(const CaseView& view) {
  Claim claim;
  claim.text = "the execution ended";
  if (!view.run->scheduler_state().empty())
    claim.text += " in state " + ToUtf8(view.run->scheduler_state());
  if (view.signal && !view.signal_is_guess)
    claim.text += " by signal " + std::to_string(*view.signal);
  else if (view.exit_code)
    claim.text += " with exit code " + std::to_string(*view.exit_code);
  if (view.elapsed_s) claim.text += " after " + DurationText(*view.elapsed_s);
  claim.text += ".";
  claim.facts = FactList({view.state, view.exit, view.elapsed});
  return claim;
}

Claim Quote(const Signal& signal) {
  return {Article(signal.source) + " says \"" + signal.hit.line + "\"", {signal.fact}};
}

void AddRelated(const CaseView& view, const Runbook& runbook, Finding& finding) {
  if (runbook.related.empty()) return;
  int added = 0;
  for (size_t i = 0; i < view.in->observations.size() && added < 3; ++i) {
    const auto& o = view.in->observations[i];
    for (std::string_view part : Split(runbook.related, '|')) {
      if (o.key.find(part) == std::string::npos) continue;
      finding.why.push_back(
          {"The " + o.source + " reports " + ToUtf8(o.key) + " = " + Shorten(o.value, 120) + ".",
           {view.observations[i]}});
      ++added;
      break;
    }
  }
}

std::optional<Finding> PatternFinding(const CaseView& view, const Runbook& runbook) {
  const Signal* best = view.Best(runbook.failure_class);
  if (best == nullptr) return std::nullopt;
  Finding f;
  f.failure_class = runbook.failure_class;
  f.strength = best->hit.strength;
  f.stream = best->stream;
  f.at = best->hit.begin;
  f.what.push_back(Opening(view));
  Claim why = Quote(*best);
  why.text += ": " + DefinitionOf(runbook.failure_class) + ".";
  // Other lines that say the same support the same sentence.
  int more = 0;
  for (const auto& s : view.signals)
    if (s.hit.failure_class == runbook.failure_class && s.fact != best->fact && more < 3) {
      why.facts.push_back(s.fact);
      ++more;
    }
  if (more > 0) {
    // Independent lines of one class strengthen it; a repeated guess stays a guess.
    if (f.strength >= 60) f.strength = std::min(f.strength + 2, 98);
  }
  f.why.push_back(std::move(why));
  if (best->location != 0)
    f.why.push_back({"It was raised at " + view.ledger.Get(best->location).value() + ".",
                     {best->location, best->fact}});
  AddRelated(view, runbook, f);
  return f;
}

}  // namespace expanse::intelligence::diagnose
