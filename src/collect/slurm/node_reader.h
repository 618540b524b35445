// SPDX-License-Identifier: Apache-2.0
// Reads `scontrol show node`, `scontrol show partition` and `scontrol show config`. Only an
// administrator chooses their words; free text (Reason, OS, Comment) ends at the line's end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::slurm {

void ParseNodes(std::string_view text, data::v1::ComputeFacts* out);
void ParsePartitions(std::string_view text, data::v1::ComputeFacts* out);
/// "ClusterName             = lab" to "lab".
std::optional<std::string> ConfigValue(std::string_view config, std::string_view key);

}  // namespace expanse::collect::slurm
