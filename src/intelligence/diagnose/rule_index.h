// SPDX-License-Identifier: Apache-2.0
// Which signal rules match a line. Each rule hangs on one three-byte window of its longest literal,
// so that a line is compared with the few rules it can match and not with all of them.
#pragma once

#include <string_view>
#include <vector>

#include "intelligence/diagnose/signals.h"

namespace expanse::intelligence::diagnose {

/// The glob of SignalRule on a line that is lower case already.
bool MatchesPattern(std::string_view line, std::string_view pattern);

/// Rules of AllSignals() that match, in the order of the tables. `where`: one of kProgramText, ….
std::vector<const SignalRule*> MatchingRules(std::string_view lower_case_line, int where);

}  // namespace expanse::intelligence::diagnose
