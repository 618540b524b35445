// SPDX-License-Identifier: Apache-2.0
#include "cli/context.h"

#include "base/strings.h"

namespace expanse::cli {

std::string Context::Absolute(std::string_view path) const {
  if (path.starts_with('/')) return std::string(path);
  return platform::JoinPath(working_directory, path);
}

void Context::Warn(std::string_view message) const {
  terminal.Err("expanse: warning: " + EscapeForTerminal(message) + "\n");
}

void Context::Progress(std::string_view message) const {
  if (terminal.err_is_terminal()) terminal.Err(EscapeForTerminal(message) + "\n");
}

bool Context::colour() const {
  return terminal.out_is_terminal() && Environment("NO_COLOR").empty() &&
         Environment("TERM") != "dumb";
}

std::string Bold(const Context& context, std::string_view text) {
  if (!context.colour()) return std::string(text);
  return "\x1b[1m" + std::string(text) + "\x1b[0m";
}

std::string Coloured(const Context& context, Hue hue, std::string_view text) {
  if (hue == Hue::kNone || !context.colour()) return std::string(text);
  const char* code = hue == Hue::kRed ? "31" : hue == Hue::kGreen ? "32" : "33";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace expanse::cli
