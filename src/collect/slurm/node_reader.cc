// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/node_reader.h"

#include <map>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/json_fields.h"
#include "collect/slurm/slurm_text.h"

namespace expanse::collect::slurm {
namespace {

namespace json = boost::json;

using Values = std::map<std::string, std::string, std::less<>>;

/// Records begin with a line that starts with the key; each is a map of its words.
std::vector<Values> ReadRecords(std::string_view text, std::string_view first_key) {
  std::vector<Values> out;
  for (std::string_view line : Split(text, '\n')) {
    if (line.starts_with(first_key)) out.emplace_back();
    if (out.empty()) continue;
    line = Trim(line);
    // Free text up to the end of its line.
    for (std::string_view key : {"Reason=", "OS=", "Comment=", "Extra="}) {
      if (!line.starts_with(key)) continue;
      out.back().emplace(key.substr(0, key.size() - 1), line.substr(key.size()));
      line = {};
    }
    for (std::string_view word : Split(line, ' ')) {
      const size_t equals = word.find('=');
      if (equals != std::string_view::npos)
        out.back().emplace(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return out;
}

std::string Get(const Values& values, std::string_view key) {
  const auto it = values.find(key);
  return it == values.end() ? std::string() : it->second;
}

/// "gpu:a100:4(S:0-1),gpu:v100:2" to "a100"; empty when there are several.
std::string GpuType(std::string_view gres) {
  std::string type;
  for (std::string_view item : Split(gres, ',')) {
    const auto parts = Split(item.substr(0, item.find('(')), ':');
    if (parts.size() != 3 || parts[0] != "gpu") continue;
    if (!type.empty() && type != parts[1]) return "";
    type = std::string(parts[1]);
  }
  return type;
}

int64_t CountGpus(std::string_view gres) {
  int64_t total = 0;
  for (std::string_view item : Split(gres, ',')) {
    const auto parts = Split(item.substr(0, item.find('(')), ':');
    if (parts.size() >= 2 && parts[0] == "gpu") total += ParseInt64(parts.back()).value_or(0);
  }
  return total;
}

void SetGpus(const std::string& gres, data::v1::NodeFacts* node) {
  node->set_gpus(static_cast<int32_t>(IsSlurmNull(gres) ? 0 : CountGpus(gres)));
  node->set_gpu_type(ToUtf8(GpuType(gres)));
}

std::optional<int32_t> Count(const json::object& object, std::string_view path) {
  const auto number = JsonInt(object, path);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

/// "idle" and flags ["DRAIN"] of 22.05, ["MIXED", "DRAIN"] since: "IDLE+DRAIN" as the text has it.
std::string NodeState(const json::object& node, std::string_view path) {
  std::string out;
  const auto add = [&](const json::value& word) {
    if (!word.is_string()) return;
    const json::string& text = word.get_string();
    if (!text.empty()) out += (out.empty() ? "" : "+") + std::string(text.data(), text.size());
  };
  if (const json::value* state = FindJson(node, path)) add(*state);
  for (const std::string_view list : {path, std::string_view("state_flags")})
    if (const json::array* words = JsonArray(node, list))
      for (const json::value& word : *words) add(word);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

void ReadNode(const json::object& j, data::v1::NodeFacts* node) {
  node->set_name(ToUtf8(JsonText(j, "name").value_or("")));
  if (const auto cpus = Count(j, "cpus")) node->set_cpus(*cpus);
  if (const auto bytes = JsonMebibytes(j, "real_memory")) node->set_memory_bytes(*bytes);
  if (const auto gres = JsonText(j, "gres")) SetGpus(*gres, node);
  node->set_state(ToUtf8(NodeState(j, "state")));
  node->set_reason(ToUtf8(JsonText(j, "reason").value_or("")));
  if (const auto* partitions = JsonArray(j, "partitions"))
    for (const json::value& name : *partitions)
      if (name.is_string())
        node->add_partitions(ToUtf8({name.get_string().data(), name.get_string().size()}));
  for (const char* key : {"version", "slurmd_version"})
    if (const auto version = JsonText(j, key)) node->set_version(ToUtf8(*version));
  for (const char* key : {"free_mem", "free_memory"})
    if (const auto bytes = JsonMebibytes(j, key)) node->set_free_memory_bytes(*bytes);
  if (const auto bytes = JsonMebibytes(j, "alloc_memory")) node->set_allocated_memory_bytes(*bytes);
  if (const auto cpus = Count(j, "alloc_cpus")) node->set_allocated_cpus(*cpus);
}

/// Of a group only what has one value: minimum and maximum agree.
std::optional<int64_t> Common(const json::object& group, const std::string& path) {
  const auto low = JsonInt(group, path + ".minimum"), high = JsonInt(group, path + ".maximum");
  return low == high ? low : std::nullopt;
}

void ReadGroup(const json::object& group, data::v1::ComputeFacts* out) {
  const json::array* names = JsonArray(group, "nodes.nodes");
  if (names == nullptr) return;
  const auto partition = JsonText(group, "partition.name");
  for (const json::value& name : *names) {
    if (!name.is_string()) continue;
    const std::string text = ToUtf8({name.get_string().data(), name.get_string().size()});
    data::v1::NodeFacts* node = nullptr;
    for (auto& known : *out->mutable_nodes())  // in another partition too
      if (known.name() == text) node = &known;
    if (node == nullptr) node = out->add_nodes();
    node->set_name(text);
    if (partition) node->add_partitions(ToUtf8(*partition));
    if (const auto cpus = Common(group, "cpus"); cpus && *cpus >= 0 && *cpus <= INT32_MAX)
      node->set_cpus(static_cast<int32_t>(*cpus));
    if (const auto mib = Common(group, "memory"); mib && *mib >= 0 && *mib < (int64_t{1} << 40))
      node->set_memory_bytes(*mib * kMiB);
    if (const auto mib = Common(group, "memory.free");
        mib && *mib >= 0 && *mib < (int64_t{1} << 40))
      node->set_free_memory_bytes(*mib * kMiB);
    if (const auto gres = JsonText(group, "gres.total")) SetGpus(*gres, node);
    node->set_state(ToUtf8(NodeState(group, "node.state")));
    node->set_reason(ToUtf8(JsonText(group, "reason.description").value_or("")));
  }
}

}  // namespace

Status ParseNodesJson(std::string_view text, data::v1::ComputeFacts* out) {
  EXPANSE_TRY(const json::object root, ParseToolJson(text));
  if (const auto* errors = JsonArray(root, "errors"); errors != nullptr && !errors->empty())
    return Error(Code::kDataLoss, "the answer lists errors: " + json::serialize(errors->front()));
  if (const auto* nodes = JsonArray(root, "nodes")) {
    for (const json::value& node : *nodes)
      if (const auto* object = node.if_object()) ReadNode(*object, out->add_nodes());
    return {};
  }
  const auto* groups = JsonArray(root, "sinfo");
  if (groups == nullptr) return Error(Code::kDataLoss, "the answer has no list of nodes");
  for (const json::value& group : *groups)
    if (const auto* object = group.if_object()) ReadGroup(*object, out);
  return {};
}

void ParseNodes(std::string_view text, data::v1::ComputeFacts* out) {
  for (const Values& values : ReadRecords(text, "NodeName=")) {
    auto* node = out->add_nodes();
    node->set_name(ToUtf8(Get(values, "NodeName")));
    if (const auto cpus = ParseInt64(Get(values, "CPUTot")))
      node->set_cpus(static_cast<int32_t>(*cpus));
    if (const auto mib = ParseInt64(Get(values, "RealMemory"))) node->set_memory_bytes(*mib * kMiB);
    if (values.contains("Gres")) SetGpus(Get(values, "Gres"), node);
    node->set_version(ToUtf8(Get(values, "Version")));
    if (const auto mib = ParseInt64(Get(values, "FreeMem")))
      node->set_free_memory_bytes(*mib * kMiB);
    if (const auto mib = ParseInt64(Get(values, "AllocMem")))
      node->set_allocated_memory_bytes(*mib * kMiB);
    if (const auto cpus = ParseInt64(Get(values, "CPUAlloc")))
      node->set_allocated_cpus(static_cast<int32_t>(*cpus));
    node->set_state(ToUtf8(Get(values, "State")));
    node->set_reason(ToUtf8(Get(values, "Reason")));
    const std::string partitions = Get(values, "Partitions");
    for (std::string_view name : Split(partitions, ','))
      if (!name.empty()) node->add_partitions(ToUtf8(name));
  }
}

void ParsePartitions(std::string_view text, data::v1::ComputeFacts* out) {
  for (const Values& values : ReadRecords(text, "PartitionName=")) {
    auto* partition = out->add_partitions();
    partition->set_name(ToUtf8(Get(values, "PartitionName")));
    if (const auto limit = ParseSlurmDuration(Get(values, "MaxTime")))
      partition->set_max_walltime_seconds(static_cast<int64_t>(*limit));
    if (const auto limit = ParseSlurmDuration(Get(values, "DefaultTime")))
      partition->set_default_walltime_seconds(static_cast<int64_t>(*limit));
    if (const auto nodes = ParseInt64(Get(values, "TotalNodes")))
      partition->set_total_nodes(static_cast<int32_t>(*nodes));
    if (const auto memory = ParseSlurmSize(Get(values, "DefMemPerCPU"), kMiB))
      partition->set_default_memory_per_cpu_bytes(*memory);
    partition->set_is_default(Get(values, "Default") == "YES");
    partition->set_state(ToUtf8(Get(values, "State")));
  }
}

std::optional<std::string> ConfigValue(std::string_view config, std::string_view key) {
  for (std::string_view line : Split(config, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trim(line.substr(0, equals)) != key) continue;
    const std::string_view value = Trim(line.substr(equals + 1));
    if (IsSlurmNull(value)) return std::nullopt;
    return std::string(value);
  }
  return std::nullopt;
}

}  // namespace expanse::collect::slurm
