// SPDX-License-Identifier: Apache-2.0
// read_sbatch FILE...: what our reader understands of batch scripts, one JSON object a line;
// with --bundle also which source files belong to each (relative to the script's folder).
// check_sbatch_reader compares it with what SLURM understood.
#include <cstdio>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "base/strings.h"
#include "platform/fs/fs.h"
#include "submission/bundle/bundle.h"
#include "submission/slurm_script/sbatch_request.h"

namespace {

namespace json = boost::json;
using expanse::ToUtf8;

json::object Describe(const std::string& path, const std::string& text) {
  const auto script = expanse::submission::ReadSbatchScript(text);
  const auto r = expanse::submission::ReadSbatchRequest(script, path);
  json::object out;
  out["file"] = ToUtf8(path);
  json::array refusals;
  for (const auto* notes : {&script.refusals, &r.refusals})
    for (const auto& note : *notes)
      refusals.emplace_back(std::to_string(note.line) + ": " + note.text);
  out["refusals"] = std::move(refusals);
  out["components"] = script.components;
  out["job_name"] = ToUtf8(r.job_name);
  out["partition"] = ToUtf8(r.partition);
  out["mem_form"] = expanse::submission::MemoryFormName(r.memory_form);
  if (r.memory) out["mem_mib"] = r.memory->value / expanse::kMiB;
  if (r.whole_node_memory) out["mem_mib"] = 0;
  if (r.total_memory) out["total_mem_mib"] = r.total_memory->value / expanse::kMiB;
  if (r.time) out["time_minutes"] = r.time->limit ? r.time->limit->count() / 60 : 0;
  out["nodes"] = r.total_nodes;
  if (r.nodes) out["nodes_max"] = r.nodes->max;
  out["tasks"] = r.total_tasks;
  out["cpus_per_task"] = r.cpus_per_task.value_or(1);
  out["cpus"] = r.total_cores;
  if (r.total_gpus) out["gpus"] = *r.total_gpus;
  if (r.array) out["array_tasks"] = r.array->tasks;
  json::array unresolved;
  for (const auto& [field, reason] : r.unresolved) unresolved.emplace_back(field);
  out["unresolved"] = std::move(unresolved);
  return out;
}

void AddBundle(const std::string& path, const std::string& text, const expanse::platform::Fs& fs,
               json::object* out) {
  expanse::submission::BundleInput input;
  input.script = text;
  input.script_path = path;
  input.submit_dir = expanse::platform::DirName(path);
  const auto bundle = expanse::submission::CollectBundle(input, fs);
  if (!bundle.ok()) return;
  json::array files;
  for (const auto& file : bundle->files) files.emplace_back(ToUtf8(file.path));
  json::object unknown;
  for (const auto& [what, reason] : bundle->unknown) unknown[ToUtf8(what)] = ToUtf8(reason);
  (*out)["bundle"] = std::move(files);
  (*out)["unknown"] = std::move(unknown);
  (*out)["bundle_id"] = bundle->bundle_id;
  (*out)["script_hash"] = bundle->script_hash;
  (*out)["tree_hash"] = bundle->tree_hash;
}

}  // namespace

int main(int argc, char** argv) {
  const expanse::platform::Fs fs;
  bool with_bundle = false;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    if (path == "--bundle") {
      with_bundle = true;
      continue;
    }
    const auto text = fs.Read(path, 8 << 20);
    if (!text.ok()) {
      std::fprintf(stderr, "%s\n", text.error().message().c_str());
      return 1;
    }
    auto out = Describe(path, *text);
    if (with_bundle) AddBundle(path, *text, fs, &out);
    std::printf("%s\n", json::serialize(out).c_str());
  }
  return 0;
}
