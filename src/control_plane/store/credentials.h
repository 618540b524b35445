// SPDX-License-Identifier: Apache-2.0
// API keys, install tokens, compute and plane credentials: hashes, never the credentials.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

struct ApiKeyRow {
  OrgId org;
  std::string id;
  UserId user;
  std::string label;
  std::string hash;
  std::string hint;
  bool may_switch = false;
  std::string created_by;
  int64_t created_at_ms = 0;
  std::optional<int64_t> revoked_at_ms;
  std::optional<int64_t> last_used_at_ms;
};

struct InstallTokenRow {
  OrgId org;
  std::string id;
  ComputeId compute;
  std::string hash;
  std::string created_by;
  int64_t created_at_ms = 0;
  int64_t expires_at_ms = 0;
  std::optional<int64_t> exchanged_at_ms;
  std::optional<int64_t> closed_at_ms;
  std::string closed_because;
};

/// A compute's or a plane's.
struct CredentialRow {
  OrgId org;
  std::string id;
  ComputeId compute;  // empty: a plane's
  std::string hash;
  int64_t created_at_ms = 0;
  std::optional<int64_t> revoked_at_ms;
};

/// Rows of one transaction. Lookups by hash are exact; a miss is an empty optional.
class Credentials {
 public:
  explicit Credentials(storage::Transaction& tx) : tx_(tx) {}

  Status InsertApiKey(const ApiKeyRow& key);
  Result<std::optional<ApiKeyRow>> FindApiKeyByHash(const std::string& hash);
  Result<std::optional<ApiKeyRow>> FindApiKey(const OrgId& org, const std::string& key_id);
  /// Newest first.
  Result<std::vector<ApiKeyRow>> ListApiKeys(const OrgId& org, const UserId& user);
  /// False when it was revoked before.
  Result<bool> RevokeApiKey(const OrgId& org, const std::string& key_id, int64_t now_ms);
  Status TouchApiKey(const OrgId& org, const std::string& key_id, int64_t now_ms);

  Status InsertInstallToken(const InstallTokenRow& token);
  Result<std::optional<InstallTokenRow>> FindInstallTokenByHash(const std::string& hash);
  Status MarkExchanged(const InstallTokenRow& token, const ComputeId& compute, int64_t now_ms);
  /// Closes the compute's open tokens; only the exchanged ones when only_exchanged.
  Status CloseInstallTokens(const OrgId& org, const ComputeId& compute, bool only_exchanged,
                            const std::string& because, int64_t now_ms);

  Status InsertCompute(const CredentialRow& credential);
  Result<std::optional<CredentialRow>> FindComputeByHash(const std::string& hash);
  /// The number of credentials that were live until now.
  Result<int64_t> RevokeOfCompute(const OrgId& org, const ComputeId& compute, int64_t now_ms);

  /// When the living credential was made; nothing when there is none.
  Result<std::optional<int64_t>> LivingSince(const OrgId& org, const ComputeId& compute);

  Status InsertPlane(const CredentialRow& credential);
  Result<std::optional<CredentialRow>> FindPlaneByHash(const std::string& hash);

 private:
  Result<std::vector<ApiKeyRow>> SelectApiKeys(std::string_view where,
                                               std::initializer_list<storage::Value> params);
  storage::Transaction& tx_;
};

/// True when credentials of any kind are stored, that is: when the pepper must not be lost.
Result<bool> HasCredentials(storage::Transaction& tx);

}  // namespace expanse::control_plane
