// SPDX-License-Identifier: Apache-2.0
// Stores that fail: what can pass later is not acknowledged, what cannot does not hold up its
// source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_plane/fact_builder.h"
#include "data_plane/ingest/ingest_service.h"
#include "platform/fs/fs.h"
#include "storage/relational/migrate.h"

namespace expanse::data_plane {
namespace {

constexpr int64_t kNow = 1'796'000'000'000;

// Fails each change with a parameter "poison", every commit, or every read of a table.
class FaultyDatabase final : public storage::Database {
 public:
  FaultyDatabase() : inner_(storage::Database::Open("sqlite::memory:").value()) {}

  Result<std::unique_ptr<storage::Transaction>> Begin(storage::Access access) override {
    EXPANSE_TRY(auto inner, inner_->Begin(access));
    return std::unique_ptr<storage::Transaction>(
        std::make_unique<Faulty>(std::move(inner), fail_commits, commit_error, access, *this));
  }
  Status BackupTo(const std::string& path) override { return inner_->BackupTo(path); }
  Status CheckIntegrity() override { return inner_->CheckIntegrity(); }
  std::string Name() const override { return inner_->Name(); }

  bool fail_commits = false;
  Code commit_error = Code::kResourceExhausted;
  Code poison_error = Code::kFailedPrecondition;
  std::string unreadable_table;

 private:
  class Faulty final : public storage::Transaction {
   public:
    Faulty(std::unique_ptr<Transaction> inner, bool fail, Code code, storage::Access access,
           const FaultyDatabase& faults)
        : inner_(std::move(inner)),
          fail_(fail && access == storage::Access::kReadWrite),
          commit_error_(code),
          faults_(faults) {}
    Result<storage::Rows> Query(std::string_view sql,
                                std::span<const storage::Value> params) override {
      if (!faults_.unreadable_table.empty() &&
          sql.find(faults_.unreadable_table) != std::string_view::npos)
        return Error(Code::kPermissionDenied, "unreadable");
      return inner_->Query(sql, params);
    }
    Result<int64_t> Execute(std::string_view sql, std::span<const storage::Value> params) override {
      for (const auto& value : params)
        if (value == storage::Value("poison")) return Error(faults_.poison_error, "poison");
      return inner_->Execute(sql, params);
    }
    Status ExecuteScript(std::string_view sql) override { return inner_->ExecuteScript(sql); }
    Status Commit() override {
      if (fail_) return Error(commit_error_, "disk full");
      return inner_->Commit();
    }

   private:
    std::unique_ptr<Transaction> inner_;
    bool fail_;
    Code commit_error_;
    const FaultyDatabase& faults_;
  };
  std::unique_ptr<storage::Database> inner_;
};

class IngestFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(storage::Migrate(database_, storage::DataMigrations()).ok());
    context_.caller.org = OrgId("01940000-0000-7000-8000-0000000000a0");
    context_.caller.compute = ComputeId("01940000-0000-7000-8000-0000000000c1");
    request_.set_source_id("01940000-0000-7000-8000-0000000000d1");
    request_.set_first_sequence(1);
    for (const char* user : {"alice", "poison", "bob"})
      *request_.add_records() = Facts(data::v1::FACT_ORIGIN_SACCT,
                                      Job(std::to_string(request_.records_size()), kNow - 1000, 0),
                                      kNow, [user](common::v1::Execution& e) { e.set_user(user); });
  }
  size_t Stored() {
    return database_.Query("SELECT user_name FROM executions WHERE user_name <> 'poison'")
        .value()
        .size();
  }

  platform::TempDir dir_;
  FaultyDatabase database_;
  std::unique_ptr<storage::BlobStore> blobs_ =
      storage::BlobStore::Open("file:" + dir_.path() + "/blobs").value();
  std::unique_ptr<storage::SeriesStore> series_ =
      storage::SeriesStore::Open("file:" + dir_.path() + "/series").value();
  platform::FakeClock clock_{FromUnixMillis(kNow)};
  int next_id_ = 0;
  IngestService service_{database_, *series_, *blobs_, clock_,
                         [this] { return "id" + std::to_string(next_id_++); }};
  rpc::CallContext context_{{}, Deadline::In(Millis(60'000)), ""};
  data::v1::PushRequest request_;
};

TEST_F(IngestFaultTest, ARecordThatCannotBeStoredIsRejectedAndTheOthersAreTaken) {
  const auto answer = service_.Push(context_, request_);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_EQ(answer->rejected_size(), 1);
  EXPECT_EQ(answer->rejected(0).sequence(), 2u);
  EXPECT_THAT(answer->rejected(0).reason(), testing::HasSubstr("could not be stored"));
  EXPECT_EQ(answer->acknowledged_through(), 3u);
  EXPECT_EQ(Stored(), 2u);
  EXPECT_EQ(service_.Push(context_, request_)->duplicates(), 3u);
}

TEST_F(IngestFaultTest, AFullDiskIsNoAcknowledgementAndTheBatchIsTakenLater) {
  database_.fail_commits = true;
  const auto full = service_.Push(context_, request_);
  ASSERT_FALSE(full.ok());
  // Not kResourceExhausted: a sender takes that for "too large" and halves its batches.
  EXPECT_EQ(full.error().code(), Code::kUnavailable);
  EXPECT_THAT(full.error().message(), testing::HasSubstr("disk full"));
  database_.fail_commits = false;
  const auto later = service_.Push(context_, request_);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->duplicates(), 0u);
  EXPECT_EQ(Stored(), 2u);
}

TEST_F(IngestFaultTest, NoFaultOfTheMachineIsTakenForOneOfTheRecord) {
  database_.fail_commits = true;
  for (const Code code : {Code::kPermissionDenied, Code::kNotFound, Code::kUnavailable,
                          Code::kDataLoss, Code::kAborted, Code::kInternal}) {
    database_.commit_error = code;  // read-only, not mounted, busy, damaged, misused
    const auto answer = service_.Push(context_, request_);
    ASSERT_FALSE(answer.ok()) << CodeName(code);
    EXPECT_EQ(answer.error().code(), Code::kUnavailable) << CodeName(code);
  }
  database_.fail_commits = false;
  EXPECT_EQ(service_.Push(context_, request_)->duplicates(), 0u);
}

TEST_F(IngestFaultTest, AFaultOfThisProgramGivesUpNoRecord) {
  database_.poison_error = Code::kInternal;
  const auto answer = service_.Push(context_, request_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  database_.poison_error = Code::kFailedPrecondition;
  const auto later = service_.Push(context_, request_);
  ASSERT_TRUE(later.ok()) << later.error().message();
  EXPECT_EQ(later->duplicates(), 0u);
}

TEST_F(IngestFaultTest, ASourceThatCannotBeReadIsNoVerdictOnItsBatch) {
  database_.unreadable_table = "ingest_sources";
  const auto answer = service_.Push(context_, request_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
}

TEST_F(IngestFaultTest, ADamagedListOfGapsDoesNotStopItsSource) {
  ASSERT_TRUE(service_.Push(context_, request_).ok());
  ASSERT_TRUE(database_.Execute("UPDATE ingest_sources SET gaps = $1", {"5-x"}).ok());
  request_.set_first_sequence(4);
  const auto answer = service_.Push(context_, request_);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->acknowledged_through(), 6u);
}

}  // namespace
}  // namespace expanse::data_plane
