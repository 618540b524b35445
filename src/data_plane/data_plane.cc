// SPDX-License-Identifier: Apache-2.0
#include "data_plane/data_plane.h"

#include <optional>
#include <utility>

#include "auth/sessions/session_verifier.h"
#include "base/log.h"
#include "data_plane/enrolment/compute_credentials.h"
#include "data_plane/enrolment/control_authority.h"
#include "data_plane/enrolment/enrolment_service.h"
#include "data_plane/executions/execution_service.h"
#include "data_plane/ingest/ingest_counters.h"
#include "data_plane/ingest/ingest_service.h"
#include "data_plane/metrics/metrics_service.h"
#include "data_plane/retention/series_retention.h"
#include "platform/fs/fs.h"
#include "platform/service/service.h"
#include "storage/backup/backup.h"
#include "storage/blob/blob_store.h"
#include "storage/relational/database.h"
#include "storage/relational/open_migrated.h"
#include "storage/series/series_store.h"

namespace expanse::data_plane {
namespace {

constexpr Millis kIntegrityPeriod{86'400'000};

class DataPlaneAuthenticator final : public rpc::Authenticator {
 public:
  DataPlaneAuthenticator(ComputeCredentials& computes, auth::SessionVerifier& sessions)
      : computes_(computes), sessions_(sessions) {}

  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission) override {
    if (permission == "compute") return computes_.Authenticate(std::string(bearer));
    return sessions_.Authenticate(bearer, permission);
  }

 private:
  ComputeCredentials& computes_;
  auth::SessionVerifier& sessions_;
};

control::v1::PlaneEndpoints ToProto(const DataPlane::Endpoints& endpoints) {
  control::v1::PlaneEndpoints out;
  out.set_control_plane_url(endpoints.control_plane_url);
  out.set_data_plane_url(endpoints.data_plane_url);
  out.set_intelligence_url(endpoints.intelligence_url);
  out.set_console_url(endpoints.console_url);
  return out;
}

}  // namespace

// In the order of construction; destroyed in reverse.
struct DataPlane::Parts {
  Parts(Options o, platform::Clock& c, platform::Random& r, std::unique_ptr<storage::Database> db,
        std::unique_ptr<storage::BlobStore> blob_store,
        std::unique_ptr<storage::SeriesStore> series_store)
      : options(std::move(o)),
        clock(c),
        random(r),
        database(std::move(db)),
        blobs(std::move(blob_store)),
        series(std::move(series_store)),
        authority(options.control_plane_url, options.plane_credential, clock, options.http),
        sessions({platform::JoinPath(options.data_dir, "key-set.json"), Millis(10'000),
                  options.key_refresh_period},
                 auth::KeySetFromControlPlane(authority.channel()), clock),
        credentials(*database, authority, clock),
        authenticator(credentials, sessions),
        enrolment(*database, authority, credentials, clock, ToProto(options.endpoints)),
        counters(options.metrics == nullptr ? nullptr
                                            : std::make_unique<IngestCounters>(*options.metrics)),
        ingest(
            *database, *series, *blobs, clock, [this] { return platform::NewUuid(clock, random); },
            counters.get()),
        executions(*database, *blobs, options.endpoints.console_url),
        metrics(*database, *series, clock),
        retention(*series, clock, options.series_retention) {}

  Options options;
  platform::Clock& clock;
  platform::Random& random;
  std::unique_ptr<storage::Database> database;
  std::unique_ptr<storage::BlobStore> blobs;
  std::unique_ptr<storage::SeriesStore> series;
  ControlAuthority authority;
  auth::SessionVerifier sessions;
  ComputeCredentials credentials;
  DataPlaneAuthenticator authenticator;
  EnrolmentService enrolment;
  std::unique_ptr<IngestCounters> counters;
  IngestService ingest;
  ExecutionService executions;
  MetricsService metrics;
  SeriesRetention retention;
  std::optional<MonoTime> checked;  // the database, last
  std::unique_ptr<platform::PeriodicTask> housekeeping;
};

DataPlane::DataPlane(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {
  if (parts_->options.housekeeping_period.count() > 0)
    parts_->housekeeping = std::make_unique<platform::PeriodicTask>(
        "data-housekeeping", parts_->options.housekeeping_period, [this] {
          const Status done = Housekeep();
          if (!done.ok()) log::Debug("housekeeping.later", {{"reason", done.error().message()}});
        });
}

DataPlane::~DataPlane() { parts_->housekeeping.reset(); }

Result<std::unique_ptr<DataPlane>> DataPlane::Open(Options options, platform::Clock& clock,
                                                   platform::Random& random) {
  const platform::Fs fs;
  EXPANSE_CHECK_OK(fs.MakeDirs(options.data_dir, 0700));
  EXPANSE_TRY(const std::string dir, fs.RealPath(options.data_dir));
  options.data_dir = dir;
  EXPANSE_CHECK_OK(storage::RefuseHalfRestored(dir));
  EXPANSE_TRY(auto database, storage::OpenMigrated(dir + "/data.db", storage::DataMigrations()));
  EXPANSE_TRY(auto blobs, storage::BlobStore::Open("file:" + dir + "/blobs"));
  EXPANSE_TRY(auto series, storage::SeriesStore::Open("file:" + dir + "/series"));
  return std::unique_ptr<DataPlane>(
      new DataPlane(std::make_unique<Parts>(std::move(options), clock, random, std::move(database),
                                            std::move(blobs), std::move(series))));
}

void DataPlane::Register(rpc::Router& router) {
  data::v1::Register(router, parts_->enrolment);
  data::v1::Register(router, parts_->ingest);
  data::v1::Register(router, parts_->executions);
  data::v1::Register(router, parts_->metrics);
}

rpc::Authenticator& DataPlane::authenticator() { return parts_->authenticator; }

Status DataPlane::CheckReady() {
  const auto rows = parts_->database->Query("SELECT 1");
  return rows.ok() ? Status() : Status(rows.error());
}

Status DataPlane::Housekeep() {
  EXPANSE_CHECK_OK(parts_->retention.Step());
  // Damage where nobody reads would be found when it is needed; found here it is repaired.
  const MonoTime now = parts_->clock.Mono();
  if (!parts_->checked || now - *parts_->checked >= kIntegrityPeriod) {
    parts_->checked = now;
    if (const Status whole = parts_->database->CheckIntegrity(); !whole.ok())
      log::Error("storage.database_damaged", {{"finding", whole.error().message()}});
  }
  return parts_->enrolment.ForwardPending();
}

}  // namespace expanse::data_plane
