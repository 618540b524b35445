// SPDX-License-Identifier: Apache-2.0
// kill -9 of a data plane under load: what was acknowledged is there, once. The test program runs
// itself as the server. EXPANSE_CRASH_ROUNDS: how often it is killed (8).
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data_plane/data_plane.h"
#include "data_plane/fact_builder.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"
#include "rpc/channel.h"

namespace expanse::data_plane {
namespace {

constexpr char kOrg[] = "01940000-0000-7000-8000-0000000000a0";
constexpr char kCompute[] = "01940000-0000-7000-8000-0000000000c1";
constexpr int64_t kT = 1'790'000'000'000;
constexpr int kRecordsInBatch = 20;
constexpr int kSources = 3;

// Who is calling has no part in this test.
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

int Serve(const std::string& dir) {
  platform::SystemClock clock;
  platform::SystemRandom random;
  DataPlane::Options options;
  options.data_dir = dir;
  options.control_plane_url = "http://127.0.0.1:9";
  options.housekeeping_period = Millis(0);
  options.key_refresh_period = Millis(0);
  options.series_retention = Millis(0);
  auto plane = DataPlane::Open(options, clock, random);
  if (!plane.ok()) {
    std::fprintf(stderr, "open: %s\n", plane.error().message().c_str());
    return 1;
  }
  AnyCaller callers;
  rpc::Router router(callers);
  (*plane)->Register(router);
  auto server = platform::HttpServer::Start(
      {}, [&](const platform::HttpRequest& request) { return router.Handle(request); });
  if (!server.ok()) return 1;
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  for (;;) pause();
}

class Server {
 public:
  explicit Server(const std::string& dir) {
    int out[2];
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      execl("/proc/self/exe", "crash_test", "--serve", dir.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    char byte = 0;
    while (read(out[0], &byte, 1) == 1 && byte != '\n') url_ += byte;
    close(out[0]);
  }
  ~Server() { Kill(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  const std::string& url() const { return url_; }

 private:
  pid_t pid_ = 0;
  std::string url_;
};

// One spool: sends in order, and again what was not acknowledged.
struct Spool {
  int number = 0;
  int64_t next = 1;

  static std::string JobOf(int source, int64_t sequence) {
    return std::to_string(source * 1'000'000 + sequence);
  }
  data::v1::PushRequest Batch() const {
    data::v1::PushRequest request;
    request.set_source_id("01940000-0000-7000-8000-00000000000" + std::to_string(number));
    request.set_first_sequence(static_cast<uint64_t>(next));
    for (int i = 0; i < kRecordsInBatch; ++i) {
      const int64_t sequence = next + i;
      const int64_t at = kT + sequence * 1000;
      if (sequence % 2 == 0)
        *request.add_records() =
            Facts(data::v1::FACT_ORIGIN_SACCT, Job(JobOf(number, sequence), kT, 0), at,
                  [=](common::v1::Execution& e) { e.set_start_time_ms(kT); });
      else
        *request.add_records() = Samples(Job(JobOf(number, 0), kT, 0), "n1", "0", "cpu", at, 100,
                                         {1, 2, 3, 4, static_cast<double>(sequence)});
    }
    return request;
  }
};

void SendUntil(const std::string& url, Spool* spool, const std::atomic<bool>& stop) {
  auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, url);
  const data::v1::IngestServiceClient client(channel);
  while (!stop) {
    const auto answer = client.Push("x", spool->Batch());
    if (!answer.ok()) continue;  // killed: the same batch again
    EXPECT_EQ(answer->missing_before(), 0u);
    EXPECT_EQ(answer->rejected_size(), 0);
    spool->next = static_cast<int64_t>(answer->acknowledged_through()) + 1;
  }
}

void CheckSource(const std::string& url, const Spool& spool) {
  auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, url);
  const data::v1::ExecutionServiceClient executions(channel);
  for (int64_t sequence = 2; sequence < spool.next; sequence += 2) {
    data::v1::ResolveExecutionRequest request;
    request.set_native_id(Spool::JobOf(spool.number, sequence));
    const auto answer = executions.ResolveExecution("x", request);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    ASSERT_EQ(answer->executions_size(), 1) << "sequence " << sequence;
  }
  data::v1::ResolveExecutionRequest sampled;
  sampled.set_native_id(Spool::JobOf(spool.number, 0));
  const auto run = executions.ResolveExecution("x", sampled);
  ASSERT_TRUE(run.ok());
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
    if (sequence >= spool.next) break;  // stored, the answer was lost on the way
    ASSERT_EQ(point.timestamp_ms(), kT + sequence * 1000);
    ASSERT_EQ(point.sample_count(), 5);
    sequence += 2;
  }
  EXPECT_GE(sequence, spool.next);
}

TEST(Crash, WhatWasAcknowledgedBeforeAKillIsThereOnce) {
  const char* text = std::getenv("EXPANSE_CRASH_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 8;
  const platform::TempDir dir;
  std::vector<Spool> spools(kSources);
  for (int i = 0; i < kSources; ++i) spools[static_cast<size_t>(i)].number = i;
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    Server server(dir.path());
    ASSERT_FALSE(server.url().empty()) << "round " << round;
    std::atomic<bool> stop{false};
    std::vector<std::thread> senders;
    for (Spool& spool : spools)
      senders.emplace_back([&] { SendUntil(server.url(), &spool, stop); });
    // Real time on purpose: the kill has to fall into real system calls.
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 300));
    server.Kill();
    stop = true;
    for (std::thread& sender : senders) sender.join();
  }
  Server server(dir.path());
  int64_t acknowledged = 0;
  for (const Spool& spool : spools) {
    CheckSource(server.url(), spool);
    acknowledged += spool.next - 1;
  }
  EXPECT_GT(acknowledged, 0);
  RecordProperty("acknowledged", static_cast<int>(acknowledged));
  std::printf("%d kills, %ld records acknowledged\n", rounds, static_cast<long>(acknowledged));
}

}  // namespace
}  // namespace expanse::data_plane

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) return expanse::data_plane::Serve(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
