// SPDX-License-Identifier: Apache-2.0
// What a batch script asks for, as values: the options in effect with sbatch's own defaults. What
// only the cluster knows (a partition's default memory, the size of a node) is named, not guessed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "base/units.h"
#include "submission/slurm_script/sbatch_script.h"
#include "submission/slurm_script/sbatch_values.h"

namespace expanse::submission {

enum class MemoryForm { kDefault, kPerNode, kPerCpu, kPerGpu };
/// "mem", "mem-per-cpu", "mem-per-gpu", "default".
std::string_view MemoryFormName(MemoryForm form);

struct SbatchRequest {
  std::string job_name;  // --job-name, else the script's base name
  std::string account;
  std::string partition;
  std::string qos;
  std::string constraint;
  std::string dependency;
  std::string chdir;
  std::string output;
  std::string error;
  std::string export_names;  // value of --export

  std::optional<SbatchNodes> nodes;
  std::optional<int32_t> ntasks;
  std::optional<int32_t> cpus_per_task;
  std::optional<int32_t> ntasks_per_node;
  std::optional<int32_t> cpus_per_gpu;
  bool exclusive = false;

  MemoryForm memory_form = MemoryForm::kDefault;
  std::optional<Bytes> memory;     // in the unit of its form
  bool whole_node_memory = false;  // --mem=0

  std::optional<SbatchTime> time;
  std::optional<SbatchTime> time_min;
  std::optional<SbatchArrayShape> array;

  std::string gpu_option;  // the option that asks for GPUs: "gpus", "gres", ...; empty: none
  std::string gpu_type;

  // Of the whole job (of one array task), with sbatch's defaults applied.
  int32_t total_nodes = 1;  // the minimum
  int32_t total_tasks = 1;
  int32_t total_cores = 1;
  std::optional<Bytes> total_memory;
  std::optional<int32_t> total_gpus;

  std::map<std::string, std::string> unresolved;  // field to reason
  std::vector<ScriptNote> refusals;               // values that sbatch does not take
  std::vector<ScriptNote> warnings;
};

/// script_name: for the default job name; a path or a base name.
SbatchRequest ReadSbatchRequest(const SbatchScript& script, std::string_view script_name,
                                int component = 0);

}  // namespace expanse::submission
