// SPDX-License-Identifier: Apache-2.0
#include "domain/failure_class.h"

#include <array>

#include "base/strings.h"

namespace expanse::domain {
namespace {

constexpr std::string_view kMemory = "host memory";
constexpr std::string_view kGpuMemory = "GPU memory";
constexpr std::string_view kGpu = "GPU hardware and driver";
constexpr std::string_view kComm = "communication";
constexpr std::string_view kCrash = "crash";
constexpr std::string_view kEnding = "time, priority, node, cancellation";
constexpr std::string_view kSched = "scheduling";
constexpr std::string_view kEnv = "environment";
constexpr std::string_view kStorage = "storage";
constexpr std::string_view kContainer = "containers and orchestration";
constexpr std::string_view kService = "external services";
constexpr std::string_view kFine = "fine";

constexpr std::array<FailureClass, 72> kClasses{{
    {"host_out_of_memory", kMemory,
     "host memory ran out: a process was killed at the memory limit or was refused memory",
     "oom,oom_killed,out_of_memory,cpu_out_of_memory,host_oom"},
    {"jvm_heap_exhausted", kMemory, "the Java heap was full while the allocation still had memory",
     "java_heap_space"},
    {"shared_memory_exhausted", kMemory, "the shared memory of the job (/dev/shm) was full",
     "shm_exhausted"},
    {"bus_error", kMemory, "a process received SIGBUS, and which backing store failed was not seen",
     "sigbus"},
    {"unknown_kill", kMemory, "a process was killed by SIGKILL and who sent it was not seen",
     "killed,sigkill"},
    {"gpu_out_of_memory", kGpuMemory, "an allocation of GPU memory failed",
     "cuda_out_of_memory,device_out_of_memory,cuda_oom"},
    {"gpu_kv_cache_insufficient", kGpuMemory,
     "a serving engine could not reserve its cache within its own memory settings", ""},
    {"gpu_fallen_off_bus", kGpu, "a GPU disappeared from the PCIe bus", "xid_79"},
    {"gpu_memory_ecc_error", kGpu, "GPU memory had an uncorrectable error", "gpu_ecc_error"},
    {"gpu_nvlink_error", kGpu, "a link between GPUs (NVLink) failed", "nvlink_error"},
    {"gpu_driver_firmware_fault", kGpu, "the firmware of a GPU stopped answering its driver",
     "gsp_timeout"},
    {"gpu_illegal_access", kGpu, "a GPU kernel did an illegal access or instruction",
     "cuda_illegal_memory_access"},
    {"cuda_device_assert", kGpu, "an assertion inside a GPU kernel failed", ""},
    {"gpu_fabric_not_ready", kGpu, "the fabric that connects the GPUs was not initialised", ""},
    {"gpu_driver_toolkit_mismatch", kGpu,
     "the GPU driver does not fit the CUDA runtime of the program", ""},
    {"gpu_arch_unsupported", kGpu, "the program has no GPU code for this GPU's architecture", ""},
    {"gpu_not_visible", kGpu, "no GPU or GPU driver was visible to the program", "no_cuda_device"},
    {"gpu_idle_allocation", kGpu, "GPUs were held and not used", "gpu_idle"},
    {"nccl_timeout", kComm,
     "a collective operation timed out and no earlier failure of a rank was seen",
     "collective_timeout"},
    {"nccl_network_error", kComm, "the network transport of the collective library failed", ""},
    {"mpi_transport_error", kComm, "the network transport of MPI failed", ""},
    {"mpi_launch_error", kComm, "MPI processes could not be started or could not join each other",
     ""},
    {"port_conflict", kComm, "a network port that the program needs was in use already",
     "address_in_use"},
    {"job_hang", kComm,
     "the processes waited for each other without an error until the run was ended", "hang"},
    {"data_loader_stalled", kComm, "the program waited for its data loader", ""},
    {"segmentation_fault", kCrash, "a process accessed memory that it may not access (SIGSEGV)",
     "segfault,sigsegv"},
    {"illegal_instruction", kCrash,
     "a process executed an instruction that the processor does not have (SIGILL)", "sigill"},
    {"floating_point_exception", kCrash, "an arithmetic trap ended a process (SIGFPE)", "sigfpe"},
    {"training_diverged", kCrash,
     "the training became numerically unstable and the program stopped it", "nan_loss"},
    {kUnattributed, kCrash, "a task failed and its own error is not in the evidence",
     "unattributed,exit_nonzero,nonzero_exit,unknown_failure"},
    {"walltime_exceeded", kEnding, "the run was still working when its time limit passed",
     "timeout,time_limit,walltime"},
    {"requeued_near_time_limit", kEnding,
     "the job asked to be requeued shortly before its time limit", ""},
    {"job_preempted", kEnding, "the scheduler or provider took the resources back for other work",
     "preempted,preemption"},
    {"node_failure", kEnding, "a node of the run failed", "node_fail,nodefail"},
    {"job_cancelled", kEnding, "somebody or something cancelled the run", "cancelled,canceled"},
    {"pod_evicted_node_pressure", kEnding, "the kubelet evicted the pod because its node ran short",
     "evicted"},
    {"probe_killed", kEnding, "the container was restarted after failed liveness probes", ""},
    {"scheduling_unsatisfiable", kSched, "nothing in the cluster can host the request",
     "unschedulable"},
    {"invalid_job_request", kSched, "an account, partition or limit policy refuses the request",
     "rejected"},
    {"dependency_never_satisfied", kSched, "a job that this one depends on did not end as required",
     ""},
    {"prolog_or_launch_failure", kSched,
     "the scheduler could not prepare the node or launch the job", "launch_failure"},
    {"scheduler_control_plane_error", kSched,
     "the scheduler itself could not be reached or could not work", ""},
    {"glibc_too_old", kEnv, "the C or C++ library of the node is older than the program needs", ""},
    {"missing_shared_library", kEnv, "a shared library that the program needs was not found", ""},
    {"environment_module_error", kEnv, "an environment module could not be loaded", ""},
    {"environment_activation_failed", kEnv, "the software environment was not activated", ""},
    {"missing_python_module", kEnv, "a Python module that the program imports was not found",
     "module_not_found"},
    {"python_exception", kEnv, "the Python program raised an error that it did not handle",
     "python_error"},
    {"command_not_found", kEnv, "a command of the job was not found", ""},
    {"permission_denied", kEnv, "the system denied the job's access", ""},
    {"file_not_found", kEnv, "a file or directory that the job needs was not found",
     "no_such_file"},
    {"thread_or_process_limit", kEnv, "no further thread or process could be created", ""},
    {"too_many_open_files", kEnv, "the limit of open files was reached", ""},
    {"disk_full", kStorage, "a file system was full", "no_space_left"},
    {"disk_quota_exceeded", kStorage, "a storage quota was used up", "quota_exceeded"},
    {"stale_file_handle", kStorage, "a network file system no longer knew an open file", ""},
    {"filesystem_io_error", kStorage, "a file system returned an input/output error", "io_error"},
    {"checkpoint_corrupt", kStorage,
     "a saved file could not be read because its content is damaged or cut short", ""},
    {"checkpoint_incompatible", kStorage, "a checkpoint does not fit the program's model", ""},
    {"dataset_checksum_mismatch", kStorage, "a data file does not have its expected checksum", ""},
    {"image_pull_failed", kContainer, "the container image could not be fetched", ""},
    {"container_config_error", kContainer,
     "the container's configuration names something that does not exist", ""},
    {"container_arch_mismatch", kContainer,
     "the program is built for another processor architecture", "exec_format_error"},
    {"container_runtime_error", kContainer, "the container runtime could not start the container",
     ""},
    {"volume_mount_failed", kContainer, "a volume could not be attached or mounted", ""},
    {"artifact_download_failed", kContainer,
     "an artefact that the job declares could not be downloaded", ""},
    {"task_driver_failure", kContainer, "the orchestrator's task driver could not start the task",
     ""},
    {"secret_backend_failure", kContainer, "a secret could not be read from its store", ""},
    {"license_unavailable", kService, "a software licence could not be obtained",
     "licence_unavailable"},
    {"network_unreachable", kService, "a network service could not be reached or resolved", ""},
    {"hub_auth_denied", kService, "a model or data service refused the credentials", ""},
    {kNoFailure, kFine, "nothing failed", "ok,healthy"},
}};

}  // namespace

std::span<const FailureClass> FailureClasses() { return kClasses; }

const FailureClass* FindFailureClass(std::string_view name_or_alias) {
  for (const auto& c : kClasses)
    if (c.name == name_or_alias) return &c;
  for (const auto& c : kClasses)
    for (std::string_view alias : Split(c.aliases, ','))
      if (!alias.empty() && alias == name_or_alias) return &c;
  return nullptr;
}

}  // namespace expanse::domain
