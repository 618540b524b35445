// SPDX-License-Identifier: Apache-2.0
// What the server programs share: the form of an address, log settings, key files, start and stop.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/plane_server.h"
#include "base/result.h"
#include "base/secret.h"
#include "platform/config/config.h"
#include "platform/service/service.h"

namespace expanse::apps {

struct ListenAddress {
  std::string host;
  uint16_t port = 0;
};
/// "127.0.0.1:7701", "[::1]:7701", ":7701" (every address).
Result<ListenAddress> ParseListen(const std::string& text);

/// log-level and log-format, as every server has them.
inline constexpr platform::Setting kLogLevel{"log-level", "EXPANSE_LOG_LEVEL",
                                             platform::SettingKind::kString, "info",
                                             "debug, info, warning or error"};
inline constexpr platform::Setting kLogFormat{"log-format", "EXPANSE_LOG_FORMAT",
                                              platform::SettingKind::kString, "text",
                                              "text or json (one object a line)"};
Status ConfigureLog(const platform::Config& config);

/// The same for every program that serves or calls another.
inline constexpr platform::Setting kStopTimeout{"stop-timeout", "EXPANSE_STOP_TIMEOUT",
                                                platform::SettingKind::kDuration, "25s",
                                                "how long requests may take to end after SIGTERM"};
inline constexpr platform::Setting kCaFile{
    "ca-file", "EXPANSE_CA_FILE", platform::SettingKind::kString, "",
    "PEM file of private authorities to trust beside the system's (default: SSL_CERT_FILE)"};

/// listen, tls-certificate, tls-key, data-dir and stop-timeout of a plane; a warning when it
/// listens beyond this machine without TLS.
Result<PlaneServerOptions> ServerOptionsFrom(const platform::Config& config,
                                             const std::string& plane);
/// tls-certificate and tls-key are both given or neither.
Status CheckTlsPair(const std::string& certificate, const std::string& key);
/// A warning when whoever reaches the network could read what this address is sent.
void WarnOfPlainListener(const std::string& program, const std::string& address);
/// The same for a URL that credentials are sent to.
void WarnOfPlainUrl(const std::string& program, const std::string& url);

/// One line, without white space around it. kFailedPrecondition when others can read the file.
Result<Secret> ReadKeyFile(const std::string& path);
/// Mode 0600, with its parent directories.
Status WriteKeyFile(const std::string& path, const Secret& key);

/// READY=1, waits for SIGINT or SIGTERM, STOPPING=1. Certificates are read again at SIGHUP and when
/// their files change. The servers stop when their owner lets them go.
void ServeUntilStopped(platform::StopSignal& stop, const std::string& program,
                       const std::vector<PlaneServer*>& servers);

/// What a program may take in all to stop: the requests' time and some for its stores.
platform::StopDeadline LimitStop(const platform::Config& config);

/// How often the files of certificates are looked at.
inline constexpr Millis kCertificateWatch{10'000};

/// The words after the program's name.
std::vector<std::string> Words(int argc, char** argv);

/// Config::Load with --help and --print-config answered on stdout; then body. Returns the exit
/// status: 0, 1 (failed; the message on stderr), 2 (usage).
int RunWithConfig(std::string_view program, std::string_view summary,
                  std::span<const platform::Setting> table, std::span<const std::string> words,
                  const std::function<Status(const platform::Config&)>& body,
                  std::string_view file_flag = "config");

}  // namespace expanse::apps
