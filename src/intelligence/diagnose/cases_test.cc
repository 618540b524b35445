// SPDX-License-Identifier: Apache-2.0
// Runs every case of testdata/cases/*.jsonl through the engine. One JSON object a line:
// {"name", "execution": proto JSON, "stderr" | "stderr_file", "stdout" | "stdout_file", "kernel",
// "observations": [[source, key, value]], "sources": {path: text}, "similar": [RecordedRun],
// "expect": {"class", "confidence", "state", "says": [], "not_says": [], "prompt", "root_cause"}}.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "domain/failure_class.h"
#include "intelligence/diagnose/diagnose.h"
#include "rpc/json.h"

namespace expanse::intelligence::diagnose {
namespace {

namespace json = boost::json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::string StringAt(const json::object& o, std::string_view key) {
  const auto* v = o.if_contains(key);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : "";
}

void AddText(const json::object& c, const std::string& name, TextKind kind, CaseInputs* in) {
  const std::string file = StringAt(c, name + "_file");
  if (!file.empty())
    in->texts.push_back({name, kind, file, ReadFile(EXPANSE_TESTDATA "/" + file), 0});
  else if (c.contains(name))
    in->texts.push_back({name, kind, "", StringAt(c, name), 0});
}

CaseInputs Inputs(const json::object& c) {
  CaseInputs in;
  in.compute_name = "lab";
  EXPECT_TRUE(rpc::FromJson(json::serialize(c.at("execution")), &in.execution).ok());
  AddText(c, "stdout", TextKind::kProgram, &in);
  AddText(c, "stderr", TextKind::kProgram, &in);
  AddText(c, "kernel", TextKind::kKernel, &in);
  AddText(c, "events", TextKind::kScheduler, &in);
  if (const auto* list = c.if_contains("observations"))
    for (const auto& o : list->get_array())
      in.observations.push_back({std::string(o.at(0).get_string()),
                                 std::string(o.at(1).get_string()),
                                 std::string(o.at(2).get_string())});
  if (const auto* sources = c.if_contains("sources")) {
    in.bundle.emplace();
    for (const auto& kv : sources->get_object()) {
      auto* file = in.bundle->add_files();
      file->set_path(std::string(kv.key()));
      file->set_content(std::string(kv.value().get_string()));
    }
  }
  if (const auto* similar = c.if_contains("similar")) {
    for (const auto& r : similar->get_array()) {
      EXPECT_TRUE(rpc::FromJson(json::serialize(r), &in.similar.emplace_back()).ok());
    }
  }
  return in;
}

void ExpectHonest(const v1::DiagnoseResult& result) {
  std::set<std::string> ids;
  for (const auto& fact : result.facts()) ids.insert(fact.fact_id());
  for (const auto& claim : result.claims()) {
    EXPECT_GT(claim.fact_ids_size(), 0) << claim.text();
    for (const auto& id : claim.fact_ids()) EXPECT_TRUE(ids.count(id)) << id;
  }
  ASSERT_EQ(result.pipeline_size(), 8);
  const char* stages[] = {"evidence", "similar",  "sources",   "attribution",
                          "metrics",  "runbooks", "synthesis", "agent-prompt"};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(result.pipeline(i).name(), stages[i]);
}

void Check(const json::object& c) {
  const json::object& expect = c.at("expect").get_object();
  const auto result = Diagnose(Inputs(c));
  EXPECT_EQ(result.display().failure_class(), StringAt(expect, "class")) << result.root_cause();
  if (const std::string label = StringAt(expect, "confidence"); !label.empty()) {
    EXPECT_EQ(ToLower(v1::ConfidenceLabel_Name(result.confidence())), "confidence_label_" + label)
        << result.root_cause();
  }
  if (const std::string state = StringAt(expect, "state"); !state.empty()) {
    EXPECT_EQ(result.display().state(), state);
  }
  const auto has = [&](const json::value& text) {
    return result.root_cause().find(std::string(text.get_string())) != std::string::npos;
  };
  if (const auto* says = expect.if_contains("says")) {
    for (const auto& text : says->get_array()) {
      EXPECT_TRUE(has(text)) << text << " in " << result.root_cause();
    }
  }
  if (const auto* nots = expect.if_contains("not_says")) {
    for (const auto& text : nots->get_array()) {
      EXPECT_FALSE(has(text)) << text << " in " << result.root_cause();
    }
  }
  if (const auto* prompt = expect.if_contains("prompt")) {
    EXPECT_EQ(!result.agent_prompt().empty(), prompt->get_bool());
  }
  if (const auto* failed = expect.if_contains("failed")) {
    EXPECT_EQ(result.failed(), failed->get_bool());
  }
  if (const auto* cause = expect.if_contains("root_cause")) {
    EXPECT_EQ(!result.root_cause().empty(), cause->get_bool()) << result.root_cause();
  }
  ExpectHonest(result);
  // The same evidence gives the same bytes.
  EXPECT_EQ(rpc::ToJson(result).value(), rpc::ToJson(Diagnose(Inputs(c))).value());
}

std::map<std::string, std::vector<json::object>> AllCases() {
  std::map<std::string, std::vector<json::object>> all;
  for (const auto& entry : std::filesystem::directory_iterator(EXPANSE_TESTDATA "/cases")) {
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line))
      all[entry.path().stem().string()].push_back(json::parse(line).as_object());
  }
  return all;
}

TEST(DiagnoseCases, EveryCaseIsNamedRight) {
  for (const auto& [file, cases] : AllCases())
    for (const auto& c : cases) {
      SCOPED_TRACE(file + ": " + StringAt(c, "name"));
      Check(c);
    }
}

TEST(DiagnoseCases, EveryClassHasThreeCasesAndAPage) {
  const auto all = AllCases();
  for (const auto& row : domain::FailureClasses()) {
    const auto it = all.find(std::string(row.name));
    EXPECT_TRUE(it != all.end() && it->second.size() >= 3) << row.name;
    EXPECT_TRUE(std::filesystem::exists(EXPANSE_SOURCE_DIR "/docs/runbooks/" +
                                        std::string(row.name) + ".md"))
        << row.name;
  }
}

TEST(DiagnoseCases, EveryClassHasARunbookAndEverySignalAClass) {
  std::set<std::string_view> runbooks;
  for (const auto& runbook : Runbooks()) runbooks.insert(runbook.failure_class);
  EXPECT_EQ(runbooks.size() + 1, domain::FailureClasses().size());
  for (const auto* rule : AllSignals())
    EXPECT_TRUE(runbooks.count(rule->failure_class)) << rule->pattern;
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
