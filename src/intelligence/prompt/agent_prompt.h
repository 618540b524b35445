// SPDX-License-Identifier: Apache-2.0
// The prompt for the user's own coding agent: what is known of the failure, where it comes from,
// and the request to verify it against the repository before changing anything. It proposes no fix.
#pragma once

#include <string>

#include "expanse/intelligence/v1/intelligence.pb.h"
#include "intelligence/diagnose/case_inputs.h"

namespace expanse::intelligence::prompt {

inline constexpr size_t kMaxPromptBytes = 24U << 10;
inline constexpr size_t kMaxLogBytes = 6U << 10;  // of each stream

/// result: root cause, claims, facts and display are set already. Text from outside is cleaned of
/// control characters and fenced as untrusted data. Well-formed UTF-8, at most kMaxPromptBytes.
std::string BuildAgentPrompt(const diagnose::CaseInputs& inputs, const v1::DiagnoseResult& result);

}  // namespace expanse::intelligence::prompt
