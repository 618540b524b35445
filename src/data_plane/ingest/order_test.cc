// SPDX-License-Identifier: Apache-2.0
// Any order of arrival, any duplication and any splitting of the same facts gives the same
// executions.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_plane/fact_builder.h"
#include "data_plane/ingest/store_batch.h"
#include "data_plane/merge/fold.h"
#include "storage/relational/migrate.h"

namespace expanse::data_plane {
namespace {

using common::v1::Execution;
using data::v1::Record;

constexpr int64_t kT = 1'700'000'000'000;
constexpr int64_t kS = 1'000;

Fill Status(common::v1::ExecutionStatus status, common::v1::ExecutionOutcome outcome,
            const std::string& state, int64_t start_s, int64_t end_s) {
  return [=](Execution& e) {
    e.set_status(status);
    e.set_outcome(outcome);
    e.set_scheduler_state(state);
    if (start_s > 0) e.set_start_time_ms(kT + start_s * kS);
    if (end_s > 0) e.set_end_time_ms(kT + end_s * kS);
    e.set_user("alice");
    e.set_job_name("train " + state);
    e.mutable_requested()->set_memory_bytes(1'000 + start_s);
  };
}
Fill Pending() {
  return Status(common::v1::EXECUTION_STATUS_QUEUED, common::v1::EXECUTION_OUTCOME_UNSPECIFIED,
                "PENDING", 0, 0);
}
Fill Runs(int64_t start_s) {
  return Status(common::v1::EXECUTION_STATUS_RUNNING, common::v1::EXECUTION_OUTCOME_UNSPECIFIED,
                "RUNNING", start_s, 0);
}
Fill Failed(int64_t start_s, int64_t end_s) {
  return Status(common::v1::EXECUTION_STATUS_FAILED, common::v1::EXECUTION_OUTCOME_FAILURE,
                "FAILED", start_s, end_s);
}
Fill Done(int64_t start_s, int64_t end_s) {
  return Status(common::v1::EXECUTION_STATUS_SUCCEEDED, common::v1::EXECUTION_OUTCOME_SUCCESS,
                "COMPLETED", start_s, end_s);
}
Fill Peak(const std::string& step, int64_t bytes) {
  return [=](Execution& e) {
    auto* s = e.add_steps();
    s->set_step_id(step);
    s->mutable_memory_peak_enforced()->set_value(bytes);
    s->mutable_memory_peak_enforced()->set_bound(common::v1::BOUND_EXACT);
    s->mutable_cpu_seconds()->set_value(static_cast<double>(bytes) / 100);
    s->mutable_cpu_seconds()->set_bound(common::v1::BOUND_EXACT);
  };
}
common::v1::RunKey Db(common::v1::RunKey key, int64_t db) {
  key.set_db_index(db);
  return key;
}
common::v1::RunKey Accounted(const std::string& id, int64_t submit_s, int64_t db, int64_t start_s) {
  auto key = Db(Job(id), db);
  key.set_submit_time_ms(kT + submit_s * kS);
  if (start_s > 0) key.set_start_time_ms(kT + start_s * kS);
  return key;
}

// Native id 14 as Slurm 22.05 tells of it: a requeue with a new submission time, polled and
// accounted, hooks that know the id only; later the id is used again. Native id 15 by hooks alone,
// and by a SLUID that a later fact completes.
std::vector<Record> Scenario() {
  using namespace data::v1;  // NOLINT(google-build-using-namespace): the names of origins
  const auto at = [](int64_t s) { return kT + s * kS; };
  const auto first = Job("14", at(8), 0);
  const auto second = Job("14", at(100), 1);
  const auto reused = Job("14", at(90'000), 0);
  auto sluid = Job("");
  sluid.set_sluid("sEKN0000000001");
  auto named = Job("16", at(50), 0);
  named.set_sluid("sEKN0000000001");
  return {
      Facts(FACT_ORIGIN_SQUEUE, first, at(9), Pending()),
      Facts(FACT_ORIGIN_SCONTROL, first, at(9) + 200, Pending()),
      Facts(FACT_ORIGIN_SQUEUE, first, at(31), Runs(30)),
      Facts(FACT_ORIGIN_SACCT, Accounted("14", 8, 24, 30), at(120), Failed(30, 100)),
      Facts(FACT_ORIGIN_SQUEUE, second, at(101), Pending()),
      Facts(FACT_ORIGIN_SCONTROL, second, at(131), Runs(130)),
      Facts(FACT_ORIGIN_SACCT, Accounted("14", 100, 40, 130), at(400), Done(130, 300)),
      Facts(FACT_ORIGIN_HOOK_PROLOG, Job("14"), at(30) - 300, {}, "n1"),
      Facts(FACT_ORIGIN_HOOK_TASK_EPILOG, Job("14"), at(99), Peak("batch", 500), "n1", "batch"),
      Facts(FACT_ORIGIN_HOOK_EPILOG, Job("14"), at(101), {}, "n1"),
      Facts(FACT_ORIGIN_HOOK_PROLOG, Job("14"), at(130) - 100, {}, "n2"),
      Facts(FACT_ORIGIN_HOOK_TASK_EPILOG, Job("14"), at(299), Peak("batch", 700), "n2", "batch"),
      Facts(FACT_ORIGIN_HOOK_EPILOG, Job("14"), at(301), {}, "n2"),
      Facts(FACT_ORIGIN_SQUEUE, reused, at(90'001), Runs(90'001)),
      Facts(FACT_ORIGIN_CGROUP, Job("14"), at(90'030), Peak("0", 900), "n1", "0"),
      Facts(FACT_ORIGIN_SACCT, Accounted("14", 90'000, 77, 90'001), at(90'900),
            Done(90'001, 90'800)),
      Facts(FACT_ORIGIN_HOOK_PROLOG, Job("15"), at(10), {}, "n1"),
      Facts(FACT_ORIGIN_HOOK_EPILOG, Job("15"), at(20), {}, "n1"),
      Facts(FACT_ORIGIN_HOOK_PROLOG, Job("15"), at(5'000), {}, "n1"),
      Facts(FACT_ORIGIN_CGROUP, sluid, at(61), Peak("0", 100), "n1", "0"),
      Facts(FACT_ORIGIN_SCONTROL, named, at(60), Runs(60)),
  };
}

// Fields that are not of the run's state may come in a record of their own.
std::vector<Record> Split(const Record& record, std::mt19937& random) {
  if (random() % 3 != 0) return {record};
  Record state = record;
  Record rest = record;
  auto* kept = state.mutable_facts()->mutable_execution();
  auto* moved = rest.mutable_facts()->mutable_execution();
  const Execution whole = record.facts().execution();
  moved->Clear();
  moved->set_user(whole.user());
  moved->set_job_name(whole.job_name());
  *moved->mutable_steps() = whole.steps();
  if (whole.has_requested()) *moved->mutable_requested() = whole.requested();
  kept->clear_user();
  kept->clear_job_name();
  kept->clear_steps();
  kept->clear_requested();
  return {state, rest};
}

class Store {
 public:
  Store() : database_(storage::Database::Open("sqlite::memory:").value()) {
    EXPECT_TRUE(storage::Migrate(*database_, storage::DataMigrations()).ok());
  }
  void Add(const std::vector<Record>& records) {
    const Scope scope{OrgId("o"), ComputeId("c")};
    Batch batch(scope, kT + 100'000'000);
    for (const Record& record : records) {
      const auto added = batch.Add(record);
      ASSERT_TRUE(added.ok()) << added.error().message();
    }
    const auto stored = database_->Write([&](storage::Transaction& transaction) {
      return StoreBatch(transaction, scope, batch, {},
                        [this] { return "id-" + std::to_string(next_id_++); });
    });
    ASSERT_TRUE(stored.ok()) << stored.error().message();
  }
  // Executions in an order of their own, with ids by that order.
  std::string Dump() {
    std::vector<Execution> all;
    auto rows =
        database_->Query("SELECT merged FROM executions ORDER BY sort_ms, native_id").value();
    for (const auto row : rows) all.emplace_back().ParseFromString(row.Bytes(0));
    std::map<std::string, std::string> names{{"", "none"}};
    for (const auto& e : all) names[e.execution_id()] = std::to_string(names.size());
    std::string out;
    for (auto& e : all) {
      e.set_execution_id(names.at(e.execution_id()));
      if (!e.first_attempt_execution_id().empty())
        e.set_first_attempt_execution_id(names.at(e.first_attempt_execution_id()));
      out += e.Utf8DebugString() + "\n";
    }
    return out;
  }
  size_t Count() { return database_->Query("SELECT 1 AS one FROM executions").value().size(); }

 private:
  std::unique_ptr<storage::Database> database_;
  int next_id_ = 0;
};

TEST(OrderOfArrival, HasNoPartInTheResult) {
  Store reference;
  for (const Record& record : Scenario()) reference.Add({record});
  EXPECT_EQ(reference.Count(), 6u) << reference.Dump();
  const std::string expected = reference.Dump();
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 random(seed);
    std::vector<Record> records;
    for (const Record& record : Scenario()) {
      for (const Record& part : Split(record, random)) records.push_back(part);
      if (random() % 3 == 0) records.push_back(record);
    }
    std::shuffle(records.begin(), records.end(), random);
    Store store;
    for (size_t i = 0; i < records.size();) {
      const size_t n = std::min<size_t>(1 + random() % 6, records.size() - i);
      store.Add({records.begin() + static_cast<std::ptrdiff_t>(i),
                 records.begin() + static_cast<std::ptrdiff_t>(i + n)});
      i += n;
    }
    ASSERT_EQ(store.Dump(), expected) << "seed " << seed;
  }
}

TEST(OrderOfArrival, TheScenarioIsReadAsItHappened) {
  Store store;
  store.Add(Scenario());
  const std::string dump = store.Dump();
  // Peaks of the hooks went to the attempts in whose lives they lie.
  EXPECT_THAT(dump, testing::HasSubstr("value: 500"));
  EXPECT_THAT(dump, testing::HasSubstr("attempt: 2"));
  EXPECT_THAT(dump, testing::HasSubstr("first_attempt_execution_id: \"1\""));
}

}  // namespace
}  // namespace expanse::data_plane
