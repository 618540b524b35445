// SPDX-License-Identifier: Apache-2.0
#include "collect/slurm/slurm_version.h"

#include "base/strings.h"

namespace expanse::collect::slurm {

std::optional<SlurmVersion> ParseSlurmVersion(std::string_view text) {
  text = Trim(text);
  if (const size_t blank = text.rfind(' '); blank != std::string_view::npos)
    text.remove_prefix(blank + 1);
  const auto parts = Split(text, '.');
  if (parts.size() < 2 || parts[1].size() != 2) return std::nullopt;
  const auto year = ParseInt64(parts[0]), month = ParseInt64(parts[1]);
  if (!year || !month || *year < 2 || *year > 99 || *month < 1 || *month > 12) return std::nullopt;
  return SlurmVersion{static_cast<int>(*year), static_cast<int>(*month)};
}

ToolForms FormsOf(std::optional<SlurmVersion> client) {
  ToolForms forms;
  // 22.05 lists ended jobs whatever it is asked for, and takes the option.
  const auto squeue = [&](const char* json) {
    forms.squeue_json.push_back({"squeue", json, "--all", "--states=all"});
  };
  if (client && *client > kSlurm2605) squeue("--json=v0.0.45");
  squeue("--json");
  if (!client) return forms;
  forms.scontrol_json = *client >= kSlurm2411;
  forms.sacct_exact_codes = *client >= kSlurm2605;
  return forms;
}

MaxRssKind MaxRssKindOf(std::optional<SlurmVersion> oldest_node, std::string_view gather_type) {
  if (gather_type == "jobacct_gather/linux") return MaxRssKind::kSampledRss;
  if (!oldest_node) return MaxRssKind::kUnknown;
  if (*oldest_node < kSlurm2411) return MaxRssKind::kSampledRss;
  return gather_type == "jobacct_gather/cgroup" ? MaxRssKind::kCgroupPeak : MaxRssKind::kUnknown;
}

}  // namespace expanse::collect::slurm
