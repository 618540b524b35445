// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/context.h"
#include "expanse/intelligence/v1/intelligence.pb.h"

namespace expanse::cli {

/// A finished diagnosis as text: pipeline, identity, resource snapshot and, for a failed run,
/// the failure.
std::string DiagnoseText(const Context& context, const intelligence::v1::DiagnoseRun& run);

/// Only a failed execution has a failure section, a prompt and a question about it.
bool IsFailed(const intelligence::v1::DiagnoseResult& result);

}  // namespace expanse::cli
