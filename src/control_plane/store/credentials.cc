// SPDX-License-Identifier: Apache-2.0
#include "control_plane/store/credentials.h"

namespace expanse::control_plane {

Status Credentials::InsertApiKey(const ApiKeyRow& key) {
  EXPANSE_CHECK_OK(tx_.Execute(
      "INSERT INTO api_key (org_id, key_id, user_id, label, key_hash, hint, may_switch, "
      "created_by, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      {key.org, key.id, key.user, key.label, key.hash, key.hint, key.may_switch, key.created_by,
       key.created_at_ms}));
  return {};
}

Result<std::vector<ApiKeyRow>> Credentials::SelectApiKeys(
    std::string_view where, std::initializer_list<storage::Value> params) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, key_id, user_id, label, key_hash, hint, may_switch, "
                        "created_by, created_at_ms, revoked_at_ms, last_used_at_ms FROM api_key "
                        "WHERE " +
                            std::string(where) + " ORDER BY created_at_ms DESC, key_id DESC",
                        params));
  std::vector<ApiKeyRow> out;
  for (const auto row : rows)
    out.push_back({OrgId(row.Text(0)), row.Text(1), UserId(row.Text(2)), row.Text(3), row.Text(4),
                   row.Text(5), row.Bool(6), row.Text(7), row.Int64(8), row.OptInt64(9),
                   row.OptInt64(10)});
  return out;
}

Result<std::optional<ApiKeyRow>> Credentials::FindApiKeyByHash(const std::string& hash) {
  EXPANSE_TRY(auto rows, SelectApiKeys("key_hash = $1", {hash}));
  if (rows.empty()) return std::optional<ApiKeyRow>();
  return std::optional(std::move(rows.front()));
}

Result<std::optional<ApiKeyRow>> Credentials::FindApiKey(const OrgId& org,
                                                         const std::string& key_id) {
  EXPANSE_TRY(auto rows, SelectApiKeys("org_id = $1 AND key_id = $2", {org, key_id}));
  if (rows.empty()) return std::optional<ApiKeyRow>();
  return std::optional(std::move(rows.front()));
}

Result<std::vector<ApiKeyRow>> Credentials::ListApiKeys(const OrgId& org, const UserId& user) {
  return SelectApiKeys("org_id = $1 AND user_id = $2", {org, user});
}

Result<bool> Credentials::RevokeApiKey(const OrgId& org, const std::string& key_id,
                                       int64_t now_ms) {
  EXPANSE_TRY(const int64_t changed,
              tx_.Execute("UPDATE api_key SET revoked_at_ms = $3 WHERE org_id = $1 AND key_id = $2 "
                          "AND revoked_at_ms IS NULL",
                          {org, key_id, now_ms}));
  return changed > 0;
}

Status Credentials::TouchApiKey(const OrgId& org, const std::string& key_id, int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("UPDATE api_key SET last_used_at_ms = $3 WHERE org_id = $1 AND key_id = $2",
                  {org, key_id, now_ms}));
  return {};
}

Status Credentials::InsertInstallToken(const InstallTokenRow& token) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO install_token (org_id, token_id, compute_id, token_hash, "
                  "created_by, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                  {token.org, token.id, token.compute, token.hash, token.created_by,
                   token.created_at_ms, token.expires_at_ms}));
  return {};
}

Result<std::optional<InstallTokenRow>> Credentials::FindInstallTokenByHash(
    const std::string& hash) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, token_id, compute_id, token_hash, created_by, "
                        "created_at_ms, expires_at_ms, exchanged_at_ms, closed_at_ms, "
                        "closed_because FROM install_token WHERE token_hash = $1",
                        {hash}));
  if (rows.empty()) return std::optional<InstallTokenRow>();
  const auto row = rows[0];
  return std::optional(InstallTokenRow{OrgId(row.Text(0)), row.Text(1), ComputeId(row.Text(2)),
                                       row.Text(3), row.Text(4), row.Int64(5), row.Int64(6),
                                       row.OptInt64(7), row.OptInt64(8), row.TextOrEmpty(9)});
}

Status Credentials::MarkExchanged(const InstallTokenRow& token, const ComputeId& compute,
                                  int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("UPDATE install_token SET exchanged_at_ms = $4, compute_id = $3 "
                  "WHERE org_id = $1 AND token_id = $2",
                  {token.org, token.id, compute, now_ms}));
  return {};
}

Status Credentials::CloseInstallTokens(const OrgId& org, const ComputeId& compute,
                                       bool only_exchanged, const std::string& because,
                                       int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("UPDATE install_token SET closed_at_ms = $4, closed_because = $5 "
                  "WHERE org_id = $1 AND compute_id = $2 AND closed_at_ms IS NULL "
                  "AND ($3 = 0 OR exchanged_at_ms IS NOT NULL)",
                  {org, compute, only_exchanged, now_ms, because}));
  return {};
}

Status Credentials::InsertCompute(const CredentialRow& credential) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO compute_credential (org_id, credential_id, compute_id, "
                  "credential_hash, created_at_ms) VALUES ($1, $2, $3, $4, $5)",
                  {credential.org, credential.id, credential.compute, credential.hash,
                   credential.created_at_ms}));
  return {};
}

Result<std::optional<CredentialRow>> Credentials::FindComputeByHash(const std::string& hash) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, credential_id, compute_id, credential_hash, created_at_ms, "
                        "revoked_at_ms FROM compute_credential WHERE credential_hash = $1",
                        {hash}));
  if (rows.empty()) return std::optional<CredentialRow>();
  const auto row = rows[0];
  return std::optional(CredentialRow{OrgId(row.Text(0)), row.Text(1), ComputeId(row.Text(2)),
                                     row.Text(3), row.Int64(4), row.OptInt64(5)});
}

Result<int64_t> Credentials::RevokeOfCompute(const OrgId& org, const ComputeId& compute,
                                             int64_t now_ms) {
  return tx_.Execute(
      "UPDATE compute_credential SET revoked_at_ms = $3 WHERE org_id = $1 "
      "AND compute_id = $2 AND revoked_at_ms IS NULL",
      {org, compute, now_ms});
}

Result<std::optional<int64_t>> Credentials::LivingSince(const OrgId& org,
                                                        const ComputeId& compute) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT MAX(created_at_ms) AS since FROM compute_credential WHERE org_id = "
                        "$1 AND compute_id = $2 AND revoked_at_ms IS NULL",
                        {org, compute}));
  return rows[0].OptInt64(0);
}

Status Credentials::InsertPlane(const CredentialRow& credential) {
  EXPANSE_CHECK_OK(tx_.Execute(
      "INSERT INTO plane_credential (org_id, credential_id, credential_hash, created_at_ms) "
      "VALUES ($1, $2, $3, $4)",
      {credential.org, credential.id, credential.hash, credential.created_at_ms}));
  return {};
}

Result<std::optional<CredentialRow>> Credentials::FindPlaneByHash(const std::string& hash) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, credential_id, credential_hash, created_at_ms, "
                        "revoked_at_ms FROM plane_credential WHERE credential_hash = $1",
                        {hash}));
  if (rows.empty()) return std::optional<CredentialRow>();
  const auto row = rows[0];
  return std::optional(CredentialRow{OrgId(row.Text(0)), row.Text(1), ComputeId(), row.Text(2),
                                     row.Int64(3), row.OptInt64(4)});
}

Result<bool> HasCredentials(storage::Transaction& tx) {
  EXPANSE_TRY(const auto rows,
              tx.Query("SELECT 1 AS found FROM api_key UNION ALL SELECT 1 FROM compute_credential "
                       "UNION ALL SELECT 1 FROM plane_credential LIMIT 1"));
  return !rows.empty();
}

}  // namespace expanse::control_plane
