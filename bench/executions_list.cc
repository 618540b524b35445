// SPDX-License-Identifier: Apache-2.0
// Time of `expanse executions` at the data plane with many executions stored (1,000,000 or the
// argument): the handler with each filter, first page and a page from the middle. Prints
// name,metric,value,unit.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "data_plane/executions/execution_service.h"
#include "platform/fs/fs.h"
#include "storage/blob/blob_store.h"
#include "storage/relational/database.h"
#include "storage/relational/migrate.h"

namespace {

using namespace expanse;  // NOLINT(google-build-using-namespace): a program of one file

constexpr char kOrg[] = "01940000-0000-7000-8000-0000000000a0";
constexpr int64_t kT = 1'700'000'000'000;

std::string IdOf(int64_t i) {
  char text[64];
  std::snprintf(text, sizeof text, "01940000-0000-7000-8000-%012llx",
                static_cast<unsigned long long>(i));
  return text;
}

common::v1::Execution Make(int64_t i) {
  common::v1::Execution e;
  e.set_execution_id(IdOf(i));
  e.set_compute_id("c" + std::to_string(i % 3));
  e.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  e.set_native_id(std::to_string(i));
  // One user has half of everything.
  e.set_user(i % 2 == 0 ? "user5" : "user" + std::to_string(i % 97));
  e.set_account("research");
  e.set_partition("main");
  e.set_job_name("train-" + std::to_string(i % 1000));
  // One in a thousand ran out of memory: a filter that finds little.
  const bool oom = i % 1000 == 7;
  e.set_status(oom ? common::v1::EXECUTION_STATUS_FAILED : common::v1::EXECUTION_STATUS_SUCCEEDED);
  e.set_outcome(oom ? common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY
                    : common::v1::EXECUTION_OUTCOME_SUCCESS);
  e.set_submit_time_ms(kT + i * 1000);
  e.set_start_time_ms(kT + i * 1000 + 500);
  e.set_end_time_ms(kT + i * 1000 + 60'000);
  e.set_work_dir("/home/user/projects/model/run");
  e.set_command("/home/user/projects/model/run/train.sh");
  e.set_submit_line("sbatch --mem=8G --time=1:00:00 train.sh");
  for (const char* id : {"batch", "extern", "0"}) {
    auto* step = e.add_steps();
    step->set_step_id(id);
    step->mutable_memory_need()->set_value(i);
  }
  for (const char* field : {"memory_need", "bundle_id", "cpu_seconds"})
    (*e.mutable_unknown())[field] = "not reported (seen by sacct, scontrol, squeue)";
  return e;
}

Status Fill(storage::Database& database, int64_t count) {
  constexpr int64_t kChunk = 20'000;
  for (int64_t from = 0; from < count; from += kChunk)
    EXPANSE_CHECK_OK(database.Write([&](storage::Transaction& tx) -> Status {
      for (int64_t i = from; i < std::min(count, from + kChunk); ++i) {
        const auto e = Make(i);
        EXPANSE_CHECK_OK(tx.Execute(
            "INSERT INTO executions (org_id, execution_id, compute_id, source_type, native_id, "
            "display_id, sort_ms, submit_ms, start_ms, end_ms, status, outcome, user_name, "
            "job_name, script_hash, tree_hash, args_hash, merged) VALUES ($1, $2, $3, 1, $4, $4, "
            "$5, $5, $6, $7, $8, $9, $10, $11, $12, $12, $12, $13)",
            {kOrg, e.execution_id(), e.compute_id(), e.native_id(), e.submit_time_ms(),
             e.start_time_ms(), e.end_time_ms(), static_cast<int64_t>(e.status()),
             static_cast<int64_t>(e.outcome()), e.user(), e.job_name(),
             "hash" + std::to_string(i % 5000), storage::Blob{e.SerializeAsString()}}));
      }
      return {};
    }));
  return {};
}

template <typename Call>
void Measure(const char* name, Call call) {
  std::vector<double> ms;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!call()) {
      std::printf("%s,error,1,\n", name);
      return;
    }
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count());
  }
  const double first = ms.front();
  std::sort(ms.begin(), ms.end());
  std::printf("%s,first,%.2f,ms\n%s,median,%.2f,ms\n%s,worst,%.2f,ms\n", name, first, name,
              ms[ms.size() / 2], name, ms.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const platform::TempDir dir;
  auto database = storage::Database::Open("sqlite:" + dir.path() + "/data.db").value();
  auto blobs = storage::BlobStore::Open("file:" + dir.path() + "/blobs").value();
  if (!storage::Migrate(*database, storage::DataMigrations()).ok()) return 1;
  for (const char* compute : {"c0", "c1", "c2"})
    if (!database
             ->Execute("INSERT INTO computes (org_id, compute_id, name, type, team_id, updated_ms) "
                       "VALUES ($1, $2, $2, 1, $3, 0)",
                       {kOrg, compute, std::string(compute) == "c2" ? "team" : ""})
             .ok())
      return 1;
  const Status filled = Fill(*database, count);
  if (!filled.ok()) {
    std::fprintf(stderr, "%s\n", filled.error().message().c_str());
    return 1;
  }
  data_plane::ExecutionService service(*database, *blobs);
  rpc::CallContext owner{{}, Deadline::In(Millis(600'000)), ""};
  owner.caller.org = OrgId(kOrg);
  owner.caller.email = "user5@example.org";
  owner.caller.permissions = {"executions.read", "executions.read_all"};
  rpc::CallContext member = owner;
  member.caller.permissions = {"executions.read"};
  const auto list = [&](const char* name, const rpc::CallContext& context, auto fill) {
    data::v1::ListExecutionsRequest request;
    fill(request);
    Measure(name, [&] {
      auto answer = service.ListExecutions(context, request);
      return answer.ok();
    });
  };
  using Request = data::v1::ListExecutionsRequest;
  list("executions", owner, [](Request&) {});
  list("executions_member", member, [](Request&) {});
  list("executions_user", owner, [](Request& r) { r.set_user("user5"); });
  list("executions_mine", owner, [](Request& r) { r.set_mine(true); });
  list("executions_oom", owner,
       [](Request& r) { r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY); });
  list("executions_user_failed", owner, [](Request& r) {
    r.set_user("user5");
    r.set_status(common::v1::EXECUTION_STATUS_FAILED);
  });
  list("executions_user_oom", owner, [](Request& r) {
    r.set_user("user5");
    r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  });
  list("executions_user_succeeded", owner, [](Request& r) {
    r.set_user("user5");
    r.set_outcome(common::v1::EXECUTION_OUTCOME_SUCCESS);
    r.set_compute_id("c1");
  });
  list("executions_compute_oom", owner, [](Request& r) {
    r.set_compute_id("c1");
    r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  });
  list("executions_member_oom", member,
       [](Request& r) { r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY); });
  list("executions_mine_oom", owner, [](Request& r) {
    r.set_mine(true);
    r.set_outcome(common::v1::EXECUTION_OUTCOME_OUT_OF_MEMORY);
  });
  list("executions_nobody", owner, [](Request& r) { r.set_user("nobody"); });
  list("executions_compute", owner, [](Request& r) { r.set_compute_id("c1"); });
  auto middle = service.ListExecutions(owner, [] {
    Request r;
    r.set_limit(1000);
    return r;
  }());
  list("executions_page_2", owner,
       [&](Request& r) { r.set_page_token(middle->next_page_token()); });
  Measure("resolve", [&] {
    data::v1::ResolveExecutionRequest request;
    request.set_native_id(std::to_string(count / 2));
    auto answer = service.ResolveExecution(owner, request);
    return answer.ok() && answer->executions_size() == 1;
  });
  Measure("runs_of_source", [&] {
    data::v1::ListRunsOfSourceRequest request;
    request.set_compute_id("c1");
    request.set_script_hash("hash7");
    request.set_tree_hash("hash7");
    request.set_args_hash("hash7");
    request.set_user("user5");
    request.set_job_name("train-5");
    return service.ListRunsOfSource(owner, request).ok();
  });
  return 0;
}
