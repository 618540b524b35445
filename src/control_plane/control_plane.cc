// SPDX-License-Identifier: Apache-2.0
#include "control_plane/control_plane.h"

#include <filesystem>

#include "control_plane/api/auth_api.h"
#include "control_plane/api/compute_api.h"
#include "control_plane/api/organisation_api.h"
#include "control_plane/api/plane_api.h"
#include "control_plane/server_keys.h"
#include "control_plane/store/credentials.h"
#include "platform/fs/fs.h"
#include "storage/backup/backup.h"
#include "storage/relational/open_migrated.h"

namespace expanse::control_plane {

struct ControlPlane::Parts {
  Parts(Options o, std::unique_ptr<storage::Database> d, std::unique_ptr<ServerKeys> k,
        platform::Clock& clock, platform::Random& random)
      : options(std::move(o)),
        database(std::move(d)),
        keys(std::move(k)),
        audit(clock, random),
        authenticator(*database, *keys, clock),
        auth(*database, *keys, audit, options, clock),
        organisation(*database, keys->hasher(), audit, clock, random),
        compute(*database, keys->hasher(), audit, options, clock, random),
        discovery(options),
        plane(*database, keys->hasher(), audit, options, clock, random),
        bootstrap(*database, keys->hasher(), audit, clock, random) {}

  const Options options;
  const std::unique_ptr<storage::Database> database;
  const std::unique_ptr<ServerKeys> keys;
  const AuditLog audit;
  ControlAuthenticator authenticator;
  AuthApi auth;
  OrganisationApi organisation;
  ComputeApi compute;
  DiscoveryApi discovery;
  PlaneApi plane;
  Bootstrap bootstrap;
};

ControlPlane::ControlPlane(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ControlPlane::~ControlPlane() = default;

Result<std::unique_ptr<ControlPlane>> ControlPlane::Open(Options options, platform::Clock& clock,
                                                         platform::Random& random) {
  std::error_code ec;
  const std::string dir = std::filesystem::absolute(options.data_dir, ec).string();
  if (options.data_dir.empty() || ec)
    return Error(Code::kInvalidArgument, "the control plane needs a data directory");
  EXPANSE_CHECK_OK(platform::Fs().MakeDirs(dir, 0700));
  EXPANSE_CHECK_OK(storage::RefuseHalfRestored(dir));
  EXPANSE_TRY(auto database, storage::OpenMigrated(platform::JoinPath(dir, "control.db"),
                                                   storage::ControlMigrations()));
  EXPANSE_TRY(const bool has_credentials,
              database->Read([](storage::Transaction& tx) { return HasCredentials(tx); }));
  EXPANSE_TRY(auto keys, ServerKeys::Open(platform::JoinPath(dir, "control-keys.json"),
                                          /*may_create=*/!has_credentials,
                                          options.signing_key_lifetime, clock, random));
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::make_unique<Parts>(
      std::move(options), std::move(database), std::move(keys), clock, random)));
}

void ControlPlane::Register(rpc::Router& router) {
  control::v1::Register(router, parts_->auth);
  control::v1::Register(router, parts_->organisation);
  control::v1::Register(router, parts_->compute);
  control::v1::Register(router, parts_->discovery);
  control::v1::Register(router, parts_->plane);
}

rpc::Authenticator& ControlPlane::authenticator() { return parts_->authenticator; }
Status ControlPlane::CheckReady() {
  const auto rows = database().Query("SELECT 1");
  return rows.ok() ? Status() : Status(rows.error());
}

const Bootstrap& ControlPlane::bootstrap() const { return parts_->bootstrap; }
storage::Database& ControlPlane::database() { return *parts_->database; }

}  // namespace expanse::control_plane
