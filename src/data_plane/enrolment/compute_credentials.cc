// SPDX-License-Identifier: Apache-2.0
#include "data_plane/enrolment/compute_credentials.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "auth/api_keys/credential.h"
#include "base/log.h"
#include "base/time.h"
#include "platform/crypto/crypto.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kAskAgainMs = 60'000;
constexpr size_t kMaxVerdicts = 10'000;

Error Refused() {
  return Error(Code::kUnauthenticated,
               "the compute credential is not accepted: the compute was revoked, or its credential "
               "replaced or deprovisioned; register the compute again and install");
}

}  // namespace

Result<std::optional<ComputeCredentials::Verdict>> ComputeCredentials::Known(
    const std::string& hash) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = verdicts_.find(hash);
    if (it != verdicts_.end()) return std::optional(it->second);
  }
  auto read = database_.Query(
      "SELECT org_id, compute_id, accepted, checked_ms, valid_until_ms "
      "FROM compute_credentials WHERE credential_hash = $1",
      {hash});
  // Nothing that a sender could take for a verdict on its credential.
  if (!read.ok())
    return Error(Code::kUnavailable, "the compute credential cannot be looked up (" +
                                         read.error().message() + "); send again later");
  const auto& rows = *read;
  if (rows.empty()) return std::optional<Verdict>();
  Verdict verdict{rows[0].Bool(2),  OrgId(rows[0].Text(0)), ComputeId(rows[0].Text(1)),
                  rows[0].Int64(3), rows[0].Int64(4),       true};
  Remember(hash, verdict);
  return std::optional(std::move(verdict));
}

void ComputeCredentials::Remember(const std::string& hash, const Verdict& verdict) {
  const std::lock_guard lock(mutex_);
  if (verdicts_.size() >= kMaxVerdicts) verdicts_.clear();
  verdicts_[hash] = verdict;
}

Status ComputeCredentials::Keep(const std::string& hash, Verdict verdict,
                                const control::v1::VerifyComputeCredentialResponse* compute) {
  // First: what was decided holds also when it cannot be written.
  Remember(hash, verdict);
  const Status written = database_.Write([&](storage::Transaction& transaction) -> Status {
    EXPANSE_CHECK_OK(
        transaction.Execute("DELETE FROM compute_credentials WHERE credential_hash = $1", {hash}));
    EXPANSE_CHECK_OK(transaction.Execute(
        "INSERT INTO compute_credentials (org_id, credential_hash, compute_id, accepted, "
        "checked_ms, valid_until_ms) VALUES ($1, $2, $3, $4, $5, $6)",
        {verdict.org, hash, verdict.compute, verdict.accepted, verdict.checked_ms,
         verdict.valid_until_ms}));
    if (compute == nullptr) return {};
    EXPANSE_CHECK_OK(transaction.Execute(
        "INSERT INTO computes (org_id, compute_id, name, type, team_id, updated_ms) "
        "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (org_id, compute_id) DO UPDATE SET "
        "name = excluded.name, type = excluded.type, team_id = excluded.team_id, "
        "updated_ms = excluded.updated_ms",
        {verdict.org, verdict.compute, compute->compute_name(),
         static_cast<int64_t>(compute->type()), compute->team_id(), verdict.checked_ms}));
    return {};
  });
  if (!written.ok()) {
    log::Error("compute.verdict_not_stored",
               {{"compute", verdict.compute.str()}, {"reason", written.error().message()}});
    return written;
  }
  verdict.is_stored = true;
  Remember(hash, verdict);
  return {};
}

Result<rpc::Caller> ComputeCredentials::CallerOf(const Verdict& verdict,
                                                 const std::string& credential) {
  if (!verdict.accepted) return Refused();
  rpc::Caller caller;
  caller.kind = rpc::CallerKind::kCompute;
  caller.org = verdict.org;
  caller.compute = verdict.compute;
  caller.bearer = credential;
  return caller;
}

Result<rpc::Caller> ComputeCredentials::Authenticate(const std::string& credential) {
  if (!auth::HasFormOf(auth::CredentialKind::kCompute, credential))
    return Error(Code::kUnauthenticated, "a compute credential (exp_compute_…) is needed here");
  const std::string hash = platform::Sha256Hex(credential);
  const int64_t now_ms = ToUnixMillis(clock_.Now());
  EXPANSE_TRY(const auto known, Known(hash));
  // A clock that was set back must not keep a verdict fresh for ever.
  const bool is_fresh =
      known && now_ms >= known->checked_ms && now_ms - known->checked_ms < kAskAgainMs;
  if (is_fresh) return CallerOf(*known, credential);

  auto answer = authority_.Verify(credential);
  Verdict verdict;
  verdict.checked_ms = now_ms;
  if (answer.ok()) {
    verdict.accepted = true;
    verdict.org = OrgId(answer->organisation_id());
    verdict.compute = ComputeId(answer->compute_id());
    verdict.valid_until_ms = now_ms + std::max<int64_t>(0, answer->valid_for_seconds()) * 1000;
    // Intake does not hang on this write: the next question to the control plane repeats it.
    (void)Keep(hash, verdict, &*answer);
    return CallerOf(verdict, credential);
  }
  if (!IsAbsence(answer.error())) {
    if (known) {
      verdict.org = known->org;
      verdict.compute = known->compute;
      verdict.is_stored = known->is_stored;
    }
    if (known && known->accepted)
      log::Warning("compute.credential_refused",
                   {{"compute", known->compute.str()}, {"reason", answer.error().message()}});
    // Strangers must not fill the table: theirs is kept in memory only.
    const bool is_ours = !verdict.compute.str().empty();
    if (is_ours && (known->accepted || !known->is_stored))
      (void)Keep(hash, verdict, nullptr);
    else
      Remember(hash, verdict);
    return Error(Code::kUnauthenticated, answer.error().message());
  }
  if (known && (!known->accepted || now_ms < known->valid_until_ms))
    return CallerOf(*known, credential);
  return Error(Code::kUnavailable,
               "the control plane cannot be asked about this compute credential (" +
                   answer.error().message() + "); send again later");
}

Status ComputeCredentials::Forget(const std::string& credential, const OrgId& org,
                                  const ComputeId& compute) {
  Verdict verdict;
  verdict.org = org;
  verdict.compute = compute;
  verdict.checked_ms = ToUnixMillis(clock_.Now());
  return Keep(platform::Sha256Hex(credential), verdict, nullptr);
}

}  // namespace expanse::data_plane
