// SPDX-License-Identifier: Apache-2.0
// The patch of an analysis: fetched, checked, shown and applied to the local file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/context.h"
#include "cli/session.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::cli {

/// The artefact, with its content_hash verified.
Result<intelligence::v1::ArtifactContent> FetchArtefact(Session& session, const std::string& run_id,
                                                        const std::string& artefact_id);

/// Prints the unified diff: byte for byte into a pipe, coloured and escaped on a terminal.
void PrintDiff(Context& context, const intelligence::v1::ArtifactContent& artefact);

/// Edits the local file in place and atomically. target: the file that the user asked about, as
/// typed; empty where only the artefact was named. Refused, with the file untouched, when the patch
/// is for another file than the target, when it is not the one that was analysed, when the result
/// is not the announced one, or when anything but scheduler directives would change.
Status ApplyArtefact(Context& context, const intelligence::v1::ArtifactContent& artefact,
                     std::string_view target);

}  // namespace expanse::cli
