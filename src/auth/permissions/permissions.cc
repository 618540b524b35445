// SPDX-License-Identifier: Apache-2.0
#include "auth/permissions/permissions.h"

#include <algorithm>

namespace expanse::auth {
namespace {

constexpr std::string_view kAll[] = {kMembersManage,  kTeamsManage,      kSecurityManage,
                                     kBillingManage,  kComputesRegister, kComputesManage,
                                     kExecutionsRead, kExecutionsReadAll};

}  // namespace

std::span<const std::string_view> AllPermissions() { return kAll; }

const std::vector<RolePreset>& RolePresets() {
  static const std::vector<RolePreset> presets{
      {"Owner", {std::begin(kAll), std::end(kAll)}, true, false},
      {"Admin",
       {kMembersManage, kTeamsManage, kSecurityManage, kComputesRegister, kComputesManage,
        kExecutionsRead, kExecutionsReadAll},
       false,
       false},
      {"Member", {kComputesRegister, kExecutionsRead}, false, true},
  };
  return presets;
}

bool IsSubset(std::span<const std::string> wanted, std::span<const std::string> held) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
    return std::find(held.begin(), held.end(), w) != held.end();
  });
}

}  // namespace expanse::auth
