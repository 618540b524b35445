// SPDX-License-Identifier: Apache-2.0
// expanse-intelligence: analyse and diagnose.
#include "apps/backup_commands.h"
#include "apps/plane_program.h"
#include "apps/settings.h"
#include "intelligence/intelligence.h"

namespace expanse::apps {
namespace {

using platform::Setting;
using platform::SettingKind;

constexpr std::string_view kProgram = "expanse-intelligence";
constexpr Setting kDataDir{"data-dir", "EXPANSE_INTELLIGENCE_DATA_DIR", SettingKind::kString,
                           "/var/lib/expanse/intelligence", "where intelligence.db is kept"};

constexpr Setting kSettings[] = {
    {"listen", "EXPANSE_INTELLIGENCE_LISTEN", SettingKind::kString, "127.0.0.1:7703",
     "ADDRESS:PORT"},
    kDataDir,
    {"control-plane-url", "EXPANSE_CONTROL_PLANE_URL", SettingKind::kString,
     "http://127.0.0.1:7701", "where this plane fetches the keys of sessions"},
    {"data-plane-url", "EXPANSE_DATA_PLANE_URL", SettingKind::kString, "http://127.0.0.1:7702",
     "where this plane reads evidence, with its caller's session"},
    {"tls-certificate", "EXPANSE_INTELLIGENCE_TLS_CERTIFICATE", SettingKind::kString, "",
     "PEM file; without it plain HTTP"},
    {"tls-key", "EXPANSE_INTELLIGENCE_TLS_KEY", SettingKind::kString, "", "PEM file"},
    kCaFile,
    kStopTimeout,
    kLogLevel,
    kLogFormat,
};

Status Serve(const platform::Config& config) {
  intelligence::Options options;
  options.data_dir = config.GetString("data-dir");
  options.data_plane_url = config.GetString("data-plane-url");
  options.control_plane_url = config.GetString("control-plane-url");
  options.http = ClientOptionsFrom(config);
  return ServePlane(config, "intelligence",
                    [&](PlaneServer&, platform::Clock& clock, platform::Random& random) {
                      WarnOfPlainUrl("intelligence", options.data_plane_url);
                      WarnOfPlainUrl("intelligence", options.control_plane_url);
                      return AsServed(intelligence::Intelligence::Open(options, clock, random));
                    });
}

int Main(const std::vector<std::string>& words) {
  if (const auto status = RunBackupCommand(kProgram, words, IntelligenceLayout(), kDataDir))
    return *status;
  return RunWithConfig(kProgram,
                       "Serves the intelligence plane. Subcommands: backup --to DIR (while it "
                       "runs), restore --from DIR; each has --help.",
                       kSettings, words, Serve);
}

}  // namespace
}  // namespace expanse::apps

int main(int argc, char** argv) { return expanse::apps::Main(expanse::apps::Words(argc, argv)); }
