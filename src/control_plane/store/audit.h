// SPDX-License-Identifier: Apache-2.0
// Who changed what, kept with the change: an entry is written in the transaction that it tells of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "expanse/control/v1/control.pb.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

/// The closed list of what a detail can be: a free key would be a door for workload data.
enum class AuditDetail {
  kName,
  kEmail,
  kRole,
  kTeamId,
  kUserId,
  kComputeId,
  kKeyHint,
  kComputeType,
  kSchedulerIdentity,
  kReason,
};

struct AuditEntry {
  OrgId org;
  std::string actor;    // user id, compute id, "plane" or "bootstrap"
  std::string action;   // "compute.registered"
  std::string subject;  // id of what was changed
  std::vector<std::pair<AuditDetail, std::string>> details;
};

class AuditLog {
 public:
  /// clock and random outlive the log.
  AuditLog(const platform::Clock& clock, platform::Random& random)
      : clock_(clock), random_(random) {}

  /// Details are cut to 256 bytes.
  Status Append(storage::Transaction& tx, const AuditEntry& entry) const;

  /// Newest first, before the time (exclusive); never cut within a millisecond, so that paging by
  /// the time of the last one loses nothing.
  static Result<std::vector<control::v1::AuditEvent>> List(storage::Transaction& tx,
                                                           const OrgId& org, int limit,
                                                           int64_t before_ms);

 private:
  const platform::Clock& clock_;
  platform::Random& random_;
};

}  // namespace expanse::control_plane
