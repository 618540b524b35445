// SPDX-License-Identifier: Apache-2.0
// bench_executions_list [ROWS [DATABASE [ORGANISATION]]]: the time of one page of `expanse
// executions` for each filter, on a data plane database with ROWS executions (default 1,000,000) of
// 200 users on 4 computes over a year. A DATABASE that exists is used as it is; without one a
// temporary one is filled. With an organisation's id the rows are that organisation's, for a data
// plane to be started on (bench/executions_cli.sh), and nothing is timed. Prints
// name,metric,value,unit.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <time.h>

#include "base/log.h"
#include "base/strings.h"
#include "data_plane/executions/execution_service.h"
#include "expanse/common/v1/execution.pb.h"
#include "platform/crypto/crypto.h"
#include "platform/fs/fs.h"
#include "storage/relational/migrate.h"

namespace expanse {
namespace {

using common::v1::Execution;

OrgId g_org("0190a000-0000-7000-8000-000000000001");  // set once, before the rest
constexpr int64_t kYearMs = int64_t{365} * 86'400'000;
constexpr int64_t kStartMs = 1'764'000'000'000;
constexpr int kUsers = 200;
constexpr int kBatch = 20'000;

std::string ComputeOf(int n) { return "0190a000-0000-7000-8000-0000000000c" + std::to_string(n); }

// Heavy and light users as sites have them: the first has some 10 % of all runs.
int PickUser(std::mt19937_64& random) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random);
  return std::min(kUsers - 1, static_cast<int>(static_cast<double>(kUsers) * u * u * u));
}

Execution MakeExecution(int64_t n, int64_t rows, std::mt19937_64& random) {
  Execution e;
  const int64_t at = kStartMs + n * (kYearMs / rows);
  e.set_execution_id(FormatUuidV7(at, [&] {
    std::array<uint8_t, 10> bytes{};
    for (auto& b : bytes) b = static_cast<uint8_t>(random());
    return bytes;
  }()));
  e.set_compute_id(ComputeOf(static_cast<int>(random() % 10 < 7 ? 0 : 1 + random() % 3)));
  e.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  e.set_native_id(std::to_string(1000 + n % 600'000));
  const int user = PickUser(random);
  e.set_user("user" + std::to_string(user));
  e.set_account("project" + std::to_string(user / 8));
  e.set_partition("batch");
  e.set_job_name("train-" + std::to_string(random() % 40));
  e.set_submit_time_ms(at);
  const auto dice = random() % 1000;
  const bool is_live = n > rows - 200;
  e.set_status(is_live      ? common::v1::EXECUTION_STATUS_RUNNING
               : dice < 850 ? common::v1::EXECUTION_STATUS_SUCCEEDED
               : dice < 950 ? common::v1::EXECUTION_STATUS_FAILED
                            : common::v1::EXECUTION_STATUS_CANCELLED);
  e.set_outcome(is_live      ? common::v1::EXECUTION_OUTCOME_UNSPECIFIED
                : dice < 850 ? common::v1::EXECUTION_OUTCOME_SUCCESS
                : dice < 930 ? common::v1::EXECUTION_OUTCOME_FAILURE
                : dice < 940 ? common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY
                : dice < 950 ? common::v1::EXECUTION_OUTCOME_TIMEOUT
                             : common::v1::EXECUTION_OUTCOME_CANCELLED);
  e.set_start_time_ms(at + 60'000);
  e.set_end_time_ms(at + 60'000 + static_cast<int64_t>(random() % 7'200'000));
  e.mutable_requested()->set_cpu_cores(8);
  e.mutable_requested()->set_memory_bytes(int64_t{16} << 30);
  e.mutable_requested()->set_walltime_seconds(7200);
  e.mutable_memory_need()->set_value(static_cast<int64_t>(random() % (int64_t{16} << 30)));
  e.mutable_cpu_seconds()->set_value(static_cast<double>(random() % 100'000) / 10);
  e.add_nodes("node" + std::to_string(random() % 500));
  e.set_work_dir("/home/" + e.user() + "/projects/a-project-with-a-long-name/runs");
  e.set_command(e.work_dir() + "/submit.slurm");
  e.set_stdout_path(e.work_dir() + "/slurm-" + e.native_id() + ".out");
  e.set_submit_line("sbatch --mem=16G -c 8 submit.slurm");
  e.set_script_hash(platform::Sha256Hex(e.user() + e.job_name()));
  e.set_tree_hash(platform::Sha256Hex(e.user()));
  e.set_args_hash(platform::Sha256Hex(std::to_string(random() % 50)));
  (*e.mutable_unknown())["gpu_model"] = "the job had no GPU";
  return e;
}

Status Insert(storage::Transaction& transaction, const Execution& e) {
  EXPANSE_CHECK_OK(transaction.Execute(
      "INSERT INTO executions (org_id, execution_id, compute_id, source_type, native_id, "
      "display_id, sort_ms, submit_ms, start_ms, end_ms, status, outcome, user_name, job_name, "
      "script_hash, tree_hash, args_hash, merged) VALUES ($1, $2, $3, $4, $5, $5, $6, $6, $7, $8, "
      "$9, $10, $11, $12, $13, $14, $15, $16)",
      {g_org, e.execution_id(), e.compute_id(), static_cast<int64_t>(e.source_type()),
       e.native_id(), e.submit_time_ms(), e.start_time_ms(), e.end_time_ms(),
       static_cast<int64_t>(e.status()), static_cast<int64_t>(e.outcome()), e.user(), e.job_name(),
       e.script_hash(), e.tree_hash(), e.args_hash(), storage::Blob{e.SerializeAsString()}}));
  return {};
}

// A person with two common names and one with two that never ran anything.
Status MapUsers(storage::Database& database) {
  for (const auto& [email, user] :
       {std::pair("a@example.org", "user3"), std::pair("a@example.org", "user150"),
        std::pair("b@example.org", "ghost1"), std::pair("b@example.org", "ghost2")})
    EXPANSE_CHECK_OK(database.Execute(
        "INSERT INTO user_mappings (org_id, email, compute_id, scheduler_user) VALUES ($1, $2, '', "
        "$3) ON CONFLICT (org_id, email, compute_id, scheduler_user) DO NOTHING",
        {g_org, email, user}));
  return {};
}

Status Fill(storage::Database& database, int64_t rows) {
  std::mt19937_64 random(1);
  for (int64_t n = 0; n < rows;) {
    EXPANSE_CHECK_OK(database.Write([&](storage::Transaction& transaction) -> Status {
      for (const int64_t end = std::min(rows, n + kBatch); n < end; ++n)
        EXPANSE_CHECK_OK(Insert(transaction, MakeExecution(n, rows, random)));
      return {};
    }));
  }
  return database.Write([](storage::Transaction& transaction) -> Status {
    for (int c = 0; c < 4; ++c)
      EXPANSE_CHECK_OK(transaction.Execute(
          "INSERT INTO computes (org_id, compute_id, name, type, team_id, updated_ms) VALUES "
          "($1, $2, $3, 1, $4, 0)",
          {g_org, ComputeOf(c), "compute" + std::to_string(c), c == 0 ? "team-a" : ""}));
    return {};
  });
}

rpc::CallContext Caller(bool sees_all) {
  rpc::CallContext context{{}, Deadline::In(Seconds(60)), ""};
  context.caller.kind = rpc::CallerKind::kUser;
  context.caller.org = g_org;
  context.caller.email = "a@example.org";
  if (sees_all) context.caller.permissions = {"executions.read_all"};
  return context;
}

double ThreadCpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

bool Measure(const std::string& name, const std::function<Result<size_t>()>& call) {
  std::vector<double> ms;
  std::vector<double> cpu_ms;  // of this thread: what a busy machine does not distort
  size_t found = 0;
  for (int i = 0; i < 21; ++i) {
    const double cpu_begin = ThreadCpuMs();
    const auto begin = std::chrono::steady_clock::now();
    const auto result = call();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    cpu_ms.push_back(ThreadCpuMs() - cpu_begin);
    if (!result.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), result.error().message().c_str());
      return false;
    }
    found = *result;
    ms.push_back(took.count());
  }
  const double first = ms.front();
  std::sort(ms.begin(), ms.end());
  std::sort(cpu_ms.begin(), cpu_ms.end());
  std::printf("%s,first,%.2f,ms\n%s,median,%.2f,ms\n%s,median_cpu,%.2f,ms\n%s,rows,%zu,count\n",
              name.c_str(), first, name.c_str(), ms[ms.size() / 2], name.c_str(),
              cpu_ms[cpu_ms.size() / 2], name.c_str(), found);
  std::fflush(stdout);
  return true;
}

bool MeasureLists(data_plane::ExecutionService& service) {
  struct Case {
    const char* name;
    bool sees_all;
    std::function<void(data::v1::ListExecutionsRequest&)> set;
  };
  using data::v1::ListExecutionsRequest;
  const Case cases[] = {
      {"newest", true, [](ListExecutionsRequest&) {}},
      {"newest_team_scoped", false, [](ListExecutionsRequest&) {}},
      {"limit_1000", true, [](auto& r) { r.set_limit(1000); }},
      {"status_failed", true, [](auto& r) { r.set_status(common::v1::EXECUTION_STATUS_FAILED); }},
      {"status_running", true, [](auto& r) { r.set_status(common::v1::EXECUTION_STATUS_RUNNING); }},
      {"status_queued_none", true,
       [](auto& r) { r.set_status(common::v1::EXECUTION_STATUS_QUEUED); }},
      {"outcome_oom", true,
       [](auto& r) { r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY); }},
      {"user_heavy", true, [](auto& r) { r.set_user("user0"); }},
      {"user_light", true, [](auto& r) { r.set_user("user199"); }},
      {"user_none", true, [](auto& r) { r.set_user("nobody"); }},
      {"mine_two_names", true, [](auto& r) { r.set_mine(true); }},
      {"compute_large", true, [](auto& r) { r.set_compute_id(ComputeOf(0)); }},
      {"compute_small", true, [](auto& r) { r.set_compute_id(ComputeOf(3)); }},
      {"user_heavy_status_queued_none", true,
       [](auto& r) {
         r.set_user("user0");
         r.set_status(common::v1::EXECUTION_STATUS_QUEUED);
       }},
      {"user_heavy_running", true,
       [](auto& r) {
         r.set_user("user0");
         r.set_status(common::v1::EXECUTION_STATUS_RUNNING);
       }},
      {"user_light_outcome_oom", true,
       [](auto& r) {
         r.set_user("user199");
         r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
       }},
      {"compute_small_outcome_timeout", true,
       [](auto& r) {
         r.set_compute_id(ComputeOf(3));
         r.set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
       }},
      {"compute_large_status_queued_none", true,
       [](auto& r) {
         r.set_compute_id(ComputeOf(0));
         r.set_status(common::v1::EXECUTION_STATUS_QUEUED);
       }},
      {"user_compute_status_outcome", true,
       [](auto& r) {
         r.set_user("user0");
         r.set_compute_id(ComputeOf(1));
         r.set_status(common::v1::EXECUTION_STATUS_FAILED);
         r.set_outcome(common::v1::EXECUTION_OUTCOME_TIMEOUT);
       }},
      {"mine_failed_team_scoped", false,
       [](auto& r) {
         r.set_mine(true);
         r.set_status(common::v1::EXECUTION_STATUS_FAILED);
       }},
  };
  for (const Case& c : cases) {
    ListExecutionsRequest request;
    c.set(request);
    const bool ok = Measure(c.name, [&]() -> Result<size_t> {
      EXPANSE_TRY(const auto page, service.ListExecutions(Caller(c.sees_all), request));
      return static_cast<size_t>(page.executions_size());
    });
    if (!ok) return false;
  }
  return true;
}

bool MeasureOthers(data_plane::ExecutionService& service) {
  // A page from the middle of the year.
  data::v1::ListExecutionsRequest page;
  page.set_page_token(Base64UrlEncode(std::to_string(kStartMs + kYearMs / 2) +
                                      "/0190a000-0000-7000-8000-000000000000"));
  data::v1::ResolveExecutionRequest resolve;
  resolve.set_native_id("41982");
  data::v1::ListRunsOfSourceRequest source;
  source.set_compute_id(ComputeOf(0));
  source.set_script_hash(platform::Sha256Hex("user0train-7"));
  source.set_tree_hash(platform::Sha256Hex("user0"));
  source.set_args_hash(platform::Sha256Hex("17"));
  source.set_user("user0");
  source.set_job_name("train-7");
  data::v1::ListExecutionsRequest mine;
  mine.set_mine(true);
  rpc::CallContext rare = Caller(true);
  rare.caller.email = "b@example.org";
  return Measure("mine_two_names_without_runs",
                 [&]() -> Result<size_t> {
                   EXPANSE_TRY(const auto r, service.ListExecutions(rare, mine));
                   return static_cast<size_t>(r.executions_size());
                 }) &&
         Measure("page_in_the_middle",
                 [&]() -> Result<size_t> {
                   EXPANSE_TRY(const auto r, service.ListExecutions(Caller(true), page));
                   return static_cast<size_t>(r.executions_size());
                 }) &&
         Measure("resolve_native_id",
                 [&]() -> Result<size_t> {
                   EXPANSE_TRY(const auto r, service.ResolveExecution(Caller(true), resolve));
                   return static_cast<size_t>(r.executions_size());
                 }) &&
         Measure("runs_of_source", [&]() -> Result<size_t> {
           EXPANSE_TRY(const auto r, service.ListRunsOfSource(Caller(true), source));
           return static_cast<size_t>(r.runs_size());
         });
}

Status Run(int64_t rows, const std::string& path, bool is_filled_only) {
  const platform::Fs fs;
  const bool is_new = is_filled_only || !fs.Exists(path);
  EXPANSE_TRY(const auto database, storage::Database::Open("sqlite:" + path));
  EXPANSE_CHECK_OK(storage::Migrate(*database, storage::DataMigrations()));
  if (is_new) {
    const auto begin = std::chrono::steady_clock::now();
    EXPANSE_CHECK_OK(Fill(*database, rows));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("fill,rate,%.0f,rows/s\n", static_cast<double>(rows) / took.count());
  }
  EXPANSE_CHECK_OK(MapUsers(*database));
  EXPANSE_TRY(const auto info, fs.Stat(path));
  std::printf("database,size,%.0f,MiB\n", static_cast<double>(info.size) / (1 << 20));
  if (is_filled_only) return {};
  EXPANSE_TRY(const auto blobs, storage::BlobStore::Open("file:" + path + "-blobs"));
  data_plane::ExecutionService service(*database, *blobs);
  if (!MeasureLists(service) || !MeasureOthers(service))
    return Error(Code::kInternal, "a query failed");
  return {};
}

}  // namespace
}  // namespace expanse

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const expanse::platform::TempDir directory;
  const std::string path = argc > 2 ? argv[2] : directory.path() + "/data.db";
  if (argc > 3) expanse::g_org = expanse::OrgId(argv[3]);
  const auto status = expanse::Run(rows, path, argc > 3);
  if (!status.ok())
    std::fprintf(stderr, "bench_executions_list: %s\n", status.error().message().c_str());
  return status.ok() ? 0 : 1;
}
