// SPDX-License-Identifier: Apache-2.0
// Runs the hooks that were configured before ours, with their own arguments, environment and
// standard streams.
#pragma once

#include "collect/hook/hook_io.h"

namespace expanse::collect::hook {

/// Keeps signal dispositions and mask as SLURM gave them, since the foreign program must not
/// inherit ours, and unblocks everything.
void SaveSignals();

/// pattern: an absolute path, whose last component may hold wildcards as in slurm.conf. Runs each
/// match in order of name until one fails and returns its status as slurmd would see it
/// (128 + signal when killed). A program that is missing is noted and counts as success: SLURM
/// would drain the node for it, and that is not ours to do.
int RunChained(const char* pattern, char** argv, EventBuffer* event);

}  // namespace expanse::collect::hook
