// SPDX-License-Identifier: Apache-2.0
// The evidence of one execution as runbooks read it: values next to the facts that prove them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/diagnose/case_inputs.h"
#include "intelligence/diagnose/evidence.h"
#include "intelligence/diagnose/log_scanner.h"

namespace expanse::intelligence::diagnose {

/// A signal line with its fact.
struct Signal {
  SignalHit hit;
  FactId fact = 0;
  TextKind kind = TextKind::kProgram;
  int stream = 0;  // signals of one stream are ordered by hit.begin
  std::string source;
  FactId location = 0;  // of a Python error
};

struct StepView {
  const common::v1::ExecutionStep* step = nullptr;
  FactId state = 0;
  FactId exit = 0;
  FactId oom = 0;
};

/// How the run stands, from state, outcome and cause together.
enum class Ending { kQueued, kRunning, kSucceeded, kFailed, kCancelled, kUnknown };

struct CaseView {
  const CaseInputs* in = nullptr;
  const common::v1::Execution* run = nullptr;
  Ledger ledger;
  Ending ending = Ending::kUnknown;

  std::vector<Signal> signals;
  std::vector<StepView> steps;
  std::vector<FactId> observations;  // parallel to in->observations

  std::optional<int> exit_code;  // 0..255 as the process ended; not set for a signal
  std::optional<int> signal;     // also from 128+n
  bool signal_is_guess = false;  // sacct prints 139 as 11: exit 11 or signal 11
  std::optional<int64_t> elapsed_s;
  std::optional<int64_t> time_limit_s;
  std::optional<int64_t> memory_limit;   // of one node
  std::optional<int64_t> peak_enforced;  // worst node
  std::optional<int64_t> need;
  int64_t oom_kills = 0;
  int gpus = 0;

  FactId state = 0, reason = 0, exit = 0, cause = 0, outcome = 0, elapsed = 0, time_limit = 0;
  FactId limit = 0, peak = 0, need_fact = 0, oom = 0, cpu = 0, gpu_request = 0;
  FactId last_error_line = 0;  // last line of stderr, or of stdout when there is no stderr
  std::string last_error_text;
  FactId logs = 0;  // that logs were read, or empty, or could not be read
  bool logs_seen = false;
  FactId last_own_line = 0;  // the last one that is not the scheduler's or the launcher's
  std::string last_own_text;
  /// Lines of captured sources and stacks that speak of collectives or of data loading.
  std::vector<std::pair<std::string, FactId>> lines_of_interest;
  std::vector<FactId> last_lines;  // of every text, also of kernel and scheduler
  FactId progress = 0;
  std::string progress_text;
  FactId success_line = 0;

  bool StateIs(std::string_view prefix) const;
  /// Best signal of a class, or null. Ties: the first.
  const Signal* Best(std::string_view failure_class) const;
  /// Value of the first observation whose key ends with `suffix`; its fact through `fact`.
  std::optional<std::string> Observed(std::string_view suffix, FactId* fact = nullptr) const;
};

/// No part of it ever ran, as far as the record tells.
bool NeverStarted(const CaseView& view);

CaseView BuildView(const CaseInputs& inputs);

/// "exit code 5", "signal 11", both, or "" when neither was seen.
std::string ExitText(const common::v1::ExecutionStep& step);
/// "sacct", "scontrol", … : the best source that saw the run.
std::string SchedulerSource(const common::v1::Execution& run);

}  // namespace expanse::intelligence::diagnose
