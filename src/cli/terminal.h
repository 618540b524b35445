// SPDX-License-Identifier: Apache-2.0
// Where a command talks: stdout carries data, stderr everything that is about the run, stdin
// answers questions. Tests hand in a fake.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::cli {

class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual void Out(std::string_view bytes) = 0;
  virtual void Err(std::string_view bytes) = 0;
  /// One line of stdin without its newline. hidden: not echoed, for secrets.
  /// kAborted at the end of input.
  virtual Result<std::string> ReadLine(bool hidden) = 0;
  virtual bool in_is_terminal() const = 0;
  virtual bool out_is_terminal() const = 0;
  virtual bool err_is_terminal() const = 0;
  /// Everything written reached its destination; an error after a full disk.
  virtual Status Flush() = 0;

  /// Questions about a result are asked only when a person reads it and can answer.
  bool interactive() const { return in_is_terminal() && out_is_terminal(); }
  /// Prompts go to stderr, so a secret can be asked for while stdout is redirected.
  bool can_prompt() const { return in_is_terminal() && err_is_terminal(); }
};

/// File descriptors 0, 1 and 2. stdout is buffered until Flush, an Err or a ReadLine.
std::unique_ptr<Terminal> NewSystemTerminal();

}  // namespace expanse::cli
