// SPDX-License-Identifier: Apache-2.0
// The failure classes that a diagnosis can name: one row each, in one table. A class is stable API
// (display.failure_class); a coarser group may be shown beside it. Older and foreign names are
// aliases here and nowhere else.
#pragma once

#include <span>
#include <string_view>

namespace expanse::domain {

struct FailureClass {
  std::string_view name;        // "host_out_of_memory"
  std::string_view group;       // "host memory"
  std::string_view definition;  // a clause: what being of this class means
  std::string_view aliases;     // comma separated, empty for most
};

/// Every class, grouped; "none" is the last.
std::span<const FailureClass> FailureClasses();
/// By name or alias, in lower case. Null for a name that is neither.
const FailureClass* FindFailureClass(std::string_view name_or_alias);

inline constexpr std::string_view kNoFailure = "none";
inline constexpr std::string_view kUnattributed = "task_failure_unattributed";

}  // namespace expanse::domain
