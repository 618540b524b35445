// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include "cli/command.h"

namespace expanse::cli {
namespace {

Result<int> RunVersion(Context& context, const Args& /*args*/) {
  context.terminal.Out("expanse " + std::string(Version()) + "\n");
  return kExitOk;
}

constexpr Example kExamples[] = {{"expanse version"}, {"expanse --version"}};

}  // namespace

std::string_view Version() { return EXPANSE_CLI_VERSION; }

const Command kVersion{
    .name = "version",
    .group = kGroupOther,
    .summary = "prints the version of this program",
    .examples = kExamples,
    .run = RunVersion,
};

}  // namespace expanse::cli
