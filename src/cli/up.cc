// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/help.h"
#include "platform/fs/fs.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kSibling = "expanse-up";

/// The planes are a program of their own, so that the command line stays small and links no store.
Result<int> RunUp(Context& context, std::span<const std::string> words) {
  const std::string program = platform::JoinPath(context.program_directory, kSibling);
  if (!context.fs.Exists(program)) {
    for (const auto& word : words)
      if (word == "--help" || word == "-h") {
        context.terminal.Out(HelpCommand(kUp));
        return kExitOk;
      }
    return Error(Code::kNotFound, program + " is not there; install it beside `expanse`");
  }
  EXPANSE_CHECK_OK(context.terminal.Flush());
  return context.exec(program, {words.begin(), words.end()});
}

constexpr Example kExamples[] = {{"expanse up", "keeps its data in ./expanse-data"},
                                 {"expanse up --help", "every setting"}};

}  // namespace

const Command kUp{
    .name = "up",
    .group = kGroupOther,
    .summary = "runs the three planes on this machine",
    .description =
        "Control, data and intelligence plane in one process with one data directory: a whole "
        "deployment for one machine or a trial. Every word is handed to expanse-up beside this "
        "program.",
    .examples = kExamples,
    .run_words = RunUp,
};

}  // namespace expanse::cli
