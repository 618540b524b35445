// SPDX-License-Identifier: Apache-2.0
#include "intelligence/intelligence.h"

#include <filesystem>
#include <utility>

#include "auth/sessions/session_verifier.h"
#include "intelligence/analyse/analyse_service.h"
#include "intelligence/diagnose/service.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "rpc/channel.h"
#include "storage/backup/backup.h"
#include "storage/relational/database.h"
#include "storage/relational/open_migrated.h"

namespace expanse::intelligence {
namespace {

class SessionAuthenticator final : public rpc::Authenticator {
 public:
  explicit SessionAuthenticator(auth::SessionVerifier& verifier) : verifier_(verifier) {}
  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission) override {
    return verifier_.Authenticate(bearer, permission);
  }

 private:
  auth::SessionVerifier& verifier_;
};

auth::SessionVerifierOptions VerifierOptions(const std::string& dir) {
  auth::SessionVerifierOptions options;
  options.cache_file = platform::JoinPath(dir, "keyset.json");
  return options;
}

}  // namespace

struct Intelligence::Parts {
  Parts(const Options& options, const std::string& dir, std::unique_ptr<storage::Database> d,
        platform::Clock& clock, platform::Random& random)
      : database(std::move(d)),
        http(platform::NewCurlHttpClient(options.http)),
        data_plane(*http, options.data_plane_url),
        control_plane(*http, options.control_plane_url),
        verifier(VerifierOptions(dir), auth::KeySetFromControlPlane(control_plane), clock),
        authenticator(verifier),
        analyse(*database, data_plane, clock, random),
        diagnose(*database, data_plane, clock, random) {}

  const std::unique_ptr<storage::Database> database;
  const std::unique_ptr<platform::HttpClient> http;
  rpc::HttpChannel data_plane;
  rpc::HttpChannel control_plane;
  auth::SessionVerifier verifier;
  SessionAuthenticator authenticator;
  analyse::AnalyseApi analyse;
  diagnose::DiagnoseApi diagnose;
};

Intelligence::Intelligence(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Intelligence::~Intelligence() = default;

Result<std::unique_ptr<Intelligence>> Intelligence::Open(Options options, platform::Clock& clock,
                                                         platform::Random& random) {
  std::error_code ec;
  const std::string dir = std::filesystem::absolute(options.data_dir, ec).string();
  if (options.data_dir.empty() || ec)
    return Error(Code::kInvalidArgument, "the intelligence plane needs a data directory");
  EXPANSE_CHECK_OK(platform::Fs().MakeDirs(dir, 0700));
  EXPANSE_CHECK_OK(storage::RefuseHalfRestored(dir));
  EXPANSE_TRY(auto database, storage::OpenMigrated(platform::JoinPath(dir, "intelligence.db"),
                                                   storage::IntelligenceMigrations()));
  return std::unique_ptr<Intelligence>(
      new Intelligence(std::make_unique<Parts>(options, dir, std::move(database), clock, random)));
}

Status Intelligence::CheckReady() {
  const auto rows = parts_->database->Query("SELECT 1");
  return rows.ok() ? Status() : Status(rows.error());
}

void Intelligence::Register(rpc::Router& router) {
  v1::Register(router, parts_->analyse);
  v1::Register(router, parts_->diagnose);
}

rpc::Authenticator& Intelligence::authenticator() { return parts_->authenticator; }

}  // namespace expanse::intelligence
