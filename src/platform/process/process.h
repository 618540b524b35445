// SPDX-License-Identifier: Apache-2.0
// Running other programs, bounded in time and output, and replaying recorded runs in tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::platform {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH; no shell anywhere
  /// The whole environment of the child. A caller that wants more than PATH says so.
  std::map<std::string, std::string> env;
  std::string stdin_bytes;
  std::string working_directory;
  Millis timeout{10'000};
  size_t max_output = 64 << 20;  // of each stream; more is an error
};

struct ProcessResult {
  int exit_code = 0;  // 128 + signal when killed
  std::string out;
  std::string err;
  Millis wall{0};
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  /// An error only when the program could not be started (kNotFound), ran past its time-out
  /// (kDeadlineExceeded; its process group is killed) or wrote too much (kResourceExhausted).
  /// A non-zero exit is a result.
  virtual Result<ProcessResult> Run(const ProcessSpec& spec) = 0;
};

class SystemProcessRunner final : public ProcessRunner {
 public:
  Result<ProcessResult> Run(const ProcessSpec& spec) override;
};

/// Answers by argv from recordings; an argv that was not recorded is kNotFound with the argv.
class RecordedProcessRunner final : public ProcessRunner {
 public:
  void Add(std::vector<std::string> argv, ProcessResult result);
  void AddError(std::vector<std::string> argv, Error error);
  Result<ProcessResult> Run(const ProcessSpec& spec) override;
  /// Every argv asked for so far, in order.
  const std::vector<std::vector<std::string>>& calls() const { return calls_; }

 private:
  std::vector<std::pair<std::vector<std::string>, Result<ProcessResult>>> recordings_;
  std::vector<std::vector<std::string>> calls_;
};

}  // namespace expanse::platform
