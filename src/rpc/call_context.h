// SPDX-License-Identifier: Apache-2.0
// Who calls, and by when the answer is due.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace expanse::rpc {

enum class CallerKind { kAnonymous, kUser, kCompute, kPlane };

/// The authenticated caller. Only an Authenticator makes one that is not anonymous.
struct Caller {
  CallerKind kind = CallerKind::kAnonymous;
  OrgId org;
  UserId user;
  std::string email;
  ComputeId compute;                     // kCompute
  std::string compute_name;              // kCompute
  std::vector<std::string> permissions;  // kUser
  std::vector<std::string> team_ids;     // kUser
  std::string bearer;                    // to call on behalf of the same caller; never logged

  bool HasPermission(std::string_view permission) const {
    return std::find(permissions.begin(), permissions.end(), permission) != permissions.end();
  }
};

struct CallContext {
  Caller caller;
  Deadline deadline;
  std::string peer;
};

}  // namespace expanse::rpc
