// SPDX-License-Identifier: Apache-2.0
#include "plane_load.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "data_plane/data_plane.h"
#include "data_plane/fact_builder.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "rpc/channel.h"

namespace expanse::faults {
namespace {

using data_plane::Facts;
using data_plane::Job;
using data_plane::Samples;

constexpr char kOrg[] = "01940000-0000-7000-8000-0000000000a0";
constexpr char kCompute[] = "01940000-0000-7000-8000-0000000000c1";
constexpr int64_t kT = 1'790'000'000'000;

// Who is calling has no part in these tests.
class AnyCaller final : public rpc::Authenticator {
 public:
  Result<rpc::Caller> Authenticate(std::string_view, std::string_view permission) override {
    rpc::Caller caller;
    caller.org = OrgId(kOrg);
    caller.compute = ComputeId(kCompute);
    caller.kind = permission == "compute" ? rpc::CallerKind::kCompute : rpc::CallerKind::kUser;
    caller.permissions = {"executions.read", "executions.read_all"};
    return caller;
  }
};

}  // namespace

int Rounds(int quick) {
  const char* text = std::getenv("EXPANSE_FAULT_ROUNDS");
  return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : quick;
}

int ServeDataPlane(const std::string& directory, const std::string& port) {
  signal(SIGXFSZ, SIG_IGN);  // a file size limit answers EFBIG
  platform::SystemClock clock;
  platform::SystemRandom random;
  data_plane::DataPlane::Options options;
  options.data_dir = directory;
  options.control_plane_url = "http://127.0.0.1:9";
  options.housekeeping_period = Millis(0);
  options.key_refresh_period = Millis(0);
  options.series_retention = Millis(0);
  auto plane = data_plane::DataPlane::Open(options, clock, random);
  if (!plane.ok()) {
    std::fprintf(stderr, "open: %s\n", plane.error().message().c_str());
    return 1;
  }
  AnyCaller callers;
  rpc::Router router(callers);
  (*plane)->Register(router);
  platform::HttpServerOptions http;
  http.port = static_cast<uint16_t>(ParseInt64(port).value_or(0));
  auto server = platform::HttpServer::Start(
      http, [&](const platform::HttpRequest& request) { return router.Handle(request); });
  if (!server.ok()) return 1;
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  for (;;) pause();
}

Server::Server(const std::string& directory, uint64_t file_size_limit) {
  int out[2];
  EXPECT_EQ(pipe(out), 0);
  pid_ = fork();
  if (pid_ == 0) {
    if (file_size_limit > 0) {
      const rlimit limit{file_size_limit, file_size_limit};
      signal(SIGXFSZ, SIG_IGN);
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
    }
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    execl("/proc/self/exe", "faults_test", "--serve", directory.c_str(), "0", nullptr);
    _exit(127);
  }
  close(out[1]);
  char byte = 0;
  while (read(out[0], &byte, 1) == 1 && byte != '\n') url_ += byte;
  close(out[0]);
}

void Server::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

std::string Sender::JobOf(int64_t sequence) const {
  return std::to_string(number_ * 10'000'000 + sequence);
}

std::string Sender::TextOf(int64_t sequence) const {
  return "line of record " + std::to_string(sequence) + " of " + std::to_string(number_) + "\n";
}

data::v1::PushRequest Sender::Batch() const {
  data::v1::PushRequest request;
  request.set_source_id("01940000-0000-7000-8000-00000000000" + std::to_string(number_));
  request.set_first_sequence(static_cast<uint64_t>(next_));
  for (int64_t sequence = next_; sequence < next_ + kRecordsInBatch; ++sequence) {
    const int64_t at = kT + sequence * 1000;
    if (sequence % 2 == 1) {
      *request.add_records() = Samples(Job(JobOf(0), kT, 0), "n1", "0", "cpu", at, 100,
                                       {1, 2, 3, 4, static_cast<double>(sequence)});
    } else if (sequence % 10 == 0) {
      data::v1::Record record;
      record.set_observed_time_ms(at);
      *record.mutable_log_tail()->mutable_key() = Job(JobOf(sequence), kT, 0);
      record.mutable_log_tail()->set_stream("stdout");
      record.mutable_log_tail()->set_path("/work/out");
      record.mutable_log_tail()->set_content(TextOf(sequence));
      *request.add_records() = record;
    } else {
      *request.add_records() = Facts(data::v1::FACT_ORIGIN_SACCT, Job(JobOf(sequence), kT, 0), at,
                                     [](common::v1::Execution& e) { e.set_start_time_ms(kT); });
    }
  }
  return request;
}

bool Sender::SendOnce(const std::string& url) {
  auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, url);
  const auto answer = data::v1::IngestServiceClient(channel).Push("x", Batch());
  if (!answer.ok()) {
    last_error_ = answer.error().message();
    return false;
  }
  EXPECT_EQ(answer->missing_before(), 0u);
  EXPECT_EQ(answer->rejected_size(), 0);
  next_ = static_cast<int64_t>(answer->acknowledged_through()) + 1;
  return true;
}

void Sender::Check(const std::string& url, int64_t through) const {
  const int64_t next = through < 0 ? next_ : through + 1;
  auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, url);
  const data::v1::ExecutionServiceClient executions(channel);
  for (int64_t sequence = 2; sequence < next; sequence += 2) {
    data::v1::ResolveExecutionRequest request;
    request.set_native_id(JobOf(sequence));
    const auto answer = executions.ResolveExecution("x", request);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    ASSERT_EQ(answer->executions_size(), 1) << "record " << sequence << " of " << number_;
    if (sequence % 10 != 0) continue;
    data::v1::GetLogTailsRequest tails;
    tails.set_execution_id(answer->executions(0).execution_id());
    const auto found = executions.GetLogTails("x", tails);
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_EQ(found->tails_size(), 1);
    ASSERT_EQ(found->tails(0).content(), TextOf(sequence));
  }
  if (next > 1) CheckSamples(url, next);
}

void Sender::CheckSamples(const std::string& url, int64_t next) const {
  auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, url);
  const data::v1::ExecutionServiceClient executions(channel);
  data::v1::ResolveExecutionRequest sampled;
  sampled.set_native_id(JobOf(0));
  const auto run = executions.ResolveExecution("x", sampled);
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_EQ(run->executions_size(), 1);
  data::v1::QueryMetricsRequest query;
  query.set_execution_id(run->executions(0).execution_id());
  query.add_metrics("cpu");
  query.set_interval_ms(1000);
  query.set_max_points(1'000'000);
  const auto metrics = data::v1::MetricsServiceClient(channel).QueryMetrics("x", query);
  ASSERT_TRUE(metrics.ok()) << metrics.error().message();
  ASSERT_EQ(metrics->series_size(), 1);
  ASSERT_TRUE(metrics->unknown().empty()) << metrics->unknown().begin()->second;
  // One bucket for each odd sequence, five samples in each: none lost, none doubled.
  int64_t sequence = 1;
  for (const auto& point : metrics->series(0).points()) {
    if (sequence >= next) break;  // stored, but the answer was lost on the way
    ASSERT_EQ(point.timestamp_ms(), kT + sequence * 1000);
    ASSERT_EQ(point.sample_count(), 5);
    sequence += 2;
  }
  EXPECT_GE(sequence, next);
}

Load::Load(const std::string& url, std::vector<Sender>* senders) {
  for (Sender& sender : *senders)
    threads_.emplace_back([this, url, &sender] {
      while (!stop_)
        if (sender.SendOnce(url)) ++pushes_;  // killed: the same batch again
    });
}

void Load::WaitFor(int pushes) const {
  for (int i = 0; i < 20'000 && pushes_ < pushes; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Load::Stop() {
  stop_ = true;
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace expanse::faults
