// SPDX-License-Identifier: Apache-2.0
#include "intelligence/diagnose/case_view.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "base/units.h"

namespace expanse::intelligence::diagnose {
namespace {

using common::v1::Execution;

std::string EnumTail(const std::string& name, std::string_view prefix) {
  return ToLower(name.size() > prefix.size() ? name.substr(prefix.size()) : name);
}

// The record holds the merged figure; its reason and the sources that saw the run tell whose it is.
std::string MeasuredBy(const Execution& run, const std::string& reason) {
  if (StartsWithIgnoreCase(reason, "sacct")) return "sacct";
  for (const char* name : {"cgroup", "task_epilog"})
    if (std::find(run.seen_by().begin(), run.seen_by().end(), name) != run.seen_by().end())
      return "cgroup";
  return SchedulerSource(run);
}

Ending EndingOf(const Execution& run) {
  switch (run.status()) {
    case common::v1::EXECUTION_STATUS_QUEUED:
      return Ending::kQueued;
    case common::v1::EXECUTION_STATUS_RUNNING:
      return Ending::kRunning;
    default:
      break;
  }
  switch (run.outcome()) {
    case common::v1::EXECUTION_OUTCOME_SUCCESS:
      return Ending::kSucceeded;
    case common::v1::EXECUTION_OUTCOME_FAILURE:
    case common::v1::EXECUTION_OUTCOME_TIMEOUT:
    case common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY:
      return Ending::kFailed;
    case common::v1::EXECUTION_OUTCOME_CANCELLED:
      return Ending::kCancelled;
    default:
      break;
  }
  switch (run.status()) {
    case common::v1::EXECUTION_STATUS_SUCCEEDED:
      return Ending::kSucceeded;
    case common::v1::EXECUTION_STATUS_FAILED:
      return Ending::kFailed;
    case common::v1::EXECUTION_STATUS_CANCELLED:
      return Ending::kCancelled;
    default:
      return Ending::kUnknown;
  }
}

// The signal that ended the run, if any. 128+n is the shell's and scontrol's spelling; sacct
// prints the same job as n (139:0 becomes 11:0), which exit(n) cannot be told apart from.
void NormaliseExit(CaseView& view) {
  const auto& run = *view.run;
  if (run.has_signal() && run.signal() > 0) view.signal = run.signal();
  if (!run.has_exit_code()) return;
  const int code = run.exit_code();
  if (code > 128 && code <= 192) {
    view.exit_code = code;
    if (!view.signal) view.signal = code - 128;
    return;
  }
  view.exit_code = code;
  const bool crash = code == 4 || code == 6 || code == 7 || code == 8 || code == 9 || code == 11;
  const bool sacct_only = run.seen_by_size() == 1 && run.seen_by(0) == "sacct";
  if (!view.signal && crash && sacct_only) {
    view.signal = code;
    view.signal_is_guess = true;
  }
}

void AddRunFacts(CaseView& view) {
  const auto& run = *view.run;
  auto& ledger = view.ledger;
  const std::string source = SchedulerSource(run);
  if (!run.scheduler_state().empty())
    view.state = ledger.Seen(source, "state", run.scheduler_state());
  else
    view.state = ledger.Seen("execution record", "status",
                             EnumTail(ExecutionStatus_Name(run.status()), "EXECUTION_STATUS_"));
  if (!run.scheduler_reason().empty() && run.scheduler_reason() != "None")
    view.reason = ledger.Seen(source, "reason", run.scheduler_reason());
  if (run.has_exit_code() || run.has_signal()) {
    std::string text;
    if (run.has_exit_code()) text = "exit code " + std::to_string(run.exit_code());
    if (run.has_signal() && run.signal() != 0)
      text += (text.empty() ? "signal " : ", signal ") + std::to_string(run.signal());
    if (text.empty()) text = "exit code 0";
    view.exit = ledger.Seen(source, "exit", text);
  }
  if (view.exit == 0 && run.unknown().count("exit_code") != 0)
    view.exit = ledger.NotSeeable(source, "exit", run.unknown().at("exit_code"));
  if (run.outcome() != common::v1::EXECUTION_OUTCOME_UNSPECIFIED)
    view.outcome =
        ledger.Seen("execution record", "outcome",
                    EnumTail(ExecutionOutcome_Name(run.outcome()), "EXECUTION_OUTCOME_"));
  if (run.ending_cause() != common::v1::ENDING_CAUSE_UNSPECIFIED)
    view.cause = ledger.Seen("execution record", "ending_cause",
                             EnumTail(EndingCause_Name(run.ending_cause()), "ENDING_CAUSE_"));
  if (run.runtime_seconds().has_value())
    view.elapsed_s = run.runtime_seconds().value();
  else if (run.has_start_time_ms() && run.has_end_time_ms() &&
           run.end_time_ms() >= run.start_time_ms())
    view.elapsed_s = (run.end_time_ms() - run.start_time_ms()) / 1000;
  if (view.elapsed_s)
    view.elapsed = ledger.Seen(source, "elapsed", std::to_string(*view.elapsed_s) + " s");
  if (run.requested().has_walltime_seconds()) {
    view.time_limit_s = run.requested().walltime_seconds();
    view.time_limit = ledger.Seen(source, "time limit", std::to_string(*view.time_limit_s) + " s");
  }
  if (run.cpu_seconds().has_value())
    view.cpu = ledger.Seen(MeasuredBy(run, run.cpu_seconds().reason()), "cpu time",
                           std::to_string(run.cpu_seconds().value()) + " s");
}

void AddMemoryFacts(CaseView& view) {
  const auto& run = *view.run;
  auto& ledger = view.ledger;
  if (run.requested().has_memory_bytes() && run.requested().memory_bytes() > 0) {
    const int64_t nodes = std::max(1, run.requested().nodes());
    view.memory_limit = run.requested().memory_bytes() / nodes;
    view.limit = ledger.Seen(SchedulerSource(run), "requested memory",
                             std::to_string(*view.memory_limit) + " bytes (" +
                                 FormatSizeProse({*view.memory_limit}) + ")" +
                                 (nodes > 1 ? " on each node" : ""));
  }
  const auto measured = [&](const common::v1::MeasuredInt64& m, std::string_view position) {
    std::string text = std::to_string(m.value()) + " bytes";
    if (m.bound() == common::v1::BOUND_AT_LEAST)
      text += " at least" + (m.reason().empty() ? "" : " (" + m.reason() + ")");
    return ledger.Seen(MeasuredBy(run, m.reason()), position, text);
  };
  if (run.memory_peak_enforced().has_value()) {
    view.peak_enforced = run.memory_peak_enforced().value();
    view.peak = measured(run.memory_peak_enforced(), "memory peak (enforced)");
  } else {
    view.peak = ledger.NotSeeable("measurement", "memory peak (enforced)",
                                  run.unknown().count("memory_peak_enforced") != 0
                                      ? run.unknown().at("memory_peak_enforced")
                                      : "not measured");
  }
  if (run.memory_need().has_value()) {
    view.need = run.memory_need().value();
    view.need_fact = measured(run.memory_need(), "memory need");
  }
  view.oom_kills = run.has_oom_kills() ? run.oom_kills() : 0;
  if (view.oom_kills > 0)
    view.oom = ledger.Seen("cgroup", "oom_kill", std::to_string(view.oom_kills));
  view.gpus = run.requested().gpu_count();
  if (view.gpus > 0)
    view.gpu_request =
        ledger.Seen(SchedulerSource(run), "requested GPUs", std::to_string(view.gpus));
}

void AddSteps(CaseView& view) {
  const auto& run = *view.run;
  const std::string source = SchedulerSource(run);
  for (const auto& step : run.steps()) {
    StepView s;
    s.step = &step;
    const std::string at =
        "step " + step.step_id() +
        (step.name().empty() || step.name() == step.step_id() ? "" : " (" + step.name() + ")");
    if (!step.scheduler_state().empty())
      s.state = view.ledger.Seen(source, at + " state", step.scheduler_state());
    if (step.has_exit_code() || step.has_signal())
      s.exit = view.ledger.Seen(source, at + " exit", ExitText(step));
    if (step.oom_kills() > 0) {
      s.oom = view.ledger.Seen("cgroup", at + " oom_kill", std::to_string(step.oom_kills()));
      view.oom_kills = std::max(view.oom_kills, step.oom_kills());
      if (view.oom == 0) view.oom = s.oom;
    }
    view.steps.push_back(s);
  }
}

std::string Position(int64_t begin, int64_t end, int64_t line_number) {
  std::string bytes = "bytes " + std::to_string(begin) + "-" + std::to_string(end);
  return line_number > 0 ? "line " + std::to_string(line_number) + ", " + bytes : bytes;
}

void AddTexts(CaseView& view) {
  int stream = 0;
  bool last_is_stderr = false;
  for (const auto& text : view.in->texts) {
    const ScanResult scan = Scan(text);
    ++stream;
    for (const auto& hit : scan.hits) {
      const FactId fact =
          view.ledger.Seen(text.name, Position(hit.begin, hit.end, hit.line_number), hit.line);
      Signal signal{hit, fact, text.kind, stream, text.name, 0};
      if (!hit.location.line.empty())
        signal.location = view.ledger.Seen(
            text.name, Position(hit.location.begin, hit.location.end, hit.location.line_number),
            hit.location.line);
      view.signals.push_back(std::move(signal));
    }
    if (!scan.last_line.line.empty())
      view.last_lines.push_back(view.ledger.Seen(
          text.name, Position(scan.last_line.begin, scan.last_line.end, scan.last_line.line_number),
          scan.last_line.line));
    if (text.kind != TextKind::kProgram) continue;
    view.logs_seen = true;
    const auto quoted = [&](const QuotedLine& q) {
      return view.ledger.Seen(text.name, Position(q.begin, q.end, q.line_number), q.line);
    };
    if (!scan.last_line.line.empty()) {
      const bool is_stderr = text.name == "stderr";
      if (view.last_error_line == 0 || (is_stderr && !last_is_stderr)) {
        view.last_error_line = quoted(scan.last_line);
        view.last_error_text = scan.last_line.line;
        last_is_stderr = is_stderr;
      }
    } else {
      view.logs = view.ledger.NotSeen(text.name, text.path, "any text: the stream is empty");
    }
    if (!scan.last_own.line.empty()) {
      view.last_own_line = quoted(scan.last_own);
      view.last_own_text = scan.last_own.line;
    }
    if (!scan.last_progress.line.empty()) {
      view.progress = quoted(scan.last_progress);
      view.progress_text = scan.last_progress.line;
    }
    if (!scan.last_success.line.empty()) view.success_line = quoted(scan.last_success);
  }
  if (!view.logs_seen) {
    const auto it = view.in->not_seeable.find("logs");
    view.logs = view.ledger.NotSeeable(
        "logs", "stdout, stderr",
        it == view.in->not_seeable.end() ? "no log was captured" : it->second);
  }
}

void AddObservations(CaseView& view) {
  int stream = 1000;
  const auto scan = [&](const std::string& source, const std::string& key, const std::string& value,
                        FactId fact, TextKind kind) {
    ++stream;
    for (const auto& hit : ScanLine(key + ": " + value, kind))
      view.signals.push_back({hit, fact, kind, stream, source, 0});
  };
  for (const auto& o : view.in->observations) {
    const FactId fact = view.ledger.Seen(o.source, o.key, o.value);
    view.observations.push_back(fact);
    const bool kernel = o.source == "kernel";
    scan(o.source, o.key, o.value, fact, kernel ? TextKind::kKernel : TextKind::kScheduler);
  }
  const auto& run = *view.run;
  // sacct keeps the reason why a job once waited; only of a job that never started does it say
  // how things stand.
  if (view.reason != 0 && NeverStarted(view))
    scan(SchedulerSource(run), "reason", run.scheduler_reason(), view.reason, TextKind::kScheduler);
  for (const auto& node : view.in->nodes) {
    if (node.state().empty()) continue;
    view.ledger.Seen("sinfo", "node " + node.name(),
                     node.state() + (node.reason().empty() ? "" : ", reason: " + node.reason()));
  }
}

// Lines in which processes meet or wait for data: what a standstill is explained with.
void AddLinesOfInterest(CaseView& view) {
  constexpr size_t kMaxLines = 12;
  const auto consider = [&](const std::string& source, std::string_view text, bool numbered) {
    int64_t number = 0;
    for (std::string_view line : Split(text, '\n')) {
      ++number;
      if (view.lines_of_interest.size() >= kMaxLines) return;
      const std::string lower = ToLower(line.substr(0, 400));
      for (std::string_view word :
           {"barrier(", "all_reduce(", "allreduce", "mpi_recv", "mpi_wait", "dataloader",
            "pin_memory", "num_workers", "augmenter", "prefetch", "data_queue"}) {
        if (lower.find(word) == std::string::npos) continue;
        const std::string shown = Shorten(Trim(line), kMaxQuotedLine);
        const FactId fact =
            view.ledger.Seen(source, numbered ? "line " + std::to_string(number) : "", shown);
        view.lines_of_interest.emplace_back(shown, fact);
        break;
      }
    }
  };
  for (size_t i = 0; i < view.in->observations.size(); ++i)
    if (view.in->observations[i].key.find("stack") != std::string::npos)
      consider(view.in->observations[i].source, view.in->observations[i].value, false);
  for (const auto& text : view.in->texts)
    if (text.kind == TextKind::kProgram)
      consider(text.name, std::string_view(text.content).substr(0, 256U << 10), text.offset == 0);
  if (view.in->bundle)
    for (const auto& file : view.in->bundle->files())
      consider("bundle:" + file.path(), std::string_view(file.content()).substr(0, 256U << 10),
               true);
}

// One fact for each recorded run: how it ended and what it needed.
void AddSimilar(CaseView& view) {
  constexpr int kMaxSimilarFacts = 20;
  int added = 0;
  for (const auto& r : view.in->similar) {
    if (++added > kMaxSimilarFacts) break;
    const auto& e = r.execution();
    std::string value =
        "outcome " + EnumTail(ExecutionOutcome_Name(e.outcome()), "EXECUTION_OUTCOME_");
    if (!e.scheduler_state().empty()) value += ", state " + e.scheduler_state();
    if (e.requested().has_memory_bytes())
      value += ", requested " + std::to_string(e.requested().memory_bytes()) + " bytes";
    if (e.memory_need().has_value())
      value += ", memory need " + std::to_string(e.memory_need().value()) + " bytes";
    else if (e.memory_peak_enforced().has_value())
      value += ", memory peak " + std::to_string(e.memory_peak_enforced().value()) + " bytes";
    view.ledger.Seen("execution:" + e.execution_id(), r.basis(), value);
  }
}

}  // namespace

std::string SchedulerSource(const common::v1::Execution& run) {
  for (const char* name : {"sacct", "scontrol", "squeue"})
    if (std::find(run.seen_by().begin(), run.seen_by().end(), name) != run.seen_by().end())
      return name;
  return "scheduler";
}

bool NeverStarted(const CaseView& view) {
  return view.run->ending_cause() == common::v1::ENDING_CAUSE_NEVER_STARTED ||
         view.ending == Ending::kQueued ||
         (!view.run->has_start_time_ms() && view.elapsed_s.value_or(0) == 0);
}

std::string ExitText(const common::v1::ExecutionStep& step) {
  std::string text;
  const bool by_signal = step.has_signal() && step.signal() != 0;
  if (step.has_exit_code() && (step.exit_code() != 0 || !by_signal))
    text = "exit code " + std::to_string(step.exit_code());
  if (by_signal) text += (text.empty() ? "signal " : ", signal ") + std::to_string(step.signal());
  return text;
}

bool CaseView::StateIs(std::string_view prefix) const {
  return StartsWithIgnoreCase(run->scheduler_state(), prefix);
}

const Signal* CaseView::Best(std::string_view failure_class) const {
  const Signal* best = nullptr;
  for (const auto& s : signals)
    if (s.hit.failure_class == failure_class &&
        (best == nullptr || s.hit.strength > best->hit.strength))
      best = &s;
  return best;
}

std::optional<std::string> CaseView::Observed(std::string_view suffix, FactId* fact) const {
  for (size_t i = 0; i < in->observations.size(); ++i) {
    const std::string& key = in->observations[i].key;
    if (key.size() < suffix.size() || key.substr(key.size() - suffix.size()) != suffix) continue;
    if (fact != nullptr) *fact = observations[i];
    return in->observations[i].value;
  }
  return std::nullopt;
}

CaseView BuildView(const CaseInputs& inputs) {
  CaseView view;
  view.in = &inputs;
  view.run = &inputs.execution;
  view.ending = EndingOf(inputs.execution);
  NormaliseExit(view);
  AddRunFacts(view);
  AddMemoryFacts(view);
  AddSteps(view);
  AddTexts(view);
  AddObservations(view);
  AddLinesOfInterest(view);
  AddSimilar(view);
  return view;
}

}  // namespace expanse::intelligence::diagnose
