// SPDX-License-Identifier: Apache-2.0
// Organisations, roles, members and teams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/relational/database.h"

namespace expanse::control_plane {

struct Organisation {
  OrgId id;
  std::string name;
};
struct Role {
  std::string id;
  std::string name;
  std::vector<std::string> permissions;
  bool is_protected = false;
  bool is_default = false;
};
struct Member {
  OrgId org;
  UserId user;
  std::string email;
  std::string name;
  Role role;
  std::vector<TeamId> teams;
};
struct TeamRow {
  TeamId id;
  std::string name;
};

/// Rows of one transaction. Lookups answer an empty optional for what is not there.
class Members {
 public:
  explicit Members(storage::Transaction& tx) : tx_(tx) {}

  Status InsertOrganisation(const Organisation& organisation, int64_t now_ms);
  Result<std::optional<Organisation>> FindOrganisation(const OrgId& org);
  Result<std::optional<Organisation>> FindOrganisationByName(const std::string& name);

  Status InsertRole(const OrgId& org, const Role& role);
  /// name "": the default role.
  Result<std::optional<Role>> FindRole(const OrgId& org, const std::string& name);

  /// kAlreadyExists when the address is a member already. Team rows are not written here.
  Status Insert(const Member& member, int64_t now_ms);
  Result<std::optional<Member>> Find(const OrgId& org, const UserId& user);
  Result<std::optional<Member>> FindByEmail(const OrgId& org, const std::string& email);
  /// In any organisation.
  Result<bool> UserExists(const UserId& user);
  /// By address.
  Result<std::vector<Member>> List(const OrgId& org);

  Status InsertTeam(const OrgId& org, const TeamRow& team, int64_t now_ms);
  Result<bool> TeamExists(const OrgId& org, const TeamId& team);
  Result<std::vector<TeamRow>> ListTeams(const OrgId& org);
  Status AddToTeam(const OrgId& org, const TeamId& team, const UserId& user);

 private:
  Result<std::vector<Member>> Select(std::string_view where,
                                     std::initializer_list<storage::Value> params);
  storage::Transaction& tx_;
};

}  // namespace expanse::control_plane
