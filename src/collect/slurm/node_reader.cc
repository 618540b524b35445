// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/node_reader.h"

#include <map>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "collect/slurm/slurm_text.h"

namespace expanse::collect::slurm {
namespace {

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

}  // namespace

void ParseNodes(std::string_view text, data::v1::ComputeFacts* out) {
  for (const Values& values : ReadRecords(text, "NodeName=")) {
    auto* node = out->add_nodes();
    node->set_name(ToUtf8(Get(values, "NodeName")));
    if (const auto cpus = ParseInt64(Get(values, "CPUTot")))
      node->set_cpus(static_cast<int32_t>(*cpus));
    if (const auto mib = ParseInt64(Get(values, "RealMemory"))) node->set_memory_bytes(*mib * kMiB);
    const std::string gres = Get(values, "Gres");
    if (values.contains("Gres"))
      node->set_gpus(static_cast<int32_t>(IsSlurmNull(gres) ? 0 : CountGpus(gres)));
    node->set_gpu_type(ToUtf8(GpuType(gres)));
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
