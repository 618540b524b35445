// SPDX-License-Identifier: Apache-2.0
// Permission ids and the roles that every organisation starts with. Names of roles are
// descriptive: permissions decide.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::auth {

inline constexpr std::string_view kMembersManage = "members.manage";
inline constexpr std::string_view kTeamsManage = "teams.manage";
inline constexpr std::string_view kSecurityManage = "security.manage";
inline constexpr std::string_view kBillingManage = "billing.manage";
inline constexpr std::string_view kComputesRegister = "computes.register";
inline constexpr std::string_view kComputesManage = "computes.manage";
/// Executions of one's own teams' computes, and of computes without a team.
inline constexpr std::string_view kExecutionsRead = "executions.read";
/// Executions of the whole organisation.
inline constexpr std::string_view kExecutionsReadAll = "executions.read_all";

/// Every permission there is.
std::span<const std::string_view> AllPermissions();

struct RolePreset {
  std::string_view name;
  std::vector<std::string_view> permissions;
  bool is_protected;  // cannot be edited or removed
  bool is_default;    // given to a new member when no role is named
};
/// Owner, Admin, Member.
const std::vector<RolePreset>& RolePresets();

/// True when every permission of `wanted` is in `held`: the rule for handing out a role.
bool IsSubset(std::span<const std::string> wanted, std::span<const std::string> held);

}  // namespace expanse::auth
