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

/// listen, tls-certificate and tls-key of a plane; a warning when it listens beyond this machine
/// without TLS.
Result<PlaneServerOptions> ServerOptionsFrom(const platform::Config& config,
                                             const std::string& plane);

/// One line, without white space around it. kFailedPrecondition when others can read the file.
Result<Secret> ReadKeyFile(const std::string& path);
/// Mode 0600, with its parent directories.
Status WriteKeyFile(const std::string& path, const Secret& key);

/// READY=1, waits for SIGINT or SIGTERM, STOPPING=1. The server stops when its owner lets it go.
void ServeUntilStopped(platform::StopSignal& stop, const std::string& plane,
                       const PlaneServer& server);

/// The words after the program's name.
std::vector<std::string> Words(int argc, char** argv);

/// Config::Load with --help and --print-config answered on stdout; then body. Returns the exit
/// status: 0, 1 (failed; the message on stderr), 2 (usage).
int RunWithConfig(std::string_view program, std::string_view summary,
                  std::span<const platform::Setting> table, std::span<const std::string> words,
                  const std::function<Status(const platform::Config&)>& body);

}  // namespace expanse::apps
