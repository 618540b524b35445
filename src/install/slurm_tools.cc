// SPDX-License-Identifier: Apache-2.0
#include "install/slurm_tools.h"

#include "base/strings.h"
#include "install/slurm_conf.h"

namespace expanse::install {
namespace {

constexpr Millis kToolTimeout{30'000};

}  // namespace

std::map<std::string, std::string> ParseShowConfig(std::string_view text) {
  std::map<std::string, std::string> values;
  for (const auto line : Split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = Trim(line.substr(0, equals));
    if (!key.empty()) values[std::string(key)] = std::string(Trim(line.substr(equals + 1)));
  }
  return values;
}

std::vector<std::string> HooksInForce(const std::map<std::string, std::string>& shown,
                                      const std::string& hook_directory) {
  std::vector<std::string> found;
  for (const auto key : kHookKeys) {
    const auto value = shown.find(std::string(key));
    if (value != shown.end() &&
        value->second.find(hook_directory + "/" + HookFileOf(key)) != std::string::npos)
      found.push_back(std::string(key) + "=" + value->second);
  }
  return found;
}

std::vector<SlurmNode> ParseShowNode(std::string_view text) {
  std::vector<SlurmNode> nodes;
  for (const auto line : Split(text, '\n')) {
    // NodeName begins a record; no value before NodeHostName can hold a blank.
    for (const auto word : Split(line, ' ')) {
      if (word.starts_with("NodeName=")) {
        nodes.push_back({std::string(word.substr(9)), ""});
      } else if (word.starts_with("NodeHostName=") && !nodes.empty()) {
        nodes.back().host = std::string(word.substr(13));
      }
    }
  }
  return nodes;
}

Result<std::string> SlurmTools::Run(std::vector<std::string> argv) const {
  platform::ProcessSpec spec;
  spec.argv = std::move(argv);
  const std::string words = Join(spec.argv, " ");
  const auto path = machine_.environment.find("PATH");
  spec.env["PATH"] = path != machine_.environment.end() && !path->second.empty()
                         ? path->second
                         : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  spec.env["LC_ALL"] = "C";
  spec.env["TZ"] = "UTC";
  if (!slurm_conf_.empty()) spec.env["SLURM_CONF"] = slurm_conf_;
  spec.timeout = kToolTimeout;
  auto run = machine_.runner.Run(spec);
  if (!run.ok()) return run.error().WithContext(words);
  if (run->exit_code != 0)
    return Error(Code::kFailedPrecondition,
                 "`" + words + "` failed with exit code " + std::to_string(run->exit_code) + ": " +
                     EscapeForTerminal(Trim(run->err.empty() ? run->out : run->err)));
  return std::move(run->out);
}

Result<std::map<std::string, std::string>> SlurmTools::ShowConfig() const {
  EXPANSE_TRY(const std::string text, Run({"scontrol", "show", "config"}));
  auto values = ParseShowConfig(text);
  if (!values.contains("ClusterName"))
    return Error(Code::kFailedPrecondition,
                 "`scontrol show config` names no ClusterName; is slurmctld running here?");
  return values;
}

Result<std::vector<SlurmNode>> SlurmTools::ShowNodes() const {
  EXPANSE_TRY(const std::string text, Run({"scontrol", "show", "node"}));
  return ParseShowNode(text);
}

Status SlurmTools::Reconfigure() const {
  EXPANSE_TRY(const std::string text, Run({"scontrol", "reconfigure"}));
  return {};
}

}  // namespace expanse::install
