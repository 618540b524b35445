// SPDX-License-Identifier: Apache-2.0
// What a command may touch. The binary hands in the machine, tests hand in fakes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/terminal.h"
#include "install/installer.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "rpc/channel.h"

namespace expanse::cli {

struct Context {
  Terminal& terminal;
  const platform::Fs& fs;
  const platform::Clock& clock;
  std::map<std::string, std::string> environment;
  std::string working_directory;  // absolute
  std::string user_name;          // of the operating system; empty when it has no name
  std::string program_directory;  // where the sibling programs lie

  /// A channel to the plane at this URL. The channel lives no longer than the context.
  std::function<std::unique_ptr<rpc::Channel>(const std::string& base_url)> open_channel;
  std::function<void(Millis)> sleep;
  /// Becomes another program (execv). Returns only when that failed.
  std::function<Error(const std::string& program, const std::vector<std::string>& words)> exec;

  // What the installer works with.
  uid_t effective_uid = 0;
  platform::ProcessRunner* processes = nullptr;
  std::function<platform::HttpClient&()> http_client = nullptr;
  std::function<Result<install::InstallReport>(const install::InstallOptions&, install::Machine&)>
      install = install::Install;
  std::function<Status(const install::UninstallOptions&, install::Machine&)> uninstall =
      install::Uninstall;

  /// The variable's value, empty when unset.
  std::string Environment(const std::string& name) const {
    const auto it = environment.find(name);
    return it == environment.end() ? "" : it->second;
  }
  /// path as an absolute one, taken from the working directory.
  std::string Absolute(std::string_view path) const;

  /// "expanse: warning: …" on stderr; the text may come from outside.
  void Warn(std::string_view message) const;
  /// A line on stderr for a person who waits; nothing when stderr is no terminal.
  void Progress(std::string_view message) const;
  /// Colours and bold on stdout: on a terminal, unless NO_COLOR is set or TERM is dumb.
  bool colour() const;
};

/// Bold text where the context has colour, else the text.
std::string Bold(const Context& context, std::string_view text);
/// Red, green or yellow text where the context has colour, else the text.
enum class Hue { kNone, kRed, kGreen, kYellow };
std::string Coloured(const Context& context, Hue hue, std::string_view text);

}  // namespace expanse::cli
