// SPDX-License-Identifier: Apache-2.0
// expanse-daemon: run (controller or sampler), healthcheck, version.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>
#include <vector>

#include <limits.h>
#include <unistd.h>

#include "apps/daemon_monitor.h"
#include "apps/settings.h"
#include "base/log.h"
#include "base/strings.h"
#include "collect/daemon/controller_daemon.h"
#include "collect/daemon/daemon_config.h"
#include "collect/daemon/health.h"
#include "collect/daemon/sampler_daemon.h"
#include "platform/config/config.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "platform/service/service.h"
#include "rpc/channel.h"

namespace expanse::apps {
namespace {

namespace daemon = collect::daemon;
using platform::Setting;
using platform::SettingKind;

constexpr int kUnhealthy = 1;
constexpr int kDegraded = 3;
/// --config is the JSON file of the credential here.
constexpr std::string_view kFileFlag = "settings";

constexpr char kUsage[] =
    "expanse-daemon captures what a compute runs.\n\n"
    "  expanse-daemon run --role controller --config FILE\n"
    "      on the slurmctld host: polls SLURM, delivers every node's spool, sends heartbeats\n"
    "  expanse-daemon run --role sampler --shared-prefix DIR [--node NAME]\n"
    "      on a worker: samples cgroups, takes the hooks' events; no credential, no network\n"
    "  expanse-daemon healthcheck [--max-age 20m] [--json] --config FILE\n"
    "      names every degraded source and why; exit status 0: the daemon's loop turns, 1: it "
    "does\n"
    "      not, 2: usage, 3: it turns, a source is degraded and --strict was given\n"
    "  expanse-daemon version\n\n"
    "`expanse-daemon run --help` and `expanse-daemon healthcheck --help` list every setting.\n";

constexpr Setting kRun[] = {
    {"role", "EXPANSE_DAEMON_ROLE", SettingKind::kString, "controller", "controller or sampler"},
    {"daemon-config", "EXPANSE_DAEMON_CONFIG", SettingKind::kString, "",
     "the same as --config: config.json of `expanse compute install` (controller)"},
    {"shared-prefix", "EXPANSE_SHARED_PREFIX", SettingKind::kString, "",
     "directory that every node mounts (sampler; the controller's is in its config)"},
    {"node", "EXPANSE_NODE", SettingKind::kString, "",
     "SLURM's name of this node (sampler; default: the host name)"},
    {"hook-spool", "EXPANSE_HOOK_SPOOL", SettingKind::kString, "",
     "node-local directory of the hooks' events (sampler; default: etc/sampler.json below the "
     "shared prefix)"},
    {"poll", "EXPANSE_POLL", SettingKind::kDuration, "10s",
     "time between looks at SLURM while nothing changes (controller)"},
    {"fastest-poll", "EXPANSE_FASTEST_POLL", SettingKind::kDuration, "2s",
     "the same while jobs are new or just ended"},
    {"metrics-listen", "EXPANSE_METRICS_LISTEN", SettingKind::kString, "",
     "ADDRESS:PORT for /metrics, /healthz and /readyz (default: none is opened; metrics.prom "
     "beside "
     "the marker files holds the same)"},
    {"tls-certificate", "EXPANSE_METRICS_TLS_CERTIFICATE", SettingKind::kString, "",
     "PEM file for metrics-listen; without it plain HTTP"},
    {"tls-key", "EXPANSE_METRICS_TLS_KEY", SettingKind::kString, "", "PEM file"},
    kCaFile,
    kStopTimeout,
    kLogLevel,
    kLogFormat,
};

constexpr Setting kHealthcheck[] = {
    {"daemon-config", "EXPANSE_DAEMON_CONFIG", SettingKind::kString, "",
     "the same as --config: names the controller's state directory"},
    {"state-dir", "", SettingKind::kString, "",
     "directory of the marker files, instead of --config (a sampler's: <hook spool>/<node>)"},
    {"max-age", "", SettingKind::kDuration, "20m", "oldest acceptable turn of the daemon's loop"},
    {"max-accepted-age", "", SettingKind::kDuration, "0s",
     "oldest acceptable heartbeat that the data plane took; 0s: not judged"},
    {"json", "", SettingKind::kBool, "false", "one JSON object"},
    {"strict", "", SettingKind::kBool, "false", "exit status 3 when a source is degraded"},
};

/// --config is the JSON file of the credential, not a file of settings: "--config X" and
/// "--config=X" become "--daemon-config".
std::vector<std::string> RenameConfig(std::vector<std::string> words) {
  for (auto& word : words) {
    if (word == "--config")
      word = "--daemon-config";
    else if (word.starts_with("--config="))
      word = "--daemon-config" + word.substr(8);
  }
  return words;
}

std::string WorkingDirectory() {
  char buffer[PATH_MAX];
  return getcwd(buffer, sizeof buffer) == nullptr ? "/" : buffer;
}

/// The state directory lies beside the config: its path has to be absolute.
Result<std::string> ConfigPath(const platform::Config& settings) {
  const std::string path = settings.GetString("daemon-config");
  if (path.empty() || path.starts_with('/')) return path;
  return platform::Fs().RealPath(platform::JoinPath(WorkingDirectory(), path));
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "";
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

/// Serves until SIGTERM; then the monitor ends before what it reads.
Status RunUntilStopped(const platform::Config& settings, platform::StopSignal& stop,
                       DaemonMonitor& monitor, const std::function<void()>& end) {
  platform::NotifySystemd("READY=1");
  const int signal = stop.Wait([&] { monitor.ReloadTls(); }, kCertificateWatch,
                               [&] { monitor.ReloadChangedTls(); });
  platform::NotifySystemd("STOPPING=1");
  log::Info("daemon.stopping", {{"signal", signal}});
  const platform::StopDeadline limit = LimitStop(settings);
  monitor.Stop();
  end();
  log::Info("daemon.stopped");
  return {};
}

Status RunController(const platform::Config& settings) {
  const platform::Fs fs;
  EXPANSE_TRY(const std::string path, ConfigPath(settings));
  if (path.empty())
    return Error(Code::kInvalidArgument, "--config FILE is needed (or EXPANSE_DAEMON_CONFIG)");
  daemon::ControllerOptions options;
  EXPANSE_TRY(options.config, daemon::LoadDaemonConfig(fs, path));
  options.version = EXPANSE_DAEMON_VERSION;
  options.poll = Millis(settings.GetMillis("poll"));
  options.fastest_poll = Millis(settings.GetMillis("fastest-poll"));
  platform::StopSignal stop;
  const platform::SystemClock clock;
  platform::SystemProcessRunner runner;
  platform::SystemRandom random;
  platform::HttpClientOptions client;
  client.ca_file = settings.GetString("ca-file");
  const auto http = platform::NewCurlHttpClient(client);
  WarnOfPlainUrl("daemon", options.config.data_plane_url);
  rpc::HttpChannel channel(*http, options.config.data_plane_url);
  log::Info("daemon.starting", {{"role", "controller"},
                                {"version", options.version},
                                {"compute", options.config.compute_id},
                                {"data_plane", options.config.data_plane_url}});
  const std::string state_dir = options.config.state_dir;
  EXPANSE_TRY(auto running, daemon::ControllerDaemon::Start(std::move(options),
                                                            {clock, fs, runner, random, channel}));
  DaemonMonitor monitor(state_dir, fs, clock);
  running->AddMetrics(monitor.metrics());
  EXPANSE_CHECK_OK(monitor.Start(settings));
  return RunUntilStopped(settings, stop, monitor, [&] { running.reset(); });
}

Status RunSampler(const platform::Config& settings) {
  const platform::Fs fs;
  daemon::SamplerDaemonOptions options;
  options.shared_prefix = settings.GetString("shared-prefix");
  if (!options.shared_prefix.starts_with('/'))
    return Error(Code::kInvalidArgument, "--shared-prefix DIR is needed, an absolute path");
  options.node = settings.GetString("node");
  if (options.node.empty()) options.node = HostName();
  if (options.node.empty() || options.node.find('/') != std::string::npos)
    return Error(Code::kInvalidArgument, "--node NAME is needed");
  options.hook_spool = settings.GetString("hook-spool");
  if (options.hook_spool.empty()) {
    EXPANSE_TRY(options.hook_spool, daemon::SamplerHookSpool(fs, options.shared_prefix));
  }
  platform::StopSignal stop;
  const platform::SystemClock clock;
  platform::SystemRandom random;
  log::Info("daemon.starting",
            {{"role", "sampler"}, {"version", EXPANSE_DAEMON_VERSION}, {"node", options.node}});
  const std::string state_dir = platform::JoinPath(options.hook_spool, options.node);
  EXPANSE_TRY(auto running, daemon::SamplerDaemon::Start(std::move(options), clock, fs, random));
  DaemonMonitor monitor(state_dir, fs, clock);
  running->AddMetrics(monitor.metrics());
  EXPANSE_CHECK_OK(monitor.Start(settings));
  return RunUntilStopped(settings, stop, monitor, [&] { running.reset(); });
}

Status Run(const platform::Config& settings) {
  EXPANSE_CHECK_OK(ConfigureLog(settings));
  const std::string role = settings.GetString("role");
  if (role == "controller") return RunController(settings);
  if (role == "sampler") return RunSampler(settings);
  return Error(Code::kInvalidArgument, "--role is controller or sampler, not '" + role + "'");
}

Status CheckHealth(const platform::Config& settings, int* exit_status) {
  const platform::Fs fs;
  const platform::SystemClock clock;
  daemon::HealthcheckOptions options;
  options.directory = settings.GetString("state-dir");
  if (options.directory.empty()) {
    EXPANSE_TRY(const std::string path, ConfigPath(settings));
    if (path.empty())
      return Error(Code::kInvalidArgument, "--config FILE or --state-dir DIR is needed");
    EXPANSE_TRY(const auto config, daemon::LoadDaemonConfig(fs, path));
    options.directory = config.state_dir;
  }
  options.max_age = Millis(settings.GetMillis("max-age"));
  if (const Millis accepted(settings.GetMillis("max-accepted-age")); accepted.count() > 0)
    options.max_accepted_age = accepted;
  options.json = settings.GetBool("json");
  const auto report = daemon::Healthcheck(options, fs, clock);
  std::fwrite(report.text.data(), 1, report.text.size(), stdout);
  if (!report.healthy)
    *exit_status = kUnhealthy;
  else if (settings.GetBool("strict") && report.degraded > 0)
    *exit_status = kDegraded;
  return {};
}

bool IsAskedToPrint(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--print-config") != words.end() &&
         std::find(words.begin(), words.end(), "--help") == words.end();
}

/// What --print-config shows beside the settings: the members of config.json, where one is named.
int PrintDaemonConfig(const std::vector<std::string>& words) {
  const auto settings =
      platform::Config::Load(kRun, words, platform::ProcessEnvironment(), kFileFlag);
  const auto path = settings.ok() ? ConfigPath(*settings) : settings.error();
  if (path.ok() && path->empty()) return 0;
  const auto config = path.ok() ? daemon::LoadDaemonConfig(platform::Fs(), *path) : path.error();
  if (!config.ok()) {
    std::fprintf(stderr, "expanse-daemon run: %s\n",
                 EscapeForTerminal(config.error().message(), true).c_str());
    return 1;
  }
  const auto print = [&](const char* member, const std::string& value) {
    std::printf("config.%s = %s  # file %s\n", member, EscapeForTerminal(value).c_str(),
                path->c_str());
  };
  print("compute_id", config->compute_id);
  print("organisation_id", config->organisation_id);
  print("credential", "(set)");
  print("data_plane_url", platform::WithoutUserInfo(config->data_plane_url));
  print("shared_prefix", config->shared_prefix);
  print("slurm_conf", config->slurm_conf);
  print("state_dir", config->state_dir);
  return 0;
}

int Main(std::vector<std::string> words) {
  const std::string command = words.empty() ? "" : words[0];
  if (!words.empty()) words = RenameConfig({words.begin() + 1, words.end()});
  if (command == "run") {
    const int status = RunWithConfig("expanse-daemon run",
                                     "Captures what a compute runs. --config FILE is config.json "
                                     "of the compute, the same as --daemon-config.",
                                     kRun, words, Run, kFileFlag);
    return status == 0 && IsAskedToPrint(words) ? PrintDaemonConfig(words) : status;
  }
  if (command == "healthcheck") {
    int found = 0;
    const int status = RunWithConfig(
        "expanse-daemon healthcheck",
        "Names every degraded source and why. Exit status 0: the daemon's loop turns; 1: it does "
        "not; 2: usage; 3: it turns, but a source is degraded and --strict was given.",
        kHealthcheck, words, [&](const platform::Config& c) { return CheckHealth(c, &found); },
        kFileFlag);
    return status != 0 ? status : found;
  }
  if (command == "version" || command == "--version") {
    std::printf("expanse-daemon %s\n", EXPANSE_DAEMON_VERSION);
    return 0;
  }
  const bool help = command == "help" || command == "--help";
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : 2;
}

}  // namespace
}  // namespace expanse::apps

int main(int argc, char** argv) { return expanse::apps::Main(expanse::apps::Words(argc, argv)); }
