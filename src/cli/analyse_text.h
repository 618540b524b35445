// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/context.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::cli {

/// Title and identity of an analysis, finished or not.
std::string AnalyseHeader(const Context& context, const intelligence::v1::AnalyseRun& run);

/// A finished analysis as text, header included. jobs names what the evidence counts, e.g.
/// "SLURM jobs". no_patch: OPTIMISATION reads none.
std::string AnalyseText(const Context& context, const intelligence::v1::AnalyseRun& run,
                        std::string_view jobs, bool no_patch);

/// True when there is a patch that changes the submission.
bool HasPatch(const intelligence::v1::AnalyseResult& result);

/// The two commands that show and apply the patch, one a line.
std::string FollowUpCommands(const intelligence::v1::AnalyseRun& run);

}  // namespace expanse::cli
