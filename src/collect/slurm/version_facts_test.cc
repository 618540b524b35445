// SPDX-License-Identifier: Apache-2.0
// What is sent of the same 23 jobs from 22.05.8, 24.11.5 and 26.05.5: the same, but for the
// differences that are listed here.
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "collect/slurm/facts_builder.h"
#include "collect/slurm/sacct_reader.h"
#include "collect/slurm/scontrol_job_parser.h"
#include "collect/slurm/slurm_version.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {
namespace {

using namespace expanse::common::v1;
using Fields = std::map<std::string, std::string>;

const char* const kKinds[] = {
    "timeout",           "cancel",         "succeed",         "exit-nonzero",
    "oom-batch",         "oom-step",       "array",           "dep-afterok-met",
    "dep-never",         "dep-never-kill", "dep-afternotok",  "segfault",
    "segfault-step",     "requeue",        "overrequest",     "gpu-idle",
    "command-not-found", "missing-module", "pending",         "multistep",
    "rank-fail",         "nodefail",       "nodefail-requeue"};

SacctDialect DialectOf(const std::string& version) {
  const auto parsed = ParseSlurmVersion(version + ".5");
  return {FormsOf(parsed).sacct_exact_codes, MaxRssKindOf(parsed, "jobacct_gather/cgroup")};
}

std::string Optional(bool has, int64_t value) { return has ? std::to_string(value) : "-"; }

void AddMeasured(const MeasuredInt64& m, const std::string& name, Fields* out) {
  (*out)[name] = !m.has_value() ? "-" : Bound_Name(m.bound()) + " " + m.reason();
}

void AddStep(const ExecutionStep& step, Fields* out) {
  const std::string p = "step " + step.step_id() + " ";
  (*out)[p + "name"] = step.name();
  (*out)[p + "state"] = step.scheduler_state();
  (*out)[p + "outcome"] = ExecutionOutcome_Name(step.outcome());
  (*out)[p + "exit"] = Optional(step.has_exit_code(), step.exit_code()) + "/" +
                       Optional(step.has_signal(), step.signal());
  (*out)[p + "tasks"] = Optional(step.has_tasks(), step.tasks());
  (*out)[p + "nodes"] = std::to_string(step.nodes_size());
  AddMeasured(step.memory_peak_enforced(), p + "peak", out);
  AddMeasured(step.memory_need(), p + "need", out);
}

/// Without what differs from run to run: times, amounts used, names of nodes, ids in paths.
Fields FieldsOf(const Execution& e, const std::string& job_id) {
  Fields out;
  out["user"] = e.user();
  out["account"] = e.account();
  out["partition"] = e.partition();
  out["name"] = e.job_name();
  out["qos"] = e.qos();
  out["cluster"] = e.cluster();
  out["status"] = ExecutionStatus_Name(e.status());
  out["outcome"] = ExecutionOutcome_Name(e.outcome());
  out["cause"] = EndingCause_Name(e.ending_cause());
  out["state"] = e.scheduler_state();
  out["exit"] =
      Optional(e.has_exit_code(), e.exit_code()) + "/" + Optional(e.has_signal(), e.signal());
  out["derived"] = Optional(e.has_derived_exit_code(), e.derived_exit_code());
  out["started"] = e.has_start_time_ms() ? "yes" : "no";
  out["ended"] = e.has_end_time_ms() ? "yes" : "no";
  out["requested"] = e.requested().ShortDebugString();
  out["allocated"] = e.allocated().ShortDebugString();
  out["nodes"] = std::to_string(e.nodes_size());
  // The nodes of the three laboratories are n1, t1 and s1.
  std::string line = e.submit_line();
  if (const size_t at = line.find("--nodelist="); at != std::string::npos) line[at + 11] = 'n';
  out["submit_line"] = line;
  out["command"] = e.command();
  out["work_dir"] = e.work_dir();
  for (auto [name, path] : {std::pair("stdout", e.stdout_path()), {"stderr", e.stderr_path()}}) {
    const size_t at = path.find("-" + job_id);
    if (at != std::string::npos) path.replace(at + 1, job_id.size(), "ID");
    out[name] = path;
  }
  out["runtime"] = e.has_runtime_seconds() ? Bound_Name(e.runtime_seconds().bound()) + " " +
                                                 e.runtime_seconds().reason()
                                           : "-";
  AddMeasured(e.memory_peak_enforced(), "peak", &out);
  AddMeasured(e.memory_need(), "need", &out);
  for (const auto& [field, reason] : e.unknown()) out["unknown " + field] = reason;
  for (const auto& step : e.steps()) AddStep(step, &out);
  return out;
}

/// Facts of every run of one kind, by a name that does not depend on ids.
std::map<std::string, Fields> FactsOf(const std::string& version, const std::string& kind) {
  const std::string dir = "jobs/" + kind;
  const bool again = kind.find("requeue") != std::string::npos;
  const auto rows = ParseSacctText(
      Marked(Recorded(dir + (again ? "/sacct-all-duplicates.psv" : "/sacct-all.psv"), version)),
      "|", DialectOf(version));
  EXPECT_TRUE(rows.ok()) << rows.error().message();
  const RecordBatch live =
      ParseScontrolJobs(Recorded(dir + "/scontrol-dd.ended.txt", version), nullptr);
  std::map<std::string, Fields> out;
  std::map<int64_t, int> attempts;
  const auto add = [&](const JobRecord& job, const RunContext& context, const std::string& tool) {
    const std::string id = std::to_string(job.array_job_id.value_or(job.job_id));
    const auto facts = BuildFacts(job, {job.job_id, job.submit.value_or(0), 0}, context);
    const std::string name = kind + " " + tool +
                             (job.array_task_id ? " task " + std::to_string(*job.array_task_id)
                                                : " " + std::to_string(attempts[job.job_id]));
    out[name] = FieldsOf(facts.execution(), id);
  };
  for (const JobRecord& job : rows->jobs) {
    RunContext context;
    const JobRecord* seen = FindJob(live, job.job_id);
    if (seen != nullptr && seen->submit == job.submit) context.exit = seen->exit;
    ++attempts[job.job_id];
    add(job, context, "sacct");
  }
  for (const JobRecord& job : live.jobs) add(job, {}, "scontrol");
  return out;
}

struct Difference {
  const char* runs;     // prefix of the run's name; "": all
  const char* field;    // prefix of the field's name
  const char* version;  // that differs from 22.05; "": both newer ones
  const char* why;
};

const Difference kDifferences[] = {
    {"", "peak", "", "MaxRSS is the cgroup's peak: exact where the step has one task on each node"},
    {"", "need", "", "MaxRSS holds page cache: nothing is told of need"},
    {"", "unknown memory_need", "", "the same"},
    {"", "step batch peak", "", "the same"},
    {"", "step batch need", "", "the same"},
    {"", "step extern peak", "", "the same; empty in 26.05"},
    {"", "step extern need", "", "the same"},
    {"", "step 0 peak", "", "the same"},
    {"", "step 0 need", "", "the same"},
    {"", "step 1 peak", "", "the same"},
    {"", "step 1 need", "", "the same"},
    {"", "step 2 peak", "", "the same"},
    {"", "step 2 need", "", "the same"},
    {"rank-fail sacct", "step 0 exit", "26.05",
     "sacct prints 134 and not 6: the signal is certain"},
    {"nodefail", "step extern", "",
     "the extern step of a node failure is CANCELLED without a code"},
    {"nodefail-requeue", "step batch exit", "", "the batch step of a node failure has no code"},
};

/// scontrol of 22.05 has one list of resources in place of two, and no submit line.
bool IsOfScontrol(const std::string& run, const std::string& field, const std::string& before) {
  if (run.find(" scontrol ") == std::string::npos) return false;
  if (field == "submit_line") return before.empty();
  return field == "requested" && before.find("shows no memory request") != std::string::npos;
}

const Difference* Explained(const std::string& run, const std::string& field,
                            const std::string& version) {
  for (const Difference& d : kDifferences)
    if (run.starts_with(d.runs) && field.starts_with(d.field) &&
        (*d.version == '\0' || version == d.version))
      return &d;
  return nullptr;
}

class EveryKind : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryKind, IsTheSameFromEveryVersion) {
  const auto base = FactsOf("22.05", GetParam());
  for (const std::string version : {"24.11", "26.05"}) {
    const auto facts = FactsOf(version, GetParam());
    ASSERT_EQ(facts.size(), base.size());
    for (const auto& [run, fields] : facts) {
      ASSERT_TRUE(base.contains(run)) << run;
      Fields all = base.at(run);
      for (const auto& [field, value] : fields) all.emplace(field, "(none)");
      for (const auto& [field, before] : all) {
        const auto it = fields.find(field);
        const std::string now = it == fields.end() ? "(none)" : it->second;
        if (now == before || Explained(run, field, version) != nullptr) continue;
        if (IsOfScontrol(run, field, before)) continue;
        ADD_FAILURE() << version << " " << run << ", " << field << ":\n  22.05: " << before
                      << "\n  " << version << ": " << now;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheLab, EveryKind, ::testing::ValuesIn(kKinds), [](const auto& i) {
  std::string name = i.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace expanse::collect::slurm
