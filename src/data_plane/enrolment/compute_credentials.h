// SPDX-License-Identifier: Apache-2.0
// Which compute a credential is. The control plane decides; its verdicts are kept, hashed, so that
// intake goes on while it is away, for as long as it allowed (valid_for_seconds), also over a
// restart of this plane.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "data_plane/enrolment/control_authority.h"
#include "platform/clock/clock.h"
#include "rpc/call_context.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

class ComputeCredentials {
 public:
  /// Everything outlives this.
  ComputeCredentials(storage::Database& database, ControlAuthority& authority,
                     const platform::Clock& clock)
      : database_(database), authority_(authority), clock_(clock) {}

  /// kUnauthenticated: refused by the control plane, or malformed. kUnavailable: never seen here,
  /// and the control plane cannot be asked, or the store cannot be read. A verdict is asked for
  /// anew once a minute, and holds in memory when it cannot be written.
  Result<rpc::Caller> Authenticate(const std::string& credential);
  /// The credential is dead from now on, whatever the control plane can be asked.
  Status Forget(const std::string& credential, const OrgId& org, const ComputeId& compute);

 private:
  struct Verdict {
    bool accepted = false;
    OrgId org;
    ComputeId compute;
    int64_t checked_ms = 0;
    int64_t valid_until_ms = 0;
    bool is_stored = false;  // in the table, not in memory alone
  };
  Result<std::optional<Verdict>> Known(const std::string& hash);
  void Remember(const std::string& hash, const Verdict& verdict);
  Status Keep(const std::string& hash, Verdict verdict,
              const control::v1::VerifyComputeCredentialResponse* compute);
  Result<rpc::Caller> CallerOf(const Verdict& verdict, const std::string& credential);

  storage::Database& database_;
  ControlAuthority& authority_;
  const platform::Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Verdict> verdicts_;  // by hash; a copy of the table
};

}  // namespace expanse::data_plane
