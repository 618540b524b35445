// SPDX-License-Identifier: Apache-2.0
// A reconciler over a cluster whose tools answer what a test wants.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/slurm/reconciler.h"
#include "collect/slurm/test_support.h"

namespace expanse::collect::slurm {

/// Answers as a cluster would; each tool's answer can be replaced at any time.
class FakeCluster final : public platform::ProcessRunner {
 public:
  Result<platform::ProcessResult> Run(const platform::ProcessSpec& spec) override {
    calls.push_back(spec.argv);
    EXPECT_EQ(spec.env.at("TZ"), "UTC");
    EXPECT_EQ(spec.env.at("LC_ALL"), "C");
    platform::ProcessResult result;
    for (const auto& [word, why] : refused) {
      if (!::testing::Value(spec.argv, ::testing::Contains(word))) continue;
      result.exit_code = 1;
      result.err = why;
      return result;
    }
    if (spec.argv[1] == "--version") {
      result.out = version;
    } else if (spec.argv[1] == "--helpformat") {
      result.out = fields;
    } else if (spec.argv[0] == "squeue") {
      if (fail_squeue) return Error(Code::kDeadlineExceeded, "ran past its time-out of 30 s");
      result.out = squeue;
    } else if (spec.argv[0] == "sacct" && spec.argv[1] == "--batch-script") {
      result.out = "";
    } else if (spec.argv[0] == "sacct") {
      if (sacct_disabled) {
        result.exit_code = 1;
        result.err = "Slurm accounting storage is disabled\n";
        return result;
      }
      const bool by_ids =
          ::testing::Value(spec.argv, ::testing::Contains(::testing::HasSubstr("--jobs=")));
      result.out = WithMark(by_ids ? sacct_ids : sacct, spec.argv);
    } else if (spec.argv[1] == "show" && spec.argv[2] == "job" && spec.argv.size() == 4 &&
               spec.argv[3] == "-dd") {
      result.out = scontrol;
    } else if (spec.argv[1] == "show" && spec.argv[2] == "job" && spec.argv.back() == "--json") {
      result.out = scontrol_json;
    } else if (spec.argv[1] == "show" && spec.argv[2] == "job") {
      result.exit_code = forgotten ? 1 : 0;
      (forgotten ? result.err : result.out) =
          forgotten ? "slurm_load_jobs error: Invalid job id specified\n" : "JobId=1 JobName=x\n";
    } else if (spec.argv[1] == "write") {
      result.out = "#!/bin/bash\n#SBATCH --mem=100M\ntrue\n";
    } else if (spec.argv[1] == "show" && spec.argv[2] == "config") {
      result.out = Recorded("cluster/scontrol-show-config.txt", recorded);
    } else if (spec.argv[1] == "show" && spec.argv[2] == "node") {
      result.out = Recorded("cluster/scontrol-show-node.txt", recorded);
    } else {
      result.out = Recorded("cluster/scontrol-show-partition.txt");
    }
    return result;
  }

  /// The recording with the mark that this call asked for.
  static std::string WithMark(std::string text, const std::vector<std::string>& argv) {
    std::string mark;
    for (const auto& arg : argv)
      if (arg.starts_with("--delimiter=")) mark = arg.substr(12);
    const std::string kept = kRecordedMark;
    for (size_t at = text.find(kept); at != std::string::npos;
         at = text.find(kept, at + mark.size()))
      text.replace(at, kept.size(), mark);
    return text;
  }
  int Count(const std::string& tool) const {
    int n = 0;
    for (const auto& argv : calls) n += argv[0] == tool ? 1 : 0;
    return n;
  }

  std::string squeue = "{\"jobs\":[],\"errors\":[]}";
  std::string scontrol = "No jobs in the system\n";
  std::string sacct = Header();
  std::string sacct_ids = Header();
  std::string version = "slurm-wlm 22.05.8\n";
  std::string fields;              // of sacct --helpformat
  std::string recorded = "22.05";  // whose nodes and configuration
  std::string scontrol_json;
  std::map<std::string, std::string> refused;  // a word of the arguments to what stderr says
  bool fail_squeue = false;
  bool sacct_disabled = false;
  bool forgotten = false;
  std::vector<std::vector<std::string>> calls;

  static std::string Header() {
    const std::string text = Recorded("lab2/sacct-window.txt");
    return text.substr(0, text.find('\n') + 1);
  }
};

class ReconcilerTest : public ::testing::Test {
 protected:
  ReconcilerTest() { Restart(); }

  void Restart() {
    reconciler_.reset();
    tools_ = std::make_unique<SlurmTools>(SlurmToolsOptions{}, cluster_, clock_, random_);
    ReconcilerOptions options;
    options.state_file = dir_.path() + "/runs.json";
    reconciler_ = std::make_unique<Reconciler>(options, *tools_, clock_, fs_, index_,
                                               [this](const data::v1::Record& record) -> Status {
                                                 if (refuse_)
                                                   return Error(Code::kUnavailable, "full");
                                                 records_.push_back(record);
                                                 return {};
                                               });
    ASSERT_TRUE(reconciler_->Start().ok());
  }
  RoundReport Round() {
    auto report = reconciler_->Round();
    EXPECT_TRUE(report.ok()) << report.error().message();
    clock_.Advance(Millis(10'000));
    return report.value_or(RoundReport{});
  }
  /// As the data plane merges: sacct before scontrol before squeue; the latest of each.
  const common::v1::Execution* Latest(const std::string& native, int restarts,
                                      data::v1::FactOrigin origin) {
    const common::v1::Execution* found = nullptr;
    for (const auto& record : records_)
      if (record.has_facts() && record.facts().origin() == origin &&
          record.facts().key().native_id() == native &&
          record.facts().key().restart_count() == restarts)
        found = &record.facts().execution();
    return found;
  }
  const common::v1::Execution* Best(const std::string& native, int restarts = 0) {
    for (auto origin : {data::v1::FACT_ORIGIN_SACCT, data::v1::FACT_ORIGIN_SCONTROL,
                        data::v1::FACT_ORIGIN_SQUEUE})
      if (const common::v1::Execution* e = Latest(native, restarts, origin)) return e;
    return nullptr;
  }
  void UseLab2() {
    cluster_.squeue = Recorded("lab2/squeue-end.json");
    cluster_.scontrol = Recorded("lab2/scontrol-end.txt");
    cluster_.sacct = Recorded("lab2/sacct-window.txt");
    cluster_.sacct_ids = Recorded("lab2/sacct-ids.txt");
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(1796079900'000)};
  platform::FakeRandom random_{1};
  FakeCluster cluster_;
  KeyIndex index_;
  std::vector<data::v1::Record> records_;
  bool refuse_ = false;
  std::unique_ptr<SlurmTools> tools_;
  std::unique_ptr<Reconciler> reconciler_;
};

}  // namespace expanse::collect::slurm
