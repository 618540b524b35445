// SPDX-License-Identifier: Apache-2.0
#include "apps/settings.h"

#include <cstdio>

#include "base/log.h"
#include "base/strings.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"

namespace expanse::apps {
namespace {

constexpr size_t kMaxKeyFileBytes = 4096;
constexpr Millis kStoreStop{20'000};
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

bool IsLoopback(const std::string& host) {
  return host.rfind("127.", 0) == 0 || host == "::1" || host == "localhost";
}

void Say(std::FILE* to, const std::string& text) { std::fputs(text.c_str(), to); }

}  // namespace

Result<ListenAddress> ParseListen(const std::string& text) {
  const size_t colon = text.rfind(':');
  const auto bad = [&] {
    return Error(Code::kInvalidArgument, "listen = '" + text + "' is not ADDRESS:PORT");
  };
  if (colon == std::string::npos) return bad();
  const auto port = ParseInt64(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return bad();
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "0.0.0.0";
  return ListenAddress{host, static_cast<uint16_t>(*port)};
}

Status ConfigureLog(const platform::Config& config) {
  const std::string& level = config.GetString("log-level");
  const std::string& format = config.GetString("log-format");
  log::Level least = log::Level::kInfo;
  if (level == "debug") {
    least = log::Level::kDebug;
  } else if (level == "warning") {
    least = log::Level::kWarning;
  } else if (level == "error") {
    least = log::Level::kError;
  } else if (level != "info") {
    return Error(Code::kInvalidArgument,
                 "log-level = '" + level + "' is none of debug, info, warning, error");
  }
  if (format != "text" && format != "json")
    return Error(Code::kInvalidArgument, "log-format = '" + format + "' is neither text nor json");
  log::Configure(least, format == "json" ? log::Format::kJson : log::Format::kText);
  return {};
}

Result<PlaneServerOptions> ServerOptionsFrom(const platform::Config& config,
                                             const std::string& plane) {
  EXPANSE_TRY(const ListenAddress listen, ParseListen(config.GetString("listen")));
  PlaneServerOptions options;
  options.plane = plane;
  options.address = listen.host;
  options.port = listen.port;
  options.tls_certificate_file = config.GetString("tls-certificate");
  options.tls_key_file = config.GetString("tls-key");
  options.data_dir = config.GetString("data-dir");
  options.stop_timeout = Millis(config.GetMillis("stop-timeout"));
  EXPANSE_CHECK_OK(CheckTlsPair(options.tls_certificate_file, options.tls_key_file));
  if (options.tls_certificate_file.empty()) WarnOfPlainListener(plane, listen.host);
  return options;
}

Status CheckTlsPair(const std::string& certificate, const std::string& key) {
  if (certificate.empty() == key.empty()) return {};
  return Error(Code::kInvalidArgument, "tls-certificate and tls-key go together");
}

void WarnOfPlainListener(const std::string& program, const std::string& address) {
  if (IsLoopback(address)) return;
  log::Warning("server.no_tls", {{"program", program},
                                 {"listen", address},
                                 {"so", "credentials travel in the clear"},
                                 {"do", "give tls-certificate and tls-key"}});
}

void WarnOfPlainUrl(const std::string& program, const std::string& url) {
  if (!platform::IsInTheClear(url)) return;
  log::Warning("client.no_tls", {{"program", program},
                                 {"url", platform::WithoutUserInfo(url)},
                                 {"so", "credentials travel in the clear"}});
}

Result<Secret> ReadKeyFile(const std::string& path) {
  const platform::Fs fs;
  EXPANSE_TRY(const auto info, fs.Stat(path));
  if ((info.mode & 0077) != 0)
    return Error(Code::kFailedPrecondition,
                 path + " can be read by others; chmod 600 it, and replace the key if they did");
  EXPANSE_TRY(const std::string text, fs.Read(path, kMaxKeyFileBytes));
  const std::string_view key = Trim(text);
  if (key.empty() || key.find_first_of(" \n\t") != std::string_view::npos)
    return Error(Code::kInvalidArgument, path + " does not hold one key");
  return Secret(std::string(key));
}

Status WriteKeyFile(const std::string& path, const Secret& key) {
  const platform::Fs fs;
  const std::string folder = platform::DirName(path);
  if (!folder.empty()) EXPANSE_CHECK_OK(fs.MakeDirs(folder, 0700));
  return fs.WriteAtomic(path, key.Reveal() + "\n", 0600);
}

void ServeUntilStopped(platform::StopSignal& stop, const std::string& program,
                       const std::vector<PlaneServer*>& servers) {
  for (const PlaneServer* server : servers)
    log::Info("server.listening", {{"program", program}, {"url", server->url()}});
  platform::NotifySystemd("READY=1");
  const auto reload = [&] {
    log::Info("server.reloading", {{"program", program}});
    for (PlaneServer* server : servers) (void)server->ReloadTls().ok();  // logged there
  };
  const auto watch = [&] {
    for (PlaneServer* server : servers) server->ReloadChangedTls();
  };
  const int signal = stop.Wait(reload, kCertificateWatch, watch);
  platform::NotifySystemd("STOPPING=1");
  log::Info("server.stopping", {{"program", program}, {"signal", signal}});
}

platform::StopDeadline LimitStop(const platform::Config& config) {
  return platform::StopDeadline(Millis(config.GetMillis("stop-timeout")) + kStoreStop);
}

std::vector<std::string> Words(int argc, char** argv) {
  return {argv + (argc > 0 ? 1 : 0), argv + argc};
}

int RunWithConfig(std::string_view program, std::string_view summary,
                  std::span<const platform::Setting> table, std::span<const std::string> words,
                  const std::function<Status(const platform::Config&)>& body,
                  std::string_view file_flag) {
  const auto fail = [&](const Error& error, int status) {
    Say(stderr, std::string(program) + ": " + EscapeForTerminal(error.message(), true) + "\n");
    return status;
  };
  const auto config =
      platform::Config::Load(table, words, platform::ProcessEnvironment(), file_flag);
  if (!config.ok()) return fail(config.error(), kExitUsage);
  if (config->help()) {
    Say(stdout, platform::Config::Help(program, summary, table, file_flag));
    return 0;
  }
  if (!config->positional().empty())
    return fail(Error(Code::kInvalidArgument,
                      "unexpected word '" + config->positional().front() + "'; see --help"),
                kExitUsage);
  if (config->print_config()) {
    Say(stdout, config->Print());
    return 0;
  }
  const Status status = body(*config);
  if (status.ok()) return 0;
  return fail(status.error(),
              status.error().code() == Code::kInvalidArgument ? kExitUsage : kExitFailed);
}

}  // namespace expanse::apps
