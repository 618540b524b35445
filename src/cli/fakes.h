// SPDX-License-Identifier: Apache-2.0
// Fakes for the tests of this folder: a terminal that records, planes that answer from canned
// messages through a real Router, and a machine made of both.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "expanse/control/v1/control.rpc.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/intelligence/v1/intelligence.rpc.h"
#include "platform/clock/clock.h"
#include "platform/fs/fs.h"
#include "rpc/router.h"

namespace expanse::cli {

class FakeTerminal final : public Terminal {
 public:
  void Out(std::string_view bytes) override {
    out += bytes;
    transcript += bytes;
  }
  void Err(std::string_view bytes) override {
    err += bytes;
    transcript += bytes;
  }
  Result<std::string> ReadLine(bool hidden) override;
  bool in_is_terminal() const override { return in_tty; }
  bool out_is_terminal() const override { return out_tty; }
  bool err_is_terminal() const override { return err_tty; }
  Status Flush() override { return flush_status; }

  void MakeInteractive() { in_tty = out_tty = err_tty = true; }

  std::string out;
  std::string err;
  std::string transcript;  // both, in the order of writing
  std::deque<std::string> answers;
  int hidden_reads = 0;
  bool in_tty = false;
  bool out_tty = false;
  bool err_tty = false;
  Status flush_status;
};

/// All three planes. Requests are kept; answers are public members that a test sets.
class FakePlanes final : public rpc::Authenticator,
                         public control::v1::AuthService,
                         public control::v1::ComputeService,
                         public data::v1::ExecutionService,
                         public data::v1::MetricsService,
                         public intelligence::v1::AnalyseService,
                         public intelligence::v1::DiagnoseService {
 public:
  static constexpr char kControlUrl[] = "http://control.test:7701";
  static constexpr char kDataUrl[] = "http://data.test:7702";
  static constexpr char kIntelligenceUrl[] = "http://intelligence.test:7703";
  static constexpr char kApiKey[] = "exp_user_0123456789012345678901234567890123456789012";

  explicit FakePlanes(const platform::Clock& clock);

  /// kUnavailable for a URL that is none of the three, or while `down`.
  std::unique_ptr<rpc::Channel> Open(const std::string& base_url);

  // What it answers.
  control::v1::Identity identity;
  Millis token_life{900'000};
  std::vector<control::v1::Compute> computes;
  std::vector<common::v1::Execution> executions;
  data::v1::QueryMetricsResponse metrics;
  std::vector<std::string> metric_names;
  intelligence::v1::AnalyseRun analyse_run;
  std::deque<intelligence::v1::AnalyseRun> later_analyse_runs;  // of GetAnalyseRun
  intelligence::v1::ArtifactContent artifact;
  intelligence::v1::DiagnoseRun diagnose_run;
  bool down = false;
  int page_size = 1000;

  // What it was asked.
  std::vector<control::v1::MintSessionRequest> mints;
  std::vector<std::string> urls;
  control::v1::RegisterComputeRequest registered;
  data::v1::ListExecutionsRequest listed;
  data::v1::ResolveExecutionRequest resolved;
  data::v1::QueryMetricsRequest queried;
  data::v1::ListMetricsRequest listed_metrics;
  intelligence::v1::AnalyseRequest analysed;
  intelligence::v1::DiagnoseRequest diagnosed;
  std::set<std::string> valid_tokens;

  Result<rpc::Caller> Authenticate(std::string_view bearer, std::string_view permission) override;

  template <typename T>
  using R = Result<T>;
  using Ctx = rpc::CallContext;
  R<control::v1::MintSessionResponse> MintSession(
      const Ctx&, const control::v1::MintSessionRequest& request) override;
  R<control::v1::WhoAmIResponse> WhoAmI(const Ctx&, const control::v1::WhoAmIRequest&) override;
  R<control::v1::GetKeySetResponse> GetKeySet(const Ctx&,
                                              const control::v1::GetKeySetRequest&) override;
  R<control::v1::RegisterComputeResponse> RegisterCompute(
      const Ctx&, const control::v1::RegisterComputeRequest& request) override;
  R<control::v1::ListComputesResponse> ListComputes(
      const Ctx&, const control::v1::ListComputesRequest&) override;
  R<control::v1::GetComputeResponse> GetCompute(const Ctx&,
                                                const control::v1::GetComputeRequest&) override;
  R<control::v1::RevokeComputeResponse> RevokeCompute(
      const Ctx&, const control::v1::RevokeComputeRequest&) override;
  R<data::v1::ListExecutionsResponse> ListExecutions(
      const Ctx&, const data::v1::ListExecutionsRequest& request) override;
  R<data::v1::GetExecutionResponse> GetExecution(const Ctx&,
                                                 const data::v1::GetExecutionRequest&) override;
  R<data::v1::ResolveExecutionResponse> ResolveExecution(
      const Ctx&, const data::v1::ResolveExecutionRequest& request) override;
  R<data::v1::ListRunsOfSourceResponse> ListRunsOfSource(
      const Ctx&, const data::v1::ListRunsOfSourceRequest&) override;
  R<data::v1::GetLogTailsResponse> GetLogTails(const Ctx&,
                                               const data::v1::GetLogTailsRequest&) override;
  R<data::v1::GetBundleResponse> GetBundle(const Ctx&, const data::v1::GetBundleRequest&) override;
  R<data::v1::GetComputeFactsResponse> GetComputeFacts(
      const Ctx&, const data::v1::GetComputeFactsRequest&) override;
  R<data::v1::SetUserMappingResponse> SetUserMapping(
      const Ctx&, const data::v1::SetUserMappingRequest&) override;
  R<data::v1::QueryMetricsResponse> QueryMetrics(
      const Ctx&, const data::v1::QueryMetricsRequest& request) override;
  R<data::v1::ListMetricsResponse> ListMetrics(
      const Ctx&, const data::v1::ListMetricsRequest& request) override;
  R<intelligence::v1::AnalyseRun> Analyse(const Ctx&,
                                          const intelligence::v1::AnalyseRequest& request) override;
  R<intelligence::v1::AnalyseRun> GetAnalyseRun(
      const Ctx&, const intelligence::v1::GetAnalyseRunRequest&) override;
  R<intelligence::v1::ArtifactContent> GetArtifact(
      const Ctx&, const intelligence::v1::GetArtifactRequest&) override;
  R<intelligence::v1::DiagnoseRun> Diagnose(
      const Ctx&, const intelligence::v1::DiagnoseRequest& request) override;
  R<intelligence::v1::DiagnoseRun> GetDiagnoseRun(
      const Ctx&, const intelligence::v1::GetDiagnoseRunRequest&) override;

 private:
  const platform::Clock& clock_;
  rpc::Router router_;
};

/// A machine with a home and a working directory of its own, in front of FakePlanes.
class FakeMachine {
 public:
  FakeMachine();

  /// Runs one command line; returns its exit code.
  int Run(std::vector<std::string> words);
  /// Signs in, then forgets what that printed.
  void SignIn();
  void WriteFile(const std::string& name, std::string_view bytes);
  std::string ReadFile(const std::string& name) const;
  std::string credentials_path() const { return "/home/ada/.expanse/credentials.json"; }

  platform::TempDir root;
  platform::Fs fs;
  platform::FakeClock clock;
  FakeTerminal terminal;
  FakePlanes planes;
  std::vector<std::string> exec_words;
  platform::RecordedProcessRunner processes;
  install::InstallOptions installed;
  install::UninstallOptions uninstalled;
  Secret install_token;  // that the fake installer was given
  int sleeps = 0;
  Context context;

 private:
  Result<install::InstallReport> Install(const install::InstallOptions& options,
                                         install::Machine& target);
};

/// The bytes of src/cli/testdata/<name>.
std::string TestData(const std::string& name);
/// Compares with src/cli/testdata/<name>, or writes it when EXPANSE_UPDATE_GOLDEN=1.
void ExpectGolden(const std::string& name, const std::string& got);

}  // namespace expanse::cli
