// SPDX-License-Identifier: Apache-2.0
// Where a batch job writes: the file name pattern of sbatch(1), "filename pattern".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::collect::slurm {

struct LogPathContext {
  int64_t job_id = 0;
  std::optional<int64_t> array_job_id;
  std::optional<int64_t> array_task_id;
  std::string job_name;
  std::string user;
  std::string first_node;  // empty: %N cannot be expanded
  std::string work_dir;    // of relative patterns; empty: they stay unknown
};

/// Absolute path, or nothing when a part is not known. An empty pattern is sbatch's default:
/// slurm-%j.out, for an array slurm-%A_%a.out. Widths ("%5j") and a leading backslash, which turns
/// expansion off, are understood.
std::optional<std::string> ExpandLogPath(std::string_view pattern, const LogPathContext& context);

}  // namespace expanse::collect::slurm
