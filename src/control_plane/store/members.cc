// SPDX-License-Identifier: Apache-2.0
#include "control_plane/store/members.h"

#include "base/strings.h"

namespace expanse::control_plane {
namespace {

std::vector<std::string> PermissionList(const std::string& text) {
  std::vector<std::string> out;
  for (const auto word : Split(text, ' '))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

Role RoleOf(const storage::Row& row) {
  return {row.Text("role_id"), row.Text("role_name"), PermissionList(row.Text("permissions")),
          row.Bool("is_protected"), row.Bool("is_default")};
}

template <typename T>
std::optional<T> First(std::vector<T> rows) {
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

std::optional<Organisation> OrganisationOf(const storage::Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return Organisation{OrgId(rows[0].Text(0)), rows[0].Text(1)};
}

}  // namespace

Status Members::InsertOrganisation(const Organisation& organisation, int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO organisation (org_id, name, created_at_ms) VALUES ($1, $2, $3)",
                  {organisation.id, organisation.name, now_ms}));
  return {};
}

Result<std::optional<Organisation>> Members::FindOrganisation(const OrgId& org) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, name FROM organisation WHERE org_id = $1", {org}));
  return OrganisationOf(rows);
}

Result<std::optional<Organisation>> Members::FindOrganisationByName(const std::string& name) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT org_id, name FROM organisation WHERE name = $1", {name}));
  return OrganisationOf(rows);
}

Status Members::InsertRole(const OrgId& org, const Role& role) {
  EXPANSE_CHECK_OK(tx_.Execute(
      "INSERT INTO role (org_id, role_id, name, permissions, is_protected, is_default) "
      "VALUES ($1, $2, $3, $4, $5, $6)",
      {org, role.id, role.name, Join(role.permissions, " "), role.is_protected, role.is_default}));
  return {};
}

Result<std::optional<Role>> Members::FindRole(const OrgId& org, const std::string& name) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT role_id, name AS role_name, permissions, is_protected, is_default "
                        "FROM role WHERE org_id = $1 AND (name = $2 OR ($2 = '' AND is_default = "
                        "1)) ORDER BY name LIMIT 1",
                        {org, name}));
  if (rows.empty()) return std::optional<Role>();
  return std::optional(RoleOf(rows[0]));
}

Status Members::Insert(const Member& member, int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO member (org_id, user_id, email, name, role_id, created_at_ms) "
                  "VALUES ($1, $2, $3, $4, $5, $6)",
                  {member.org, member.user, member.email, member.name, member.role.id, now_ms}));
  return {};
}

Result<std::vector<Member>> Members::Select(std::string_view where,
                                            std::initializer_list<storage::Value> params) {
  const std::string from =
      " FROM member m JOIN role r ON r.org_id = m.org_id AND r.role_id = "
      "m.role_id WHERE " +
      std::string(where);
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT m.org_id, m.user_id, m.email, m.name, m.role_id, r.name AS "
                        "role_name, r.permissions, r.is_protected, r.is_default" +
                            from + " ORDER BY m.email",
                        params));
  std::vector<Member> out;
  for (const auto row : rows) {
    Member m{OrgId(row.Text("org_id")),
             UserId(row.Text("user_id")),
             row.Text("email"),
             row.Text("name"),
             RoleOf(row),
             {}};
    EXPANSE_TRY(const auto teams,
                tx_.Query("SELECT team_id FROM team_member WHERE org_id = $1 AND user_id = $2 "
                          "ORDER BY team_id",
                          {m.org, m.user}));
    for (const auto team : teams) m.teams.emplace_back(team.Text(0));
    out.push_back(std::move(m));
  }
  return out;
}

Result<std::optional<Member>> Members::Find(const OrgId& org, const UserId& user) {
  EXPANSE_TRY(auto found, Select("m.org_id = $1 AND m.user_id = $2", {org, user}));
  return First(std::move(found));
}

Result<std::optional<Member>> Members::FindByEmail(const OrgId& org, const std::string& email) {
  EXPANSE_TRY(auto found, Select("m.org_id = $1 AND m.email = $2", {org, email}));
  return First(std::move(found));
}

Result<bool> Members::UserExists(const UserId& user) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT 1 AS found FROM member WHERE user_id = $1 LIMIT 1", {user}));
  return !rows.empty();
}

Result<std::vector<Member>> Members::List(const OrgId& org) {
  return Select("m.org_id = $1", {org});
}

Status Members::InsertTeam(const OrgId& org, const TeamRow& team, int64_t now_ms) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO team (org_id, team_id, name, created_at_ms) VALUES ($1, $2, $3, $4)",
                  {org, team.id, team.name, now_ms}));
  return {};
}

Result<bool> Members::TeamExists(const OrgId& org, const TeamId& team) {
  EXPANSE_TRY(
      const auto rows,
      tx_.Query("SELECT 1 AS found FROM team WHERE org_id = $1 AND team_id = $2", {org, team}));
  return !rows.empty();
}

Result<std::vector<TeamRow>> Members::ListTeams(const OrgId& org) {
  EXPANSE_TRY(const auto rows,
              tx_.Query("SELECT team_id, name FROM team WHERE org_id = $1 ORDER BY name", {org}));
  std::vector<TeamRow> out;
  for (const auto row : rows) out.push_back({TeamId(row.Text(0)), row.Text(1)});
  return out;
}

Status Members::AddToTeam(const OrgId& org, const TeamId& team, const UserId& user) {
  EXPANSE_CHECK_OK(
      tx_.Execute("INSERT INTO team_member (org_id, team_id, user_id, team_role) "
                  "VALUES ($1, $2, $3, 'Member') ON CONFLICT (org_id, team_id, user_id) DO NOTHING",
                  {org, team, user}));
  return {};
}

}  // namespace expanse::control_plane
