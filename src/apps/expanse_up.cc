// SPDX-License-Identifier: Apache-2.0
// expanse-up, which `expanse up` runs: the planes of a whole deployment in one process.
#include <cstdio>
#include <filesystem>

#include "apps/backup_commands.h"
#include "apps/settings.h"
#include "apps/up_stack.h"
#include "base/log.h"
#include "base/strings.h"
#include "platform/fs/fs.h"
#include "platform/service/service.h"

namespace expanse::apps {
namespace {

using platform::Setting;
using platform::SettingKind;

constexpr int kDefaultBasePort = 7701;
constexpr int kLastBasePort = 65535 - 2;

constexpr Setting kDataDir{"data-dir", "EXPANSE_DATA_DIR", SettingKind::kString, "./expanse-data",
                           "everything that is stored, and the keys"};

constexpr Setting kSettings[] = {
    kDataDir,
    {"base-port", "", SettingKind::kInt, "7701",
     "control plane; the data and intelligence planes take the next two"},
    {"address", "", SettingKind::kString, "127.0.0.1", "address to listen on"},
    {"public-host", "", SettingKind::kString, "",
     "host name by which cluster nodes reach this machine (default: the address)"},
    {"console-url", "EXPANSE_CONSOLE_URL", SettingKind::kString, "", "the console, for links"},
    {"organisation", "", SettingKind::kString, "local", "made at the first start"},
    {"owner-email", "", SettingKind::kString, "owner@localhost", "made at the first start"},
    {"ready-file", "", SettingKind::kString, "",
     "written when every plane answers, removed at the end"},
    {"log-received-control", "", SettingKind::kString, "",
     "append what the control plane receives to this file (without credentials; for audits)"},
    {"tls-certificate", "EXPANSE_UP_TLS_CERTIFICATE", SettingKind::kString, "",
     "PEM file for every port; it names the public host (default: plain HTTP)"},
    {"tls-key", "EXPANSE_UP_TLS_KEY", SettingKind::kString, "", "PEM file"},
    kStopTimeout,
    kLogLevel,
    kLogFormat,
};

Result<UpOptions> OptionsFrom(const platform::Config& config) {
  UpOptions options;
  std::error_code ec;
  options.data_dir = std::filesystem::absolute(config.GetString("data-dir"), ec).string();
  if (ec || config.GetString("data-dir").empty())
    return Error(Code::kInvalidArgument, "data-dir is no path");
  options.data_dir = platform::NormalizePath(options.data_dir);
  const int64_t port = config.GetInt("base-port");
  if (port < 0 || port > kLastBasePort)
    return Error(Code::kInvalidArgument, "base-port must be between 0 (any) and 65533");
  options.base_port = static_cast<uint16_t>(port);
  options.address = config.GetString("address");
  options.public_host = config.GetString("public-host");
  options.console_url = config.GetString("console-url");
  options.organisation = config.GetString("organisation");
  options.owner_email = config.GetString("owner-email");
  options.record_received_by_control = config.GetString("log-received-control");
  options.ready_file = config.GetString("ready-file");
  options.tls_certificate_file = config.GetString("tls-certificate");
  options.tls_key_file = config.GetString("tls-key");
  options.stop_timeout = Millis(config.GetMillis("stop-timeout"));
  EXPANSE_CHECK_OK(CheckTlsPair(options.tls_certificate_file, options.tls_key_file));
  if (options.tls_certificate_file.empty()) WarnOfPlainListener("up", options.address);
  return options;
}

void Tell(const UpStack& stack, const UpOptions& options) {
  const auto& urls = stack.urls();
  std::printf("control plane       %s\n", urls.control_plane.c_str());
  std::printf("data plane          %s\n", urls.data_plane.c_str());
  std::printf("intelligence plane  %s\n", urls.intelligence.c_str());
  std::printf("data directory      %s\n", options.data_dir.c_str());
  std::printf("owner's API key     %s\n\n", stack.owner_key_file().c_str());
  std::string next =
      "EXPANSE_API_KEY=$(cat " + ShellQuote(stack.owner_key_file()) + ") expanse login";
  if (options.base_port != kDefaultBasePort || !options.public_host.empty())
    next += " --control-plane " + urls.control_plane;
  std::printf("next, in another terminal:\n  %s\n", next.c_str());
  std::fflush(stdout);
}

Status Run(const platform::Config& config) {
  platform::StopSignal stop;
  EXPANSE_CHECK_OK(ConfigureLog(config));
  EXPANSE_TRY(const UpOptions options, OptionsFrom(config));
  const platform::Fs fs;
  const std::string& ready_file = options.ready_file;
  EXPANSE_TRY(auto stack, UpStack::Start(options));
  EXPANSE_CHECK_OK(stack->CheckHealth());
  Tell(*stack, options);
  if (!ready_file.empty())
    EXPANSE_CHECK_OK(fs.WriteAtomic(ready_file, stack->urls().control_plane + "\n", 0644));
  ServeUntilStopped(stop, "up", stack->servers());
  if (!ready_file.empty()) (void)fs.Remove(ready_file);
  const platform::StopDeadline limit = LimitStop(config);
  stack.reset();
  log::Info("server.stopped", {{"program", "up"}});
  return {};
}

int Main(const std::vector<std::string>& words) {
  if (const auto status = RunBackupCommand("expanse up", words, UpLayout(), kDataDir))
    return *status;
  return RunWithConfig(
      "expanse up",
      "Runs the control, data and intelligence plane on this machine with one data directory. The "
      "first start makes an organisation, its owner and the owner's API key. `expanse up backup "
      "--to DIR` copies everything while it runs, `expanse up restore --from DIR` brings it back.",
      kSettings, words, Run);
}

}  // namespace
}  // namespace expanse::apps

int main(int argc, char** argv) { return expanse::apps::Main(expanse::apps::Words(argc, argv)); }
