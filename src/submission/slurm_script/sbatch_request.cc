// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_request.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "platform/fs/fs.h"

namespace expanse::submission {
namespace {

class Interpreter {
 public:
  Interpreter(const SbatchScript& script, std::string_view script_name, int component)
      : script_(script), component_(component) {
    out_.job_name = platform::BaseName(script_name);
  }

  SbatchRequest Read() {
    ReadNames();
    ReadCounts();
    ReadMemory();
    ReadTime();
    ReadGpus();
    ReadArray();
    CheckOverridden();
    DeriveTasks();
    DeriveGpus();
    DeriveCores();
    DeriveMemory();
    return std::move(out_);
  }

 private:
  const SbatchDirective* Find(std::string_view name) const {
    return script_.Find(name, component_);
  }

  void Refuse(const SbatchDirective& d, const Error& error) {
    out_.refusals.push_back({d.line, error.message()});
    out_.unresolved[std::string(d.option->name)] = error.message();
  }

  void ReadNames() {
    const auto text = [this](std::string_view name, std::string* to) {
      if (const auto* d = Find(name)) *to = d->value;
    };
    text("job-name", &out_.job_name);
    text("account", &out_.account);
    text("partition", &out_.partition);
    text("qos", &out_.qos);
    text("constraint", &out_.constraint);
    text("dependency", &out_.dependency);
    text("chdir", &out_.chdir);
    text("output", &out_.output);
    text("error", &out_.error);
    text("export", &out_.export_names);
    out_.exclusive = Find("exclusive") != nullptr;
  }

  void ReadCount(std::string_view name, int32_t least, std::optional<int32_t>* to) {
    const auto* d = Find(name);
    if (d == nullptr) return;
    auto count = ParseSbatchCount(d->value, name, least);
    if (count.ok()) {
      *to = *count;
    } else {
      Refuse(*d, count.error());
    }
  }

  void ReadCounts() {
    ReadCount("ntasks", 1, &out_.ntasks);
    ReadCount("cpus-per-task", 1, &out_.cpus_per_task);
    ReadCount("ntasks-per-node", 1, &out_.ntasks_per_node);
    ReadCount("tasks-per-node", 1, &out_.ntasks_per_node);
    ReadCount("cpus-per-gpu", 1, &out_.cpus_per_gpu);
    if (const auto* d = Find("nodes")) {
      auto nodes = ParseSbatchNodes(d->value);
      if (nodes.ok()) {
        out_.nodes = *nodes;
      } else {
        Refuse(*d, nodes.error());
      }
    }
    for (const auto* name : {"extra-node-info", "overcommit", "ntasks-per-gpu", "ntasks-per-tres",
                             "ntasks-per-socket", "ntasks-per-core", "nodelist", "nodefile"}) {
      if (Find(name) != nullptr) {
        out_.unresolved["cpu_cores"] =
            fmt::format("--{} makes the number of cores depend on the cluster", name);
      }
    }
  }

  void ReadMemory() {
    struct Form {
      std::string_view name;
      MemoryForm form;
    };
    const SbatchDirective* first = nullptr;
    for (const Form& f :
         {Form{"mem", MemoryForm::kPerNode}, Form{"mem-per-cpu", MemoryForm::kPerCpu},
          Form{"mem-per-gpu", MemoryForm::kPerGpu}}) {
      const auto* d = Find(f.name);
      if (d == nullptr) continue;
      if (first != nullptr) {
        Refuse(*d, Error(Code::kInvalidArgument, fmt::format("--{} and --{} exclude one another",
                                                             first->option->name, f.name)));
        continue;
      }
      first = d;
      out_.memory_form = f.form;
      auto size = ParseSbatchMemory(d->value);
      if (!size.ok()) {
        Refuse(*d, size.error());
        out_.unresolved["memory"] = size.error().message();
        continue;
      }
      if (size->value == 0) {
        out_.whole_node_memory = true;
        out_.unresolved["memory"] = fmt::format("--{}=0 asks for all memory of a node", f.name);
      } else {
        out_.memory = *size;
      }
    }
  }

  void ReadTimeOption(std::string_view name, std::optional<SbatchTime>* to) {
    const auto* d = Find(name);
    if (d == nullptr) return;
    auto time = ParseSbatchTime(d->value);
    if (time.ok()) {
      *to = *time;
    } else {
      Refuse(*d, time.error());
    }
  }

  void ReadTime() {
    ReadTimeOption("time", &out_.time);
    ReadTimeOption("time-min", &out_.time_min);
    if (!out_.time && out_.unresolved.count("time") == 0) {
      out_.unresolved["walltime"] = "no --time; the partition's default limit applies";
    } else if (out_.time && !out_.time->limit) {
      out_.unresolved["walltime"] = "--time states no limit; the partition's limit applies";
    }
  }

  void ReadGpus() {
    bool typed = false;
    bool untyped = false;
    for (const std::string_view name :
         {"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres"}) {
      const auto* d = Find(name);
      if (d == nullptr) continue;
      auto list = name == "gres" ? ParseSbatchGres(d->value) : ParseSbatchGpus(d->value, name);
      if (!list.ok()) {
        Refuse(*d, list.error());
        continue;
      }
      int64_t count = 0;
      bool any = false;
      for (const auto& gres : *list) {
        if (gres.name != "gpu") continue;
        any = true;
        count += gres.count;
        (gres.type.empty() ? untyped : typed) = true;
        if (!gres.type.empty()) out_.gpu_type = gres.type;
      }
      if (!any) continue;
      if (typed && untyped) {
        Refuse(*d, Error(Code::kInvalidArgument, "GPUs are asked for with a type and without one"));
      }
      if (name == "gpus-per-task") gpus_per_task_ = count;
      if (name == "gpus-per-node" || !out_.ntasks_per_node) sets_nodes_ = true;
      if (name == "gpus-per-node" || name == "gres") gpus_per_node_ = count;
      if (!out_.gpu_option.empty()) continue;
      out_.gpu_option = std::string(name);
      gpu_units_ = std::min<int64_t>(count, std::numeric_limits<int32_t>::max());
    }
    const auto* per_task = Find("gpus-per-task");
    if (per_task != nullptr && gpus_per_task_ > 0 && !out_.ntasks && !out_.ntasks_per_node &&
        !(out_.nodes && out_.nodes->min == out_.nodes->max && !out_.cpus_per_task) &&
        Find("gpus") == nullptr) {
      Refuse(*per_task, Error(Code::kInvalidArgument,
                              "--gpus-per-task needs --ntasks, --nodes or --gpus beside it"));
    }
  }

  void ReadArray() {
    const auto* d = Find("array");
    if (d == nullptr) return;
    auto array = ParseSbatchArray(d->value);
    if (array.ok()) {
      out_.array = *array;
    } else {
      Refuse(*d, array.error());
    }
  }

  /// sbatch reads every value, also of an option that a later one replaces.
  void CheckOverridden() {
    for (const auto& d : script_.directives) {
      if (d.effective || d.component != component_) continue;
      const Status status = CheckValue(d);
      if (!status.ok()) out_.refusals.push_back({d.line, status.error().message()});
    }
  }

  template <typename T>
  static Status StatusOf(const Result<T>& result) {
    return result.ok() ? Status() : Status(result.error());
  }

  static Status CheckValue(const SbatchDirective& d) {
    const auto name = d.option->name;
    if (name == "mem" || name == "mem-per-cpu" || name == "mem-per-gpu") {
      return StatusOf(ParseSbatchMemory(d.value));
    }
    if (name == "time" || name == "time-min") return StatusOf(ParseSbatchTime(d.value));
    if (name == "nodes") return StatusOf(ParseSbatchNodes(d.value));
    for (const auto* count : {"ntasks", "cpus-per-task", "ntasks-per-node", "tasks-per-node"})
      if (name == count) return StatusOf(ParseSbatchCount(d.value, name, 1));
    return {};
  }

  static int32_t Clamped(int64_t value) {
    return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
  }

  void DeriveTasks() {
    int32_t nodes = out_.nodes ? std::max(out_.nodes->min, 1) : 1;
    const bool open = !out_.nodes || out_.nodes->min < out_.nodes->max;
    if (open && sets_nodes_ && gpus_per_node_ > 0 && out_.gpu_option == "gpus") {
      nodes = Clamped(std::max<int64_t>(gpu_units_ / gpus_per_node_, nodes));
      out_.unresolved["cpu_cores"] = "--gpus with a number of GPUs per node sets the nodes later";
    }
    if (out_.ntasks) {
      out_.total_tasks = *out_.ntasks;
      if (out_.nodes && nodes > *out_.ntasks) {
        out_.warnings.push_back(
            {Find("nodes")->line, fmt::format("{} tasks cannot use {} nodes; sbatch takes {}",
                                              *out_.ntasks, nodes, *out_.ntasks)});
        nodes = *out_.ntasks;
      }
      if (!out_.nodes && out_.ntasks_per_node) {
        nodes = (*out_.ntasks + *out_.ntasks_per_node - 1) / *out_.ntasks_per_node;
      }
    } else if (out_.ntasks_per_node) {
      out_.total_tasks = Clamped(int64_t{nodes} * *out_.ntasks_per_node);
    } else if (gpus_per_task_ > 0 && out_.gpu_option == "gpus") {
      out_.total_tasks = Clamped(std::max<int64_t>(gpu_units_ / gpus_per_task_, 1));
    } else {
      out_.total_tasks = nodes;
    }
    out_.total_nodes = nodes;
    CheckGpuTasks();
  }

  /// GPUs for each task and GPUs in all (or on each node) say how many tasks there are.
  void CheckGpuTasks() {
    if (out_.gpu_option == "gpus" && out_.nodes && gpu_units_ < out_.total_nodes) {
      Refuse(*Find("gpus"), Error(Code::kInvalidArgument, "fewer GPUs in all than nodes"));
    }
    if (gpus_per_task_ <= 0) return;
    const bool in_all =
        out_.gpu_option == "gpus" && gpu_units_ / gpus_per_task_ != out_.total_tasks;
    const bool per_node = gpus_per_node_ > 0 && out_.ntasks_per_node &&
                          gpus_per_node_ / gpus_per_task_ != *out_.ntasks_per_node;
    if (!in_all && !per_node) return;
    Refuse(*Find("gpus-per-task"),
           Error(Code::kInvalidArgument,
                 "the GPUs asked for and --gpus-per-task give another number of tasks than the "
                 "options for tasks"));
  }

  void DeriveGpus() {
    if (out_.gpu_option.empty()) return;
    int64_t total = gpu_units_;
    if (out_.gpu_option == "gpus-per-node" || out_.gpu_option == "gres") total *= out_.total_nodes;
    if (out_.gpu_option == "gpus-per-task") total *= out_.total_tasks;
    if (out_.gpu_option == "gpus-per-socket") {
      out_.unresolved["gpu_count"] = "--gpus-per-socket depends on the sockets of the node";
      return;
    }
    out_.total_gpus = Clamped(total);
  }

  void DeriveCores() {
    int64_t cores = int64_t{out_.total_tasks} * out_.cpus_per_task.value_or(1);
    if (out_.cpus_per_gpu && out_.total_gpus) {
      cores = std::max(cores, int64_t{*out_.cpus_per_gpu} * *out_.total_gpus);
    }
    out_.total_cores = Clamped(std::max<int64_t>(cores, 1));
    if (out_.exclusive) {
      out_.unresolved["cpu_cores"] = "--exclusive gives the job every core of its nodes";
    }
  }

  void DeriveMemory() {
    if (!out_.memory) {
      if (!out_.whole_node_memory && out_.unresolved.count("memory") == 0) {
        out_.unresolved["memory"] =
            "no --mem, --mem-per-cpu or --mem-per-gpu; the partition's default applies";
      }
      return;
    }
    int64_t units = 1;
    switch (out_.memory_form) {
      case MemoryForm::kPerNode:
        units = out_.total_nodes;
        break;
      case MemoryForm::kPerCpu:
        units = out_.total_cores;
        break;
      case MemoryForm::kPerGpu:
        if (!out_.total_gpus) {
          out_.unresolved["memory"] = "--mem-per-gpu without a known number of GPUs";
          return;
        }
        units = *out_.total_gpus;
        break;
      case MemoryForm::kDefault:
        return;
    }
    if (units > 0 && out_.memory->value > std::numeric_limits<int64_t>::max() / units) {
      out_.unresolved["memory"] = "the total is too large to be real";
      return;
    }
    out_.total_memory = Bytes{out_.memory->value * units};
  }

  const SbatchScript& script_;
  int component_;
  SbatchRequest out_;
  int64_t gpu_units_ = 0;
  int64_t gpus_per_task_ = 0;
  int64_t gpus_per_node_ = 0;
  bool sets_nodes_ = false;  // --gpus-per-node with --gpus says how many nodes there are
};

}  // namespace

std::string_view MemoryFormName(MemoryForm form) {
  switch (form) {
    case MemoryForm::kPerNode:
      return "mem";
    case MemoryForm::kPerCpu:
      return "mem-per-cpu";
    case MemoryForm::kPerGpu:
      return "mem-per-gpu";
    case MemoryForm::kDefault:
      break;
  }
  return "default";
}

SbatchRequest ReadSbatchRequest(const SbatchScript& script, std::string_view script_name,
                                int component) {
  return Interpreter(script, script_name, component).Read();
}

}  // namespace expanse::submission
