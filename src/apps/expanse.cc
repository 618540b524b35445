// SPDX-License-Identifier: Apache-2.0
// The command line: hands the machine to cli::Run.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include "cli/commands.h"
#include "platform/clock/clock.h"
#include "platform/config/config.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/process/process.h"
#include "rpc/channel.h"

namespace {

std::string WorkingDirectory() {
  char buffer[PATH_MAX];
  return getcwd(buffer, sizeof buffer) == nullptr ? "/" : buffer;
}

std::string UserName() {
  const passwd* entry = getpwuid(geteuid());
  return entry == nullptr ? "" : entry->pw_name;
}

std::string ProgramDirectory() {
  char buffer[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer);
  if (n <= 0) return "/usr/local/bin";
  return expanse::platform::DirName(std::string_view(buffer, static_cast<size_t>(n)));
}

expanse::Error Become(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return expanse::Error(expanse::Code::kInternal,
                        "starting " + program + ": " + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  namespace platform = expanse::platform;
  const auto terminal = expanse::cli::NewSystemTerminal();
  const platform::Fs fs;
  const platform::SystemClock clock;
  // Made at the first call: `expanse version` pays for no network library.
  std::unique_ptr<platform::HttpClient> http;
  const auto http_client = [&http]() -> platform::HttpClient& {
    const char* ca_file = std::getenv("EXPANSE_CA_FILE");
    if (!http) http = platform::NewCurlHttpClient({ca_file == nullptr ? "" : ca_file, ""});
    return *http;
  };
  platform::SystemProcessRunner processes;
  std::set<std::string> warned;  // URLs
  expanse::cli::Context context{
      .terminal = *terminal,
      .fs = fs,
      .clock = clock,
      .environment = platform::ProcessEnvironment(),
      .working_directory = WorkingDirectory(),
      .user_name = UserName(),
      .program_directory = ProgramDirectory(),
      .open_channel = [&](const std::string& url) -> std::unique_ptr<expanse::rpc::Channel> {
        if (platform::IsInTheClear(url) && warned.insert(url).second)
          terminal->Err("warning: " + platform::WithoutUserInfo(url) +
                        " is not encrypted: credentials travel in the clear\n");
        return std::make_unique<expanse::rpc::HttpChannel>(http_client(), url);
      },
      .sleep = [](expanse::Millis time) { std::this_thread::sleep_for(time); },
      .exec = Become,
      .effective_uid = geteuid(),
      .processes = &processes,
      .http_client = http_client,
  };
  const std::vector<std::string> words(argv + 1, argv + argc);
  return expanse::cli::Run(context, words);
}
