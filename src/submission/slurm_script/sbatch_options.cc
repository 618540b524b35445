// SPDX-License-Identifier: Apache-2.0
#include "submission/slurm_script/sbatch_options.h"

namespace expanse::submission {
namespace {

constexpr auto kNone = SbatchArgument::kNone;
constexpr auto kRequired = SbatchArgument::kRequired;
constexpr auto kOptional = SbatchArgument::kOptional;
constexpr auto kResource = SbatchKind::kResource;
constexpr auto kPlacement = SbatchKind::kPlacement;
constexpr auto kProgram = SbatchKind::kProgram;

}  // namespace

const std::vector<SbatchOption>& SbatchOptions() {
  static const std::vector<SbatchOption> options{
      {"account", 'A', kRequired, kPlacement},
      {"acctg-freq", 0, kRequired, kProgram},
      {"array", 'a', kRequired, kProgram},
      {"batch", 0, kRequired, kPlacement},
      {"bb", 0, kRequired, kProgram},
      {"bbf", 0, kRequired, kProgram},
      {"begin", 'b', kRequired, kPlacement},
      {"chdir", 'D', kRequired, kProgram},
      {"cluster", 0, kRequired, kPlacement},
      {"cluster-constraint", 0, kRequired, kPlacement},
      {"clusters", 'M', kRequired, kPlacement},
      {"comment", 0, kRequired, kProgram},
      {"constraint", 'C', kRequired, kPlacement},
      {"container", 0, kRequired, kProgram},
      {"context", 0, kRequired, kProgram},
      {"contiguous", 0, kNone, kPlacement},
      {"core-spec", 'S', kRequired, kResource},
      {"cores-per-socket", 0, kRequired, kResource},
      {"cpu-freq", 0, kRequired, kResource},
      {"cpus-per-gpu", 0, kRequired, kResource},
      {"cpus-per-task", 'c', kRequired, kResource},
      {"deadline", 0, kRequired, kPlacement},
      {"delay-boot", 0, kRequired, kPlacement},
      {"dependency", 'd', kRequired, kPlacement},
      {"distribution", 'm', kRequired, kProgram},
      {"error", 'e', kRequired, kProgram},
      {"exclude", 'x', kRequired, kPlacement},
      {"exclusive", 0, kOptional, kResource},
      {"export", 0, kRequired, kProgram},
      {"export-file", 0, kRequired, kProgram},
      {"extra-node-info", 'B', kRequired, kResource},
      {"get-user-env", 0, kOptional, kProgram},
      {"gid", 0, kRequired, kProgram},
      {"gpu-bind", 0, kRequired, kProgram},
      {"gpu-freq", 0, kRequired, kResource},
      {"gpus", 'G', kRequired, kResource},
      {"gpus-per-node", 0, kRequired, kResource},
      {"gpus-per-socket", 0, kRequired, kResource},
      {"gpus-per-task", 0, kRequired, kResource},
      {"gres", 0, kRequired, kResource},
      {"gres-flags", 0, kRequired, kResource},
      {"help", 'h', kNone, kProgram},
      {"hint", 0, kRequired, kResource},
      {"hold", 'H', kNone, kPlacement},
      {"ignore-pbs", 0, kNone, kProgram},
      {"input", 'i', kRequired, kProgram},
      {"job-name", 'J', kRequired, kProgram},
      {"kill-on-invalid-dep", 0, kRequired, kPlacement},
      {"licenses", 'L', kRequired, kResource},
      {"mail-type", 0, kRequired, kProgram},
      {"mail-user", 0, kRequired, kProgram},
      {"mcs-label", 0, kRequired, kPlacement},
      {"mem", 0, kRequired, kResource},
      {"mem-bind", 0, kRequired, kProgram},
      {"mem-per-cpu", 0, kRequired, kResource},
      {"mem-per-gpu", 0, kRequired, kResource},
      {"mincpus", 0, kRequired, kResource},
      {"network", 0, kRequired, kProgram},
      {"nice", 0, kOptional, kPlacement},
      {"no-kill", 'k', kOptional, kProgram},
      {"no-requeue", 0, kNone, kProgram},
      {"nodefile", 'F', kRequired, kPlacement},
      {"nodelist", 'w', kRequired, kPlacement},
      {"nodes", 'N', kRequired, kResource},
      {"ntasks", 'n', kRequired, kResource},
      {"ntasks-per-core", 0, kRequired, kResource},
      {"ntasks-per-gpu", 0, kRequired, kResource},
      {"ntasks-per-node", 0, kRequired, kResource},
      {"ntasks-per-socket", 0, kRequired, kResource},
      {"ntasks-per-tres", 0, kRequired, kResource},
      {"open-mode", 0, kRequired, kProgram},
      {"output", 'o', kRequired, kProgram},
      {"overcommit", 'O', kNone, kResource},
      {"oversubscribe", 's', kNone, kResource},
      {"parsable", 0, kNone, kProgram},
      {"partition", 'p', kRequired, kPlacement},
      {"power", 0, kRequired, kResource},
      {"prefer", 0, kRequired, kPlacement},
      {"priority", 0, kRequired, kPlacement},
      {"profile", 0, kRequired, kProgram},
      {"propagate", 0, kOptional, kProgram},
      {"qos", 'q', kRequired, kPlacement},
      {"quiet", 'Q', kNone, kProgram},
      {"reboot", 0, kNone, kPlacement},
      {"requeue", 0, kNone, kProgram},
      {"reservation", 0, kRequired, kPlacement},
      {"signal", 0, kRequired, kProgram},
      {"sockets-per-node", 0, kRequired, kResource},
      {"spread-job", 0, kNone, kPlacement},
      {"switches", 0, kRequired, kPlacement},
      {"tasks-per-node", 0, kRequired, kResource},  // undocumented alias of ntasks-per-node
      {"test-only", 0, kNone, kProgram},
      {"thread-spec", 0, kRequired, kResource},
      {"threads-per-core", 0, kRequired, kResource},
      {"time", 't', kRequired, kResource},
      {"time-min", 0, kRequired, kResource},
      {"tmp", 0, kRequired, kResource},
      {"uid", 0, kRequired, kProgram},
      {"usage", 0, kNone, kProgram},
      {"use-min-nodes", 0, kNone, kPlacement},
      {"verbose", 'v', kNone, kProgram},
      {"version", 'V', kNone, kProgram},
      {"wait", 'W', kNone, kProgram},
      {"wait-all-nodes", 0, kRequired, kPlacement},
      {"wckey", 0, kRequired, kPlacement},
      {"wrap", 0, kRequired, kProgram},
  };
  return options;
}

const SbatchOption* FindSbatchOption(char letter) {
  if (letter == 0) return nullptr;
  for (const auto& option : SbatchOptions())
    if (option.letter == letter) return &option;
  return nullptr;
}

SbatchLookup FindSbatchOption(std::string_view name) {
  SbatchLookup found;
  if (name.empty()) return found;
  for (const auto& option : SbatchOptions()) {
    if (option.name == name) return {&option, {}};
    if (option.name.substr(0, name.size()) != name) continue;
    found.option = &option;
    found.possibilities.emplace_back(option.name);
  }
  if (found.possibilities.size() > 1) found.option = nullptr;
  if (found.possibilities.size() == 1) found.possibilities.clear();
  return found;
}

}  // namespace expanse::submission
