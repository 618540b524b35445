// SPDX-License-Identifier: Apache-2.0
// expanse-control-plane: serve (the default), or make an organisation and credentials.
#include <cstdio>

#include "apps/backup_commands.h"
#include "apps/plane_program.h"
#include "apps/settings.h"
#include "control_plane/control_plane.h"
#include "platform/fs/fs.h"

namespace expanse::apps {
namespace {

using platform::Setting;
using platform::SettingKind;

constexpr std::string_view kProgram = "expanse-control-plane";
constexpr int64_t kMaxMissed = 1000;
constexpr Setting kDataDir{"data-dir", "EXPANSE_CONTROL_DATA_DIR", SettingKind::kString,
                           "/var/lib/expanse/control-plane",
                           "where control.db and control-keys.json are kept"};

constexpr Setting kServe[] = {
    {"listen", "EXPANSE_CONTROL_LISTEN", SettingKind::kString, "127.0.0.1:7701", "ADDRESS:PORT"},
    kDataDir,
    {"tls-certificate", "EXPANSE_CONTROL_TLS_CERTIFICATE", SettingKind::kString, "",
     "PEM file; without it plain HTTP"},
    {"tls-key", "EXPANSE_CONTROL_TLS_KEY", SettingKind::kString, "", "PEM file"},
    {"control-plane-url", "EXPANSE_CONTROL_PLANE_URL", SettingKind::kString, "",
     "this plane as others reach it (default: what it listens on)"},
    {"data-plane-url", "EXPANSE_DATA_PLANE_URL", SettingKind::kString, "",
     "the data plane as computes and people reach it"},
    {"intelligence-url", "EXPANSE_INTELLIGENCE_URL", SettingKind::kString, "",
     "the intelligence plane as people reach it"},
    {"console-url", "EXPANSE_CONSOLE_URL", SettingKind::kString, "", "the console, for links"},
    {"heartbeat-interval", "", SettingKind::kDuration, "30s", "how often computes report"},
    {"degraded-after-missed", "", SettingKind::kInt, "3",
     "missed heartbeats until a compute is degraded"},
    {"degraded-at-least", "", SettingKind::kDuration, "2m", "and at least this long"},
    {"offline-after", "", SettingKind::kDuration, "30m", "without a heartbeat: offline"},
    {"session-lifetime", "", SettingKind::kDuration, "15m", "of the tokens that sign-in makes"},
    {"install-token-lifetime", "", SettingKind::kDuration, "1h", "of single-use install tokens"},
    {"log-received", "", SettingKind::kString, "",
     "append every request as received to this file (without credentials; for audits)"},
    kStopTimeout,
    kLogLevel,
    kLogFormat,
};

constexpr Setting kBootstrap[] = {
    kDataDir,
    {"organisation", "", SettingKind::kString, "", "name of the new organisation"},
    {"owner-email", "", SettingKind::kString, "", "address of its owner"},
    {"owner-name", "", SettingKind::kString, "", "name of its owner (default: the address)"},
    {"owner-user-id", "", SettingKind::kString, "",
     "the owner is this user of another organisation here"},
    {"key-file", "", SettingKind::kString, "", "file for the owner's API key (0600)"},
    {"plane-key-file", "", SettingKind::kString, "",
     "file for the data plane's credential (0600); without it none is kept"},
    {"print-key", "", SettingKind::kBool, "false", "print the API key on stdout too"},
    kLogLevel,
    kLogFormat,
};

constexpr Setting kOwnerKey[] = {
    kDataDir,
    {"organisation", "", SettingKind::kString, "", "name of the organisation"},
    {"owner-email", "", SettingKind::kString, "", "address of one of its owners"},
    {"key-file", "", SettingKind::kString, "", "file for the new API key (0600)"},
    {"print-key", "", SettingKind::kBool, "false", "print the API key on stdout too"},
    kLogLevel,
    kLogFormat,
};

constexpr Setting kPlaneKey[] = {
    kDataDir,
    {"organisation", "", SettingKind::kString, "", "name of the organisation"},
    {"plane-key-file", "", SettingKind::kString, "", "file for the new credential (0600)"},
    kLogLevel,
    kLogFormat,
};

control_plane::Options OptionsFrom(const platform::Config& config) {
  control_plane::Options options;
  options.data_dir = config.GetString("data-dir");
  return options;
}

Status ReadPolicy(const platform::Config& config, control_plane::Options* options) {
  for (const char* key : {"heartbeat-interval", "offline-after", "session-lifetime",
                          "install-token-lifetime", "degraded-after-missed"}) {
    const bool is_count = std::string_view(key) == "degraded-after-missed";
    const int64_t value = is_count ? config.GetInt(key) : config.GetMillis(key);
    if (value <= 0 || (is_count && value > kMaxMissed))
      return Error(Code::kInvalidArgument, std::string(key) + " is out of range");
  }
  options->heartbeat.interval = Millis(config.GetMillis("heartbeat-interval"));
  options->heartbeat.degraded_after_missed =
      static_cast<int>(config.GetInt("degraded-after-missed"));
  options->heartbeat.degraded_at_least = Millis(config.GetMillis("degraded-at-least"));
  options->heartbeat.offline_after = Millis(config.GetMillis("offline-after"));
  options->session_lifetime = Millis(config.GetMillis("session-lifetime"));
  options->install_token_lifetime = Millis(config.GetMillis("install-token-lifetime"));
  return {};
}

Status Serve(const platform::Config& config) {
  control_plane::Options options = OptionsFrom(config);
  EXPANSE_CHECK_OK(ReadPolicy(config, &options));
  options.endpoints = {config.GetString("control-plane-url"), config.GetString("data-plane-url"),
                       config.GetString("intelligence-url"), config.GetString("console-url")};
  return ServePlane(
      config, "control-plane",
      [&](PlaneServer& server, platform::Clock& clock, platform::Random& random) {
        if (options.endpoints.control_plane_url.empty())
          options.endpoints.control_plane_url = server.url();
        return AsServed(control_plane::ControlPlane::Open(options, clock, random));
      },
      [&](PlaneServerOptions* server) {
        server->record_received_file = config.GetString("log-received");
      });
}

Status Required(const platform::Config& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (config.GetString(key).empty())
      return Error(Code::kInvalidArgument, std::string("--") + key + " is needed");
  return {};
}

/// A key that nobody asked to see must have a place, and no other key may be in it.
Status CheckKeyFile(const std::string& path) {
  if (!path.empty() && platform::Fs().Exists(path))
    return Error(Code::kFailedPrecondition, path + " exists already; name another file");
  return {};
}

Status HandOver(const platform::Config& config, const Secret& key) {
  const std::string& path = config.GetString("key-file");
  if (!path.empty()) EXPANSE_CHECK_OK(WriteKeyFile(path, key));
  if (config.GetBool("print-key")) std::printf("%s\n", key.Reveal().c_str());
  return {};
}

Status CheckWhereTheKeyGoes(const platform::Config& config) {
  if (config.GetString("key-file").empty() && !config.GetBool("print-key"))
    return Error(Code::kInvalidArgument, "--key-file FILE is needed (or --print-key)");
  return CheckKeyFile(config.GetString("key-file"));
}

Result<std::unique_ptr<control_plane::ControlPlane>> OpenFor(const platform::Config& config,
                                                             platform::Clock& clock,
                                                             platform::Random& random) {
  EXPANSE_CHECK_OK(ConfigureLog(config));
  return control_plane::ControlPlane::Open(OptionsFrom(config), clock, random);
}

Status Bootstrap(const platform::Config& config) {
  EXPANSE_CHECK_OK(Required(config, {"organisation", "owner-email"}));
  EXPANSE_CHECK_OK(CheckWhereTheKeyGoes(config));
  EXPANSE_CHECK_OK(CheckKeyFile(config.GetString("plane-key-file")));
  platform::SystemClock clock;
  platform::SystemRandom random;
  EXPANSE_TRY(const auto plane, OpenFor(config, clock, random));
  EXPANSE_TRY(const auto made,
              plane->bootstrap().Create(
                  {config.GetString("organisation"), config.GetString("owner-email"),
                   config.GetString("owner-name"), UserId(config.GetString("owner-user-id"))}));
  std::fprintf(stderr, "organisation %s (%s), owner %s\n", config.GetString("organisation").c_str(),
               made.org.str().c_str(), made.owner.str().c_str());
  const auto handed = HandOver(config, made.api_key);
  if (!handed.ok())
    return handed.error().WithContext(
        "the organisation was made, its key not stored; use `expanse-control-plane owner-key`");
  if (!config.GetString("plane-key-file").empty())
    EXPANSE_CHECK_OK(WriteKeyFile(config.GetString("plane-key-file"), made.plane_credential));
  return {};
}

Status OwnerKey(const platform::Config& config) {
  EXPANSE_CHECK_OK(Required(config, {"organisation", "owner-email"}));
  EXPANSE_CHECK_OK(CheckWhereTheKeyGoes(config));
  platform::SystemClock clock;
  platform::SystemRandom random;
  EXPANSE_TRY(const auto plane, OpenFor(config, clock, random));
  EXPANSE_TRY(const Secret key, plane->bootstrap().NewOwnerKey(config.GetString("organisation"),
                                                               config.GetString("owner-email")));
  return HandOver(config, key);
}

Status PlaneKey(const platform::Config& config) {
  EXPANSE_CHECK_OK(Required(config, {"organisation", "plane-key-file"}));
  EXPANSE_CHECK_OK(CheckKeyFile(config.GetString("plane-key-file")));
  platform::SystemClock clock;
  platform::SystemRandom random;
  EXPANSE_TRY(const auto plane, OpenFor(config, clock, random));
  EXPANSE_TRY(const Secret key,
              plane->bootstrap().NewPlaneCredential(config.GetString("organisation")));
  return WriteKeyFile(config.GetString("plane-key-file"), key);
}

struct Subcommand {
  std::string_view name;
  std::string_view summary;
  std::span<const Setting> settings;
  Status (*run)(const platform::Config&);
};
constexpr Subcommand kSubcommands[] = {
    {"serve",
     "Serves the control plane. Other subcommands: bootstrap (first organisation, owner and keys), "
     "owner-key, plane-key (new keys in place of lost ones), backup --to DIR (while it runs), "
     "restore --from DIR; each has --help.",
     kServe, Serve},
    {"bootstrap", "Makes an organisation with its owner, API key and data-plane credential.",
     kBootstrap, Bootstrap},
    {"owner-key", "Makes another API key for an owner who lost theirs.", kOwnerKey, OwnerKey},
    {"plane-key", "Makes another credential for a data plane.", kPlaneKey, PlaneKey},
};

int Main(int argc, char** argv) {
  std::vector<std::string> words = Words(argc, argv);
  if (const auto status = RunBackupCommand(kProgram, words, ControlPlaneLayout(), kDataDir))
    return *status;
  std::string name = "serve";
  if (!words.empty() && words.front().rfind('-', 0) != 0) {
    name = words.front();
    words.erase(words.begin());
  }
  for (const auto& command : kSubcommands)
    if (command.name == name)
      return RunWithConfig(std::string(kProgram) + (name == "serve" ? "" : " " + name),
                           command.summary, command.settings, words, command.run);
  std::fprintf(stderr,
               "%s: no subcommand '%s'; serve, bootstrap, owner-key, plane-key, backup and "
               "restore exist\n",
               kProgram.data(), name.c_str());
  return 2;
}

}  // namespace
}  // namespace expanse::apps

int main(int argc, char** argv) { return expanse::apps::Main(argc, argv); }
