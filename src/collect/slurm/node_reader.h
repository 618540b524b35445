// SPDX-License-Identifier: Apache-2.0
// Reads `scontrol show node`, `scontrol show partition` and `scontrol show config`, and nodes as
// JSON. Only an administrator chooses their words; free text (Reason, OS, Comment) ends at the
// line's end. Memory of nodes is in MiB in every form and version.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "expanse/data/v1/ingest.pb.h"

namespace expanse::collect::slurm {

void ParseNodes(std::string_view text, data::v1::ComputeFacts* out);
/// `sinfo --json` and `scontrol show node --json` of every version: one object a node (22.05's
/// sinfo, scontrol since 24.11), or one a group of like nodes (sinfo since 24.11), of which only
/// what is the same for all of them is set. kDataLoss as for other answers.
Status ParseNodesJson(std::string_view text, data::v1::ComputeFacts* out);
void ParsePartitions(std::string_view text, data::v1::ComputeFacts* out);
/// "ClusterName             = lab" to "lab".
std::optional<std::string> ConfigValue(std::string_view config, std::string_view key);

}  // namespace expanse::collect::slurm
