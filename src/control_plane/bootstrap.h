// SPDX-License-Identifier: Apache-2.0
// What only the operator of this plane can do, on its own machine: make an organisation with its
// owner, and new credentials for an owner or a data plane that lost theirs.
#pragma once

#include <string>

#include "auth/api_keys/credential.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/secret.h"
#include "control_plane/store/audit.h"
#include "platform/clock/clock.h"
#include "platform/random/random.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

struct BootstrapRequest {
  std::string organisation;
  std::string owner_email;
  std::string owner_name;  // empty: the address
  /// The owner is this known person of another organisation: their operator-made keys then act in
  /// both. Empty: a new person.
  UserId owner;
};
struct BootstrapResult {
  OrgId org;
  UserId owner;
  Secret api_key;
  Secret plane_credential;
};

class Bootstrap {
 public:
  /// Every argument outlives this.
  Bootstrap(storage::Database& database, const auth::CredentialHasher& hasher,
            const AuditLog& audit, const platform::Clock& clock, platform::Random& random)
      : database_(database), hasher_(hasher), audit_(audit), clock_(clock), random_(random) {}

  /// Organisation, preset roles, owner, an API key and a plane credential, in one transaction.
  /// kAlreadyExists when the organisation does.
  Result<BootstrapResult> Create(const BootstrapRequest& request) const;
  Result<bool> Exists(const std::string& organisation) const;
  /// kNotFound when there is no such organisation or owner.
  Result<Secret> NewOwnerKey(const std::string& organisation, const std::string& owner_email) const;
  Result<Secret> NewPlaneCredential(const std::string& organisation) const;
  /// True when the text is a living API key / plane credential of the organisation.
  Result<bool> IsLivingApiKey(const std::string& organisation, const Secret& key) const;
  Result<bool> IsLivingPlaneCredential(const std::string& organisation, const Secret& key) const;

 private:
  Result<Secret> InsertKey(storage::Transaction& tx, const OrgId& org, const UserId& owner) const;
  Result<Secret> InsertPlane(storage::Transaction& tx, const OrgId& org) const;

  storage::Database& database_;
  const auth::CredentialHasher& hasher_;
  const AuditLog& audit_;
  const platform::Clock& clock_;
  platform::Random& random_;
};

}  // namespace expanse::control_plane
