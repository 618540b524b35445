// SPDX-License-Identifier: Apache-2.0
// The command line of a submission as SLURM keeps it: words joined by blanks, without quotes. Where
// a word ended is lost, so that only options are read, and only up to the first word that can be no
// option or option's value: what follows is the script and its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::collect::slurm {

/// Value of "--name=value", "--name value" or "-X value" in a submit line; the last one counts.
std::optional<std::string> SubmitLineOption(const std::string& line, const std::string& name,
                                            char letter);

/// What the options of a submit line ask for. Directives of the script are not in it.
struct SubmitRequest {
  std::optional<int64_t> memory_per_node;  // bytes
  std::optional<int64_t> memory_per_cpu;   // bytes
  std::optional<int64_t> nodes;            // least number
};
SubmitRequest ReadSubmitRequest(std::string_view line);

}  // namespace expanse::collect::slurm
