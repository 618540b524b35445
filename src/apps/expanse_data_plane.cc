// SPDX-License-Identifier: Apache-2.0
// expanse-data-plane: executions, series, bundles and logs, where the customer runs it.
#include "apps/backup_commands.h"
#include "apps/plane_program.h"
#include "apps/settings.h"
#include "data_plane/data_plane.h"

namespace expanse::apps {
namespace {

using platform::Setting;
using platform::SettingKind;

constexpr std::string_view kProgram = "expanse-data-plane";
constexpr Setting kDataDir{"data-dir", "EXPANSE_DATA_PLANE_DIR", SettingKind::kString,
                           "/var/lib/expanse/data-plane",
                           "where data.db, blobs/ and series/ are kept"};

constexpr Setting kSettings[] = {
    {"listen", "EXPANSE_DATA_LISTEN", SettingKind::kString, "127.0.0.1:7702", "ADDRESS:PORT"},
    kDataDir,
    {"control-plane-url", "EXPANSE_CONTROL_PLANE_URL", SettingKind::kString,
     "http://127.0.0.1:7701", "where this plane reaches the control plane"},
    {"plane-key-file", "EXPANSE_PLANE_KEY_FILE", SettingKind::kString, "/etc/expanse/plane.key",
     "file with this plane's credential (0600)"},
    {"data-plane-url", "EXPANSE_DATA_PLANE_URL", SettingKind::kString, "",
     "this plane as computes reach it (default: what it listens on)"},
    {"series-retention", "EXPANSE_SERIES_RETENTION", SettingKind::kDuration, "30d",
     "how long raw samples are kept; 0s: for good"},
    {"tls-certificate", "EXPANSE_DATA_TLS_CERTIFICATE", SettingKind::kString, "",
     "PEM file; without it plain HTTP"},
    {"tls-key", "EXPANSE_DATA_TLS_KEY", SettingKind::kString, "", "PEM file"},
    kCaFile,
    kStopTimeout,
    kLogLevel,
    kLogFormat,
};

Status Serve(const platform::Config& config) {
  data_plane::DataPlane::Options options;
  options.data_dir = config.GetString("data-dir");
  options.control_plane_url = config.GetString("control-plane-url");
  EXPANSE_TRY(options.plane_credential, ReadKeyFile(config.GetString("plane-key-file")));
  options.endpoints.control_plane_url = options.control_plane_url;
  options.endpoints.data_plane_url = config.GetString("data-plane-url");
  options.series_retention = Millis(config.GetMillis("series-retention"));
  options.http = ClientOptionsFrom(config);
  return ServePlane(config, "data-plane",
                    [&](PlaneServer& server, platform::Clock& clock, platform::Random& random) {
                      WarnOfPlainUrl("data-plane", options.control_plane_url);
                      if (options.endpoints.data_plane_url.empty())
                        options.endpoints.data_plane_url = server.url();
                      options.metrics = &server.metrics();
                      return AsServed(data_plane::DataPlane::Open(options, clock, random));
                    });
}

int Main(const std::vector<std::string>& words) {
  if (const auto status = RunBackupCommand(kProgram, words, DataPlaneLayout(), kDataDir))
    return *status;
  return RunWithConfig(kProgram,
                       "Serves the data plane. Its credential comes from `expanse-control-plane "
                       "bootstrap` or `plane-key`. Subcommands: backup --to DIR (while it runs), "
                       "restore --from DIR; each has --help.",
                       kSettings, words, Serve);
}

}  // namespace
}  // namespace expanse::apps

int main(int argc, char** argv) { return expanse::apps::Main(expanse::apps::Words(argc, argv)); }
