// SPDX-License-Identifier: Apache-2.0
// diagnose_cases FILE.jsonl [--verbose] [--only even|odd]: runs the diagnosis engine over labelled
// failure cases (one JSON object a line: state, exit_code, signal, requested, observed, log_tail,
// source, label) and prints how often the class is right, how much of must_cite the cited facts
// cover, and which claims say what a case forbids. Without the file it says so and exits 0.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "base/strings.h"
#include "domain/failure_class.h"
#include "intelligence/diagnose/diagnose.h"

namespace {

namespace json = boost::json;
using expanse::intelligence::diagnose::CaseInputs;
using expanse::intelligence::diagnose::Observation;
using expanse::intelligence::diagnose::TextKind;
using expanse::intelligence::diagnose::TextSource;
namespace common = expanse::common::v1;

std::string Text(const json::value& v) {
  return v.is_string() ? std::string(v.get_string()) : json::serialize(v);
}

// {"a":{"b":[1]}} becomes a.b.0 = 1.
void Flatten(const json::value& v, const std::string& path, std::vector<Observation>* out,
             const std::string& source) {
  if (v.is_object()) {
    for (const auto& kv : v.get_object())
      Flatten(kv.value(), path.empty() ? std::string(kv.key()) : path + "." + std::string(kv.key()),
              out, source);
  } else if (v.is_array()) {
    int i = 0;
    for (const auto& item : v.get_array())
      Flatten(item, path + "." + std::to_string(i++), out, source);
  } else if (!v.is_null()) {
    out->push_back({source, path, Text(v)});
  }
}

std::optional<int64_t> Int(const json::object& o, std::string_view key) {
  const auto* v = o.if_contains(key);
  if (v == nullptr || !v->is_number()) return std::nullopt;
  return v->is_double() ? static_cast<int64_t>(v->get_double()) : v->to_number<int64_t>();
}

const json::object* Object(const json::object& o, std::string_view key) {
  const auto* v = o.if_contains(key);
  return v == nullptr ? nullptr : v->if_object();
}

std::string StringAt(const json::object& o, std::string_view key) {
  const auto* v = o.if_contains(key);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : "";
}

void SlurmState(const json::object& state, common::Execution* run) {
  run->set_source_type(common::SOURCE_TYPE_SLURM);
  const std::string job_state = StringAt(state, "JobState");
  run->set_scheduler_state(job_state);
  run->set_scheduler_reason(StringAt(state, "Reason"));
  const auto is = [&](std::string_view prefix) {
    return expanse::StartsWithIgnoreCase(job_state, prefix);
  };
  if (is("PENDING") || is("CONFIGURING")) {
    run->set_status(common::EXECUTION_STATUS_QUEUED);
  } else if (is("RUNNING") || is("SUSPENDED")) {
    run->set_status(common::EXECUTION_STATUS_RUNNING);
  } else if (is("COMPLETED")) {
    run->set_status(common::EXECUTION_STATUS_SUCCEEDED);
    run->set_outcome(common::EXECUTION_OUTCOME_SUCCESS);
  } else if (is("CANCELLED")) {
    run->set_status(common::EXECUTION_STATUS_CANCELLED);
    run->set_outcome(common::EXECUTION_OUTCOME_CANCELLED);
  } else if (is("TIMEOUT") || is("DEADLINE")) {
    run->set_status(common::EXECUTION_STATUS_FAILED);
    run->set_outcome(common::EXECUTION_OUTCOME_TIMEOUT);
  } else if (is("NODE_FAIL") || is("BOOT_FAIL") || is("PREEMPTED") || is("REQUEUED")) {
    run->set_status(common::EXECUTION_STATUS_UNKNOWN);
    run->set_outcome(common::EXECUTION_OUTCOME_UNKNOWN);
  } else if (is("OUT_OF_MEMORY")) {
    run->set_status(common::EXECUTION_STATUS_FAILED);
    run->set_outcome(common::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  } else {
    run->set_status(common::EXECUTION_STATUS_FAILED);
    run->set_outcome(common::EXECUTION_OUTCOME_FAILURE);
  }
}

void OtherState(const std::string& scheduler, const json::object& state, common::Execution* run,
                std::optional<int64_t> exit_code) {
  std::string word = StringAt(state, "phase");
  if (word.empty()) word = StringAt(state, "ClientStatus");
  if (word.empty()) word = StringAt(state, "status");
  run->set_scheduler_state(word);
  run->set_source_type(scheduler == "kubernetes" ? common::SOURCE_TYPE_KUBERNETES
                       : scheduler == "nomad"    ? common::SOURCE_TYPE_NOMAD
                                                 : common::SOURCE_TYPE_VM);
  const std::string lower = expanse::ToLower(word);
  const bool failed = exit_code.value_or(0) != 0;
  if (lower == "pending")
    run->set_status(common::EXECUTION_STATUS_QUEUED);
  else if ((lower == "running" || lower == "hung") && !failed)
    run->set_status(common::EXECUTION_STATUS_RUNNING);
  else if (lower == "succeeded" || ((lower == "complete" || lower == "exited") && !failed)) {
    run->set_status(common::EXECUTION_STATUS_SUCCEEDED);
    run->set_outcome(common::EXECUTION_OUTCOME_SUCCESS);
  } else {
    run->set_status(common::EXECUTION_STATUS_FAILED);
    run->set_outcome(common::EXECUTION_OUTCOME_FAILURE);
  }
}

CaseInputs Convert(const json::object& c) {
  CaseInputs in;
  auto* run = &in.execution;
  run->set_execution_id(StringAt(c, "id"));
  const std::string scheduler = StringAt(c, "scheduler");
  const auto exit_code = Int(c, "exit_code");
  static const json::object kEmpty;
  const json::object* state = Object(c, "state");
  if (state == nullptr) state = &kEmpty;
  if (scheduler == "slurm")
    SlurmState(*state, run);
  else
    OtherState(scheduler, *state, run, exit_code);
  if (exit_code) run->set_exit_code(static_cast<int>(*exit_code));
  if (const auto signal = Int(c, "signal")) run->set_signal(static_cast<int>(*signal));
  if (const auto* requested = Object(c, "requested")) {
    auto* r = run->mutable_requested();
    if (const auto v = Int(*requested, "mem_bytes")) r->set_memory_bytes(*v);
    if (const auto v = Int(*requested, "cpus")) r->set_cpu_cores(static_cast<int>(*v));
    if (const auto v = Int(*requested, "gpus")) r->set_gpu_count(static_cast<int>(*v));
    if (const auto v = Int(*requested, "time_limit_s")) r->set_walltime_seconds(*v);
    Flatten(*requested, "", &in.observations, "request");
  }
  if (const auto* observed = Object(c, "observed")) {
    if (const auto v = Int(*observed, "peak_mem_bytes"))
      run->mutable_memory_peak_enforced()->set_value(*v);
    if (const auto v = Int(*observed, "elapsed_s")) run->mutable_runtime_seconds()->set_value(*v);
    json::object rest = *observed;
    if (const auto* kernel = rest.if_contains("kernel")) {
      in.texts.push_back({"kernel", TextKind::kKernel, "", Text(*kernel), 0});
      rest.erase("kernel");
    }
    Flatten(rest, "", &in.observations, "observed");
  }
  Flatten(*state, "", &in.observations, "scheduler");
  if (const auto* source = Object(c, "source")) {
    in.bundle.emplace();
    for (const auto& kv : *source) {
      auto* file = in.bundle->add_files();
      file->set_path(std::string(kv.key()));
      file->set_content(Text(kv.value()));
    }
  }
  in.texts.push_back({"stderr", TextKind::kProgram, "", StringAt(c, "log_tail"), 0});
  return in;
}

// Claims without what they quote: a case forbids saying something, not showing a line that does.
std::string OwnWords(const expanse::intelligence::v1::DiagnoseResult& result) {
  std::string out;
  bool quoted = false;
  for (const auto& claim : result.claims())
    for (char ch : claim.text()) {
      if (ch == '"')
        quoted = !quoted;
      else if (!quoted)
        out.push_back(ch);
    }
  return expanse::ToLower(out);
}

struct Score {
  int n = 0;
  int right = 0;
};
void Print(const char* title, const std::map<std::string, Score>& scores, bool only_wrong) {
  std::printf("%s\n", title);
  for (const auto& [name, s] : scores)
    if (!only_wrong || s.right != s.n) std::printf("  %-34s %d/%d\n", name.c_str(), s.right, s.n);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path = "../shared/cases/failures.jsonl";
  std::string only;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--verbose")
      verbose = true;
    else if (arg == "--only" && i + 1 < argc)
      only = argv[++i];
    else
      path = arg;
  }
  std::ifstream file(path);
  if (!file) {
    std::printf("diagnose_cases: %s is not there; nothing measured\n", path.c_str());
    return 0;
  }
  std::map<std::string, Score> by_class, by_difficulty, by_tag, by_label;
  std::map<std::string, int> confusion;
  Score all;
  int cite_all = 0, cite_cited = 0, cite_fact = 0, forbidden = 0, uncited_claims = 0;
  std::vector<double> millis;
  std::string line;
  while (std::getline(file, line)) {
    boost::system::error_code ec;
    const json::value parsed = json::parse(line, ec);
    if (ec || !parsed.is_object()) continue;
    const json::object& c = parsed.get_object();
    const std::string id = StringAt(c, "id");
    if (!only.empty()) {
      const bool odd = (std::strtoul(id.substr(id.size() - 1).c_str(), nullptr, 16) & 1U) != 0;
      if ((only == "odd") != odd) continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto result = expanse::intelligence::diagnose::Diagnose(Convert(c));
    millis.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    for (const auto& claim : result.claims()) uncited_claims += claim.fact_ids_size() == 0 ? 1 : 0;
    const json::object* label = Object(c, "label");
    if (label == nullptr) continue;
    const std::string expected = StringAt(*label, "failure_class");
    const std::string got = result.display().failure_class();
    const bool right = expected == got;
    const auto count = [right](Score& s) {
      ++s.n;
      s.right += right ? 1 : 0;
    };
    count(all);
    count(by_class[expected]);
    count(by_difficulty[StringAt(c, "difficulty")]);
    count(by_label[ConfidenceLabel_Name(result.confidence())]);
    if (const auto* tags = label->if_contains("tags"); tags != nullptr && tags->is_array())
      for (const auto& tag : tags->get_array()) count(by_tag[Text(tag)]);
    if (!right) ++confusion[expected + " -> " + got];
    std::set<std::string> cited_ids;
    for (const auto& claim : result.claims())
      for (const auto& f : claim.fact_ids()) cited_ids.insert(f);
    std::string cited_text, fact_text;
    for (const auto& f : result.facts()) {
      const std::string text = f.source() + " " + f.position() + " " + f.value() + "\n";
      fact_text += text;
      if (cited_ids.count(f.fact_id()) != 0) cited_text += text;
    }
    std::string uncovered;
    if (const auto* cites = label->if_contains("must_cite"))
      for (const auto& cite : cites->get_array()) {
        ++cite_all;
        if (cited_text.find(Text(cite)) != std::string::npos)
          ++cite_cited;
        else
          uncovered += " [" + Text(cite) + "]";
        if (fact_text.find(Text(cite)) != std::string::npos) ++cite_fact;
      }
    std::string said;
    if (const auto* nots = label->if_contains("must_not_say"))
      for (const auto& n : nots->get_array())
        if (OwnWords(result).find(expanse::ToLower(Text(n))) != std::string::npos) {
          ++forbidden;
          said += " [" + Text(n) + "]";
        }
    if (verbose && (!right || !uncovered.empty() || !said.empty()))
      std::printf("%s %s expected %s got %s (%s)\n   %s\n   uncovered:%s forbidden:%s\n",
                  id.c_str(), right ? "right" : "WRONG", expected.c_str(), got.c_str(),
                  ConfidenceLabel_Name(result.confidence()).c_str(), result.root_cause().c_str(),
                  uncovered.c_str(), said.c_str());
  }
  std::sort(millis.begin(), millis.end());
  std::printf("class right: %d of %d (%.1f %%)\n", all.right, all.n,
              100.0 * all.right / std::max(1, all.n));
  Print("by difficulty", by_difficulty, false);
  Print("by tag", by_tag, false);
  Print("by confidence", by_label, false);
  Print("classes with errors", by_class, true);
  std::printf("confusions\n");
  for (const auto& [pair, n] : confusion) std::printf("  %s %d\n", pair.c_str(), n);
  std::printf("must_cite: %d of %d in cited facts, %d in any fact\n", cite_cited, cite_all,
              cite_fact);
  std::printf("must_not_say in our own words: %d; claims without a fact: %d\n", forbidden,
              uncited_claims);
  if (!millis.empty())
    std::printf("time for one case: median %.2f ms, worst %.2f ms\n", millis[millis.size() / 2],
                millis.back());
  return uncited_claims == 0 ? 0 : 1;
}
