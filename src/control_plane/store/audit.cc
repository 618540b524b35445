// SPDX-License-Identifier: Apache-2.0
#include "control_plane/store/audit.h"

#include <boost/json.hpp>

#include "base/strings.h"

namespace expanse::control_plane {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDetailBytes = 256;

const char* KeyOf(AuditDetail detail) {
  switch (detail) {
    case AuditDetail::kName:
      return "name";
    case AuditDetail::kEmail:
      return "email";
    case AuditDetail::kRole:
      return "role";
    case AuditDetail::kTeamId:
      return "team_id";
    case AuditDetail::kUserId:
      return "user_id";
    case AuditDetail::kComputeId:
      return "compute_id";
    case AuditDetail::kKeyHint:
      return "key_hint";
    case AuditDetail::kComputeType:
      return "compute_type";
    case AuditDetail::kSchedulerIdentity:
      return "scheduler_identity";
    case AuditDetail::kReason:
      return "reason";
  }
  return "";
}

}  // namespace

Status AuditLog::Append(storage::Transaction& tx, const AuditEntry& entry) const {
  json::object details;
  for (const auto& [key, value] : entry.details)
    details[KeyOf(key)] = ToUtf8(value.substr(0, kMaxDetailBytes));
  EXPANSE_CHECK_OK(tx.Execute(
      "INSERT INTO audit_event (org_id, event_id, at_ms, actor, action, subject, details) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7)",
      {entry.org, platform::NewUuid(clock_, random_), ToUnixMillis(clock_.Now()), entry.actor,
       entry.action, entry.subject, json::serialize(details)}));
  return {};
}

Result<std::vector<control::v1::AuditEvent>> AuditLog::List(storage::Transaction& tx,
                                                            const OrgId& org, int limit,
                                                            int64_t before_ms) {
  EXPANSE_TRY(const auto rows,
              tx.Query("SELECT at_ms, actor, action, subject, details FROM audit_event "
                       "WHERE org_id = $1 AND at_ms < $2 AND at_ms >= "
                       "(SELECT MIN(at_ms) FROM (SELECT at_ms FROM audit_event WHERE org_id = $1 "
                       "AND at_ms < $2 ORDER BY at_ms DESC LIMIT $3) AS page) "
                       "ORDER BY at_ms DESC, event_id DESC",
                       {org, before_ms, limit}));
  std::vector<control::v1::AuditEvent> out;
  for (const auto row : rows) {
    control::v1::AuditEvent event;
    event.set_at_ms(row.Int64(0));
    event.set_actor(row.Text(1));
    event.set_action(row.Text(2));
    event.set_subject(row.Text(3));
    boost::system::error_code ec;
    const json::value details = json::parse(row.Text(4), ec);
    if (ec || !details.is_object())
      return Error(Code::kDataLoss, "an audit entry's details are no JSON object");
    for (const auto& [key, value] : details.as_object())
      if (value.is_string())
        (*event.mutable_details())[std::string(key.data(), key.size())] =
            std::string(value.as_string().data(), value.as_string().size());
    out.push_back(std::move(event));
  }
  return out;
}

}  // namespace expanse::control_plane
