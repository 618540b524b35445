// SPDX-License-Identifier: Apache-2.0
// Which SLURM this is, and what follows from it. The forms of the tools depend on the version of
// the client programs, what MaxRSS means on the version of the nodes' daemons: a cluster may run
// three versions at a time.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/slurm/job_record.h"

namespace expanse::collect::slurm {

/// Feature release: 22.05, 24.11, 26.05.
struct SlurmVersion {
  int year = 0;
  int month = 0;
  auto operator<=>(const SlurmVersion&) const = default;
};
inline constexpr SlurmVersion kSlurm2411{24, 11};
inline constexpr SlurmVersion kSlurm2605{26, 5};

/// "slurm-wlm 22.05.8", "slurm 26.05.5", "24.11.5"; nothing for other text.
std::optional<SlurmVersion> ParseSlurmVersion(std::string_view text);

/// The forms of the tools to use, best first. A form that is refused is not tried again until the
/// version is asked anew.
struct ToolForms {
  /// Arguments of squeue that give JSON. Versions that this collector does not know are first asked
  /// for the newest serializer that it knows.
  std::vector<std::vector<std::string>> squeue_json;
  /// `scontrol show job --json` can be used: 24.11 and newer. 22.05 has none.
  bool scontrol_json = false;
  /// sacct prints exit codes unshifted: 26.05 and newer.
  bool sacct_exact_codes = false;
};
/// Without a version: what every version takes.
ToolForms FormsOf(std::optional<SlurmVersion> client);

/// What MaxRSS means when the oldest daemon of a node is this one. jobacct_gather/cgroup reads the
/// peak of the task's cgroup from 24.11 on; before, and with jobacct_gather/linux in every version,
/// resident sets are sampled. Versions between 22.05 and 24.11 count as sampled: a floor is true of
/// both.
MaxRssKind MaxRssKindOf(std::optional<SlurmVersion> oldest_node, std::string_view gather_type);

}  // namespace expanse::collect::slurm
