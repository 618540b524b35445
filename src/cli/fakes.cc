// SPDX-License-Identifier: Apache-2.0
#include "cli/fakes.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "rpc/connect_error.h"

namespace expanse::cli {
namespace {

/// Through the Router, so that authentication, parsing and error shapes are the real ones.
class RouterChannel final : public rpc::Channel {
 public:
  RouterChannel(const rpc::Router& router, bool up, std::string base_url)
      : router_(router), up_(up), base_url_(std::move(base_url)) {}

  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline /*deadline*/) override {
    if (!up_)
      return Error(Code::kUnavailable, "connecting to " + base_url_ + ": connection refused");
    platform::HttpRequest http;
    http.method = "POST";
    http.target = std::string(path);
    http.headers["content-type"] = "application/proto";
    if (!bearer.empty()) http.headers["authorization"] = "Bearer " + std::string(bearer);
    http.body = request.SerializeAsString();
    const auto answer = router_.Handle(http);
    if (answer.status == 200) {
      EXPANSE_CHECK(response->ParseFromString(answer.body));
      return {};
    }
    return rpc::ErrorFromResponse(answer.status, answer.body);
  }

 private:
  const rpc::Router& router_;
  bool up_;
  std::string base_url_;
};

bool IsUpdate() {
  const char* value = std::getenv("EXPANSE_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

Result<std::string> FakeTerminal::ReadLine(bool hidden) {
  if (hidden) ++hidden_reads;
  if (answers.empty()) return Error(Code::kAborted, "no answer: end of input");
  std::string answer = answers.front();
  answers.pop_front();
  transcript += hidden ? "\n" : answer + "\n";
  return answer;
}

FakePlanes::FakePlanes(const platform::Clock& clock) : clock_(clock), router_(*this) {
  identity.set_user_id("01939000-0000-7000-8000-0000000000a1");
  identity.set_email("ada@example.org");
  identity.set_name("Ada Lovelace");
  identity.set_organisation_id("01939000-0000-7000-8000-0000000000b1");
  identity.set_organisation("Analytical Engines");
  identity.set_role("Owner");
  identity.add_teams("Physics");
  identity.add_teams("Chemistry");
  control::v1::Register(router_, static_cast<control::v1::AuthService&>(*this));
  control::v1::Register(router_, static_cast<control::v1::ComputeService&>(*this));
  data::v1::Register(router_, static_cast<data::v1::ExecutionService&>(*this));
  data::v1::Register(router_, static_cast<data::v1::MetricsService&>(*this));
  intelligence::v1::Register(router_, static_cast<intelligence::v1::AnalyseService&>(*this));
  intelligence::v1::Register(router_, static_cast<intelligence::v1::DiagnoseService&>(*this));
}

std::unique_ptr<rpc::Channel> FakePlanes::Open(const std::string& base_url) {
  urls.push_back(base_url);
  const bool known =
      base_url == kControlUrl || base_url == kDataUrl || base_url == kIntelligenceUrl;
  return std::make_unique<RouterChannel>(router_, known && !down, base_url);
}

Result<rpc::Caller> FakePlanes::Authenticate(std::string_view bearer,
                                             std::string_view /*permission*/) {
  if (!valid_tokens.contains(std::string(bearer)))
    return Error(Code::kUnauthenticated, "the session token is not valid");
  rpc::Caller caller;
  caller.kind = rpc::CallerKind::kUser;
  caller.permissions = {"computes.register", "executions.read"};
  return caller;
}

Result<control::v1::MintSessionResponse> FakePlanes::MintSession(
    const Ctx&, const control::v1::MintSessionRequest& request) {
  mints.push_back(request);
  if (request.api_key() != kApiKey) return Error(Code::kUnauthenticated, "no such key");
  control::v1::MintSessionResponse response;
  response.set_access_token("token-" + std::to_string(mints.size()));
  valid_tokens.insert(response.access_token());
  response.set_expires_at_ms(ToUnixMillis(clock_.Now() + token_life));
  if (!request.organisation_id().empty()) {
    identity.set_organisation_id(request.organisation_id());
    identity.set_organisation("Difference Engines");
  }
  *response.mutable_identity() = identity;
  response.mutable_endpoints()->set_control_plane_url(kControlUrl);
  response.mutable_endpoints()->set_data_plane_url(kDataUrl);
  response.mutable_endpoints()->set_intelligence_url(kIntelligenceUrl);
  response.mutable_endpoints()->set_console_url("https://console.test");
  return response;
}

Result<control::v1::WhoAmIResponse> FakePlanes::WhoAmI(const Ctx&,
                                                       const control::v1::WhoAmIRequest&) {
  control::v1::WhoAmIResponse response;
  *response.mutable_identity() = identity;
  response.mutable_endpoints()->set_data_plane_url(kDataUrl);
  return response;
}

Result<control::v1::GetKeySetResponse> FakePlanes::GetKeySet(const Ctx&,
                                                             const control::v1::GetKeySetRequest&) {
  return control::v1::GetKeySetResponse();
}

Result<control::v1::RegisterComputeResponse> FakePlanes::RegisterCompute(
    const Ctx&, const control::v1::RegisterComputeRequest& request) {
  registered = request;
  control::v1::RegisterComputeResponse response;
  auto* compute = response.mutable_compute();
  compute->set_compute_id("01939000-0000-7000-8000-0000000000c1");
  compute->set_name(request.name());
  compute->set_type(request.type());
  compute->set_state(control::v1::COMPUTE_STATE_PENDING);
  compute->set_team_id(request.team_id());
  response.set_install_token("exp_install_0123456789012345678901234567890123456789012");
  response.set_expires_at_ms(ToUnixMillis(clock_.Now()) + 3'600'000);
  response.mutable_endpoints()->set_control_plane_url(kControlUrl);
  response.mutable_endpoints()->set_data_plane_url(kDataUrl);
  return response;
}

Result<control::v1::ListComputesResponse> FakePlanes::ListComputes(
    const Ctx&, const control::v1::ListComputesRequest&) {
  control::v1::ListComputesResponse response;
  for (const auto& compute : computes) *response.add_computes() = compute;
  return response;
}

Result<control::v1::GetComputeResponse> FakePlanes::GetCompute(
    const Ctx&, const control::v1::GetComputeRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<control::v1::RevokeComputeResponse> FakePlanes::RevokeCompute(
    const Ctx&, const control::v1::RevokeComputeRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::ListExecutionsResponse> FakePlanes::ListExecutions(
    const Ctx&, const data::v1::ListExecutionsRequest& request) {
  listed = request;
  data::v1::ListExecutionsResponse response;
  size_t at = static_cast<size_t>(ParseInt64(request.page_token()).value_or(0));
  const int limit = std::min(request.limit() == 0 ? 25 : request.limit(), page_size);
  while (at < executions.size() && response.executions_size() < limit)
    *response.add_executions() = executions[at++];
  if (at < executions.size()) response.set_next_page_token(std::to_string(at));
  return response;
}

Result<data::v1::GetExecutionResponse> FakePlanes::GetExecution(
    const Ctx&, const data::v1::GetExecutionRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::ResolveExecutionResponse> FakePlanes::ResolveExecution(
    const Ctx&, const data::v1::ResolveExecutionRequest& request) {
  resolved = request;
  data::v1::ResolveExecutionResponse response;
  for (const auto& execution : executions)
    if (execution.native_id() == request.native_id() &&
        execution.source_type() == request.source_type())
      *response.add_executions() = execution;
  return response;
}

Result<data::v1::ListRunsOfSourceResponse> FakePlanes::ListRunsOfSource(
    const Ctx&, const data::v1::ListRunsOfSourceRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::GetLogTailsResponse> FakePlanes::GetLogTails(const Ctx&,
                                                              const data::v1::GetLogTailsRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::GetBundleResponse> FakePlanes::GetBundle(const Ctx&,
                                                          const data::v1::GetBundleRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::GetComputeFactsResponse> FakePlanes::GetComputeFacts(
    const Ctx&, const data::v1::GetComputeFactsRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::SetUserMappingResponse> FakePlanes::SetUserMapping(
    const Ctx&, const data::v1::SetUserMappingRequest&) {
  return Error(Code::kUnimplemented, "not used");
}

Result<data::v1::QueryMetricsResponse> FakePlanes::QueryMetrics(
    const Ctx&, const data::v1::QueryMetricsRequest& request) {
  queried = request;
  return metrics;
}

Result<data::v1::ListMetricsResponse> FakePlanes::ListMetrics(
    const Ctx&, const data::v1::ListMetricsRequest& request) {
  listed_metrics = request;
  data::v1::ListMetricsResponse response;
  for (const auto& name : metric_names) response.add_metrics(name);
  return response;
}

Result<intelligence::v1::AnalyseRun> FakePlanes::Analyse(
    const Ctx&, const intelligence::v1::AnalyseRequest& request) {
  analysed = request;
  return analyse_run;
}

Result<intelligence::v1::AnalyseRun> FakePlanes::GetAnalyseRun(
    const Ctx&, const intelligence::v1::GetAnalyseRunRequest&) {
  if (later_analyse_runs.empty()) return analyse_run;
  auto run = later_analyse_runs.front();
  later_analyse_runs.pop_front();
  return run;
}

Result<intelligence::v1::ArtifactContent> FakePlanes::GetArtifact(
    const Ctx&, const intelligence::v1::GetArtifactRequest& request) {
  if (request.artifact_id() != artifact.artifact_id())
    return Error(Code::kNotFound, "no artefact " + request.artifact_id());
  return artifact;
}

Result<intelligence::v1::DiagnoseRun> FakePlanes::Diagnose(
    const Ctx&, const intelligence::v1::DiagnoseRequest& request) {
  diagnosed = request;
  return diagnose_run;
}

Result<intelligence::v1::DiagnoseRun> FakePlanes::GetDiagnoseRun(
    const Ctx&, const intelligence::v1::GetDiagnoseRunRequest&) {
  return diagnose_run;
}

FakeMachine::FakeMachine()
    : fs(root.path()),
      clock(ParseRfc3339("2026-11-30T21:00:00Z").value()),
      planes(clock),
      context{.terminal = terminal,
              .fs = fs,
              .clock = clock,
              .environment = {{"HOME", "/home/ada"}, {"TERM", "xterm"}},
              .working_directory = "/home/ada/work",
              .user_name = "ada",
              .program_directory = "/usr/local/bin",
              .open_channel = [this](const std::string& url) { return planes.Open(url); },
              .sleep =
                  [this](Millis time) {
                    ++sleeps;
                    clock.Advance(time);
                  },
              .exec =
                  [this](const std::string& program, const std::vector<std::string>& words) {
                    exec_words = words;
                    exec_words.insert(exec_words.begin(), program);
                    return Error(Code::kInternal, "the fake does not become another program");
                  },
              .processes = &processes,
              .install = [this](const install::InstallOptions& options,
                                install::Machine& target) { return Install(options, target); },
              .uninstall = [this](const install::UninstallOptions& options,
                                  install::Machine&) -> Status {
                uninstalled = options;
                return {};
              }} {
  EXPECT_TRUE(fs.MakeDirs("/home/ada/work").ok());
}

Result<install::InstallReport> FakeMachine::Install(const install::InstallOptions& options,
                                                    install::Machine& target) {
  installed = options;
  if (options.role == install::Role::kController && !options.reinstall) {
    EXPANSE_TRY(install_token, target.install_token());
  }
  target.print("plan: nothing, this is a fake");
  install::InstallReport report;
  report.compute_id = "01939000-0000-7000-8000-0000000000c1";
  report.compute_name = "hpc-01";
  report.organisation = "Analytical Engines";
  report.config_path = "/var/lib/slurm/.expanse/config.json";
  return report;
}

int FakeMachine::Run(std::vector<std::string> words) { return cli::Run(context, words); }

void FakeMachine::SignIn() {
  ASSERT_EQ(
      Run({"login", "--api-key", FakePlanes::kApiKey, "--control-plane", FakePlanes::kControlUrl}),
      kExitOk)
      << terminal.err;
  terminal.out.clear();
  terminal.err.clear();
  terminal.transcript.clear();
  planes.urls.clear();
}

void FakeMachine::WriteFile(const std::string& name, std::string_view bytes) {
  const auto status =
      fs.WriteAtomic(platform::JoinPath(context.working_directory, name), bytes, 0644);
  ASSERT_TRUE(status.ok()) << status.error().message();
}

std::string FakeMachine::ReadFile(const std::string& name) const {
  return fs.Read(platform::JoinPath(context.working_directory, name)).value_or("(missing)");
}

std::string TestData(const std::string& name) {
  const std::string path = std::string(EXPANSE_TESTDATA) + "/" + name;
  const std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void ExpectGolden(const std::string& name, const std::string& got) {
  if (IsUpdate()) {
    std::ofstream(std::string(EXPANSE_TESTDATA) + "/" + name, std::ios::binary) << got;
    return;
  }
  EXPECT_EQ(got, TestData(name)) << "EXPANSE_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace expanse::cli
