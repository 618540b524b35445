// SPDX-License-Identifier: Apache-2.0
// One row for each stage: what it found, what was not applicable, what answered only in part.
#include <set>
#include <string>

#include "intelligence/diagnose/diagnose.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr auto kDone = v1::PIPELINE_STAGE_STATUS_OK;
constexpr auto kDegraded = v1::PIPELINE_STAGE_STATUS_DEGRADED;
constexpr auto kSkipped = v1::PIPELINE_STAGE_STATUS_SKIPPED;

std::string Count(size_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

class Stages {
 public:
  Stages(const CaseView& view, v1::DiagnoseResult* result) : in_(*view.in), result_(result) {}

  void Add(const char* name, v1::PipelineStageStatus status, std::string summary) {
    auto* stage = result_->add_pipeline();
    stage->set_name(name);
    stage->set_status(status);
    stage->set_summary(std::move(summary));
  }

  void Evidence() {
    std::string found = "execution record, scheduler status";
    size_t tails = 0;
    for (const auto& text : in_.texts) tails += text.kind == TextKind::kProgram ? 1 : 0;
    if (tails > 0) found += ", " + Count(tails, "log tail", "log tails");
    if (const std::string* reason = Missing("logs"))
      return Add("evidence", kDegraded, found + "; logs: " + *reason);
    Add("evidence", kDone, found);
  }

  void Similar() {
    if (const std::string* reason = Missing("similar")) return Add("similar", kDegraded, *reason);
    Add("similar", kDone, Count(in_.similar.size(), "similar execution", "similar executions"));
  }

  void Sources() {
    const std::string added = in_.added_sources.empty() ? ""
                                                        : ", " + Count(in_.added_sources.size(),
                                                                       "file given", "files given");
    if (const std::string* reason = Missing("bundle"))
      return Add("sources", in_.added_sources.empty() ? kDegraded : kDone, *reason + added);
    if (!in_.bundle) {
      if (added.empty()) return Add("sources", kSkipped, "no sources captured");
      return Add("sources", kDone, "no sources captured" + added);
    }
    size_t fetched = 0;
    for (const auto& file : in_.bundle->files()) fetched += file.has_content() ? 1 : 0;
    Add("sources", kDone,
        Count(static_cast<size_t>(in_.bundle->files_size()), "captured file", "captured files") +
            ", " + std::to_string(fetched) + " fetched" + added);
  }

  void Metrics() {
    if (const std::string* reason = Missing("metrics"))
      return Add("metrics", kDegraded, *reason + "; snapshot from the execution record");
    std::set<std::string> names;
    for (const auto& series : in_.series) names.insert(series.metric());
    if (names.empty())
      return Add("metrics", kDegraded, "no series; snapshot from the execution record");
    Add("metrics", kDone, std::to_string(names.size()) + " series, snapshot");
  }

 private:
  const std::string* Missing(const char* input) const {
    const auto it = in_.not_seeable.find(input);
    return it == in_.not_seeable.end() ? nullptr : &it->second;
  }
  const CaseInputs& in_;
  v1::DiagnoseResult* result_;
};

// "11k chars"; below a thousand the figure itself.
std::string PromptSize(size_t chars) {
  return chars < 1000 ? std::to_string(chars) + " chars"
                      : std::to_string((chars + 500) / 1000) + "k chars";
}

}  // namespace

void FillPipeline(const CaseView& view, const Verdict& verdict, v1::DiagnoseResult* result) {
  Stages stages(view, result);
  stages.Evidence();
  stages.Similar();
  stages.Sources();
  stages.Add("attribution", kSkipped, "no stacks captured");
  stages.Metrics();
  stages.Add("runbooks", kDone, verdict.finding.failure_class);
  stages.Add("synthesis", kDone, "deterministic");
  if (result->agent_prompt().empty())
    stages.Add("agent-prompt", kSkipped,
               view.ending == Ending::kQueued || view.ending == Ending::kRunning
                   ? "the execution has not ended"
                   : "nothing failed that code explains");
  else
    stages.Add("agent-prompt", kDone, PromptSize(result->agent_prompt().size()));
}

}  // namespace expanse::intelligence::diagnose
