// SPDX-License-Identifier: Apache-2.0
#include "collect/uplink/uplink.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/core/spool_files.h"
#include "collect/uplink/aggregator.h"
#include "collect/uplink/record_queue.h"
#include "platform/net/http_client.h"
#include "platform/net/http_server.h"

namespace expanse::collect::uplink {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Takes pushes as the data plane does: durable, each (source, sequence) once.
class FakeDataPlane final : public rpc::Channel {
 public:
  Status Call(std::string_view path, std::string_view bearer,
              const google::protobuf::Message& request, google::protobuf::Message* response,
              Deadline deadline) override {
    EXPECT_EQ(path, "/expanse.data.v1.IngestService/Push");
    EXPECT_EQ(bearer, "exp_compute_x");
    ++calls;
    if (on_call) on_call(deadline);
    if (away) return Error(Code::kUnavailable, "connection refused");
    data::v1::PushRequest push;
    push.CopyFrom(request);
    if (refusal && (refused_source.empty() || refused_source == push.source_id())) return *refusal;
    if (push.records_size() > most_records)
      return Error(Code::kResourceExhausted, "request body too large");
    data::v1::PushResponse answer;
    uint64_t sequence = push.first_sequence();
    for (const auto& record : push.records()) {
      if (poisoned.contains(record.node())) {
        auto* rejected = answer.add_rejected();
        rejected->set_sequence(sequence++);
        rejected->set_reason("malformed");
        continue;
      }
      if (stored.insert({push.source_id(), sequence}).second) taken.push_back(record);
      ++sequence;
    }
    answer.set_acknowledged_through(sequence - 1);
    // The answer is lost on its way, after everything is durable.
    if (lose_answer) return Error(Code::kUnavailable, "connection reset");
    response->CopyFrom(answer);
    return {};
  }

  std::function<void(Deadline)> on_call;
  bool away = false;
  std::optional<Error> refusal;  // of whole calls
  std::string refused_source;    // only its calls; empty: of all
  bool lose_answer = false;
  int most_records = 1'000'000;
  std::set<std::string> poisoned;
  int calls = 0;
  std::set<std::pair<std::string, uint64_t>> stored;
  std::vector<data::v1::Record> taken;
};

class UplinkTest : public ::testing::Test {
 protected:
  UplinkTest() { Restart(); }
  void Restart() {
    uplink_ = std::make_unique<Uplink>(plane_, Secret("exp_compute_x"), clock_, UplinkOptions{});
  }
  std::unique_ptr<SpoolWriter> Writer(const std::string& node) {
    SpoolOptions options;
    options.directory = dir_.path() + "/spool/" + node;
    auto writer = SpoolWriter::Open(options, clock_, random_);
    EXPECT_TRUE(writer.ok()) << (writer.ok() ? "" : writer.error().message());
    return std::move(*writer);
  }
  void Append(SpoolWriter& writer, const std::string& name, const std::string& job = "") {
    data::v1::Record record;
    record.set_node(name);
    record.set_observed_time_ms(ToUnixMillis(clock_.Now()));
    if (!job.empty()) {
      auto* key = record.mutable_facts()->mutable_key();
      key->set_source_type(common::v1::SOURCE_TYPE_SLURM);
      key->set_native_id(job);
    }
    ASSERT_TRUE(writer.Append(record).ok());
    ASSERT_TRUE(writer.Flush().ok());
  }
  std::unique_ptr<SpoolReader> Reader(const std::string& node) {
    auto reader = SpoolReader::Open(dir_.path() + "/spool/" + node);
    EXPECT_TRUE(reader.ok());
    return std::move(*reader);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& record : plane_.taken) names.push_back(record.node());
    return names;
  }
  std::unique_ptr<Aggregator> NewAggregator() {
    AggregatorOptions options;
    options.spool_directory = dir_.path() + "/spool";
    return std::make_unique<Aggregator>(
        options, *uplink_,
        [this](common::v1::RunKey* key, int64_t, data::v1::FactOrigin) {
          if (!known_.contains(key->native_id())) return false;
          key->set_submit_time_ms(1000);
          key->set_restart_count(0);
          return true;
        },
        clock_, fs_);
  }

  platform::TempDir dir_;
  platform::Fs fs_;
  platform::FakeClock clock_{FromUnixMillis(1'800'000'000'000)};
  platform::SystemRandom random_;
  FakeDataPlane plane_;
  std::set<std::string> known_;
  std::unique_ptr<Uplink> uplink_;
};

TEST_F(UplinkTest, DeliversInOrderAndAcknowledgesTheSpool) {
  auto writer = Writer("a");
  for (const char* name : {"1", "2", "3"}) Append(*writer, name);
  auto reader = Reader("a");
  const auto report = uplink_->Drain(*reader, nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->delivered, 3u);
  EXPECT_TRUE(report->drained);
  EXPECT_THAT(Names(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(reader->acknowledged(), 3u);
}

TEST_F(UplinkTest, WhileThePlaneIsAwayNothingIsLostAndCallsBackOff) {
  auto writer = Writer("a");
  Append(*writer, "1");
  auto reader = Reader("a");
  plane_.away = true;
  for (int i = 0; i < 600; ++i) {
    EXPECT_FALSE(uplink_->Drain(*reader, nullptr).ok());
    clock_.Advance(Millis(1'000));
  }
  EXPECT_LT(plane_.calls, 20);
  EXPECT_EQ(uplink_->health().status, "degraded");
  EXPECT_THAT(uplink_->health().reason, HasSubstr("connection refused"));
  plane_.away = false;
  Append(*writer, "2");
  clock_.Advance(Millis(60'000));
  ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok());
  EXPECT_THAT(Names(), ElementsAre("1", "2"));
  EXPECT_EQ(uplink_->health().status, "ok");
}

TEST_F(UplinkTest, AnAcknowledgementLostInACrashSendsAgainAndCountsOnce) {
  auto writer = Writer("a");
  for (const char* name : {"1", "2"}) Append(*writer, name);
  plane_.lose_answer = true;
  {
    auto reader = Reader("a");
    EXPECT_FALSE(uplink_->Drain(*reader, nullptr).ok());
  }
  plane_.lose_answer = false;
  Restart();
  auto reader = Reader("a");
  ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok());
  EXPECT_EQ(plane_.calls, 2);
  EXPECT_THAT(Names(), ElementsAre("1", "2"));
}

TEST_F(UplinkTest, ABatchThatIsTooLargeIsHalved) {
  auto writer = Writer("a");
  for (int i = 0; i < 10; ++i) Append(*writer, std::to_string(i));
  plane_.most_records = 3;
  auto reader = Reader("a");
  const auto report = uplink_->Drain(*reader, nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->delivered, 10u);
  EXPECT_EQ(Names().size(), 10u);
}

TEST_F(UplinkTest, ARecordThatThePlaneNeverTakesDoesNotHoldUpTheOthers) {
  auto writer = Writer("a");
  for (const char* name : {"1", "bad", "3"}) Append(*writer, name);
  plane_.poisoned = {"bad"};
  auto reader = Reader("a");
  ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok());
  EXPECT_THAT(Names(), ElementsAre("1", "3"));
  EXPECT_EQ(uplink_->health().rejected, 1u);
}

TEST_F(UplinkTest, ACallThatFailsGivesUpNoRecordWhateverItsCode) {
  for (int code = 1; code <= 16; ++code) {
    const std::string node = "a" + std::to_string(code);
    auto writer = Writer(node);
    for (const char* name : {"1", "2", "3"}) Append(*writer, name);
    auto reader = Reader(node);
    plane_.taken.clear();
    plane_.refusal = Error(static_cast<Code>(code), "the whole call");
    EXPECT_FALSE(uplink_->Drain(*reader, nullptr).ok()) << code;
    EXPECT_EQ(reader->acknowledged(), 0u) << code;
    EXPECT_EQ(uplink_->health().status, "degraded") << code;
    EXPECT_THAT(uplink_->health().reason, HasSubstr("the whole call")) << code;
    EXPECT_EQ(uplink_->health().rejected, 0u) << code;
    plane_.refusal.reset();
    clock_.Advance(Millis(60'000));
    ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok()) << code;
    EXPECT_THAT(Names(), ElementsAre("1", "2", "3")) << code;
    EXPECT_EQ(uplink_->health().status, "ok") << code;
  }
}

TEST_F(UplinkTest, NoFaultOfThisMachineAndNoProxyMakesItGiveUpARecord) {
  auto server = platform::HttpServer::Start({}, [](const platform::HttpRequest&) {
    // As the router says it; a proxy that changes the content type makes it do so.
    return platform::HttpResponse{
        415,
        {{"content-type", "application/json"}},
        R"({"code":"invalid_argument","message":"Content-Type must be application/proto"})"};
  });
  ASSERT_TRUE(server.ok());
  const std::string port = std::to_string((*server)->port());
  platform::HttpClientOptions no_authorities;
  no_authorities.ca_file = dir_.path() + "/absent.pem";
  const auto plain = platform::NewCurlHttpClient();
  const auto without = platform::NewCurlHttpClient(no_authorities);
  rpc::HttpChannel unsupported(*plain, "http://127.0.0.1:" + port);
  rpc::HttpChannel bad_file(*without, "https://127.0.0.1:" + port);
  rpc::HttpChannel bad_url(*plain, "http://[not an address");
  rpc::HttpChannel bad_scheme(*plain, "gopher://127.0.0.1:" + port);
  auto writer = Writer("a");
  for (const char* name : {"1", "2", "3"}) Append(*writer, name);
  for (rpc::Channel* channel :
       std::initializer_list<rpc::Channel*>{&unsupported, &bad_file, &bad_url, &bad_scheme}) {
    Uplink uplink(*channel, Secret("exp_compute_x"), clock_, UplinkOptions{});
    auto reader = Reader("a");
    EXPECT_FALSE(uplink.Drain(*reader, nullptr).ok());
    EXPECT_EQ(reader->acknowledged(), 0u);
    EXPECT_EQ(uplink.health().rejected, 0u);
    EXPECT_EQ(uplink.health().status, "degraded");
  }
  auto reader = Reader("a");
  ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok());
  EXPECT_THAT(Names(), ElementsAre("1", "2", "3"));
}

TEST_F(UplinkTest, ASourceThatIsRefusedDoesNotHoldUpTheOthers) {
  auto a = Writer("a"), b = Writer("b");
  Append(*a, "a1");
  Append(*b, "b1");
  plane_.refusal = Error(Code::kPermissionDenied, "source belongs to another compute");
  plane_.refused_source = a->source_id();
  auto aggregator = NewAggregator();
  aggregator->Pass();
  Append(*b, "b2");
  for (int second = 0; second < 60; ++second) {
    aggregator->Pass();
    clock_.Advance(Millis(1'000));
  }
  EXPECT_THAT(Names(), ElementsAre("b1", "b2"));
  EXPECT_LT(plane_.calls, 12);  // the refused one backs off
  EXPECT_THAT(aggregator->health()[1].reason(), HasSubstr("another compute"));
  EXPECT_THAT(uplink_->health().reason, HasSubstr("another compute"));
  plane_.refusal.reset();
  clock_.Advance(Millis(60'000));
  aggregator->Pass();
  EXPECT_THAT(Names(), ElementsAre("b1", "b2", "a1"));
  EXPECT_EQ(uplink_->health().status, "ok");
  EXPECT_EQ(aggregator->health()[1].status(), "ok");
}

TEST_F(UplinkTest, ACursorThatCannotBeWrittenHoldsUpItsOwnNodeOnly) {
  auto a = Writer("a"), b = Writer("b");
  Append(*a, "a1");
  Append(*b, "b1");
  const std::string cursor = dir_.path() + "/spool/a/cursor";
  ASSERT_TRUE(fs_.MakeDirs(cursor + "/in the way", 0755).ok());
  auto aggregator = NewAggregator();
  aggregator->Pass();
  aggregator->Pass();
  EXPECT_THAT(Names(), ElementsAre("a1", "b1"));
  EXPECT_EQ(plane_.calls, 2);  // a's batch is not sent again each second
  EXPECT_EQ(aggregator->health()[1].status(), "degraded");
  std::filesystem::remove_all(cursor);
  Append(*a, "a2");
  clock_.Advance(Millis(60'000));
  aggregator->Pass();
  EXPECT_THAT(Names(), ElementsAre("a1", "b1", "a2"));
  EXPECT_EQ(Reader("a")->acknowledged(), 2u);
}

TEST_F(UplinkTest, AStopBoundsTheDrainAndLeavesTheRestInTheSpool) {
  auto writer = Writer("a");
  for (int i = 0; i < 5; ++i) Append(*writer, std::to_string(i));
  UplinkOptions options;
  options.batch_records = 1;
  Uplink uplink(plane_, Secret("exp_compute_x"), clock_, options);
  plane_.on_call = [this](Deadline deadline) {
    EXPECT_LE(deadline.Remaining(), Millis(5'000));
    clock_.Advance(Millis(2'000));
  };
  uplink.StopWithin(Millis(5'000));
  auto reader = Reader("a");
  const auto report = uplink.Drain(*reader, nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->drained);
  EXPECT_THAT(Names(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(plane_.calls, 3);
  plane_.on_call = nullptr;
  EXPECT_EQ(NewAggregator()->Pass().delivered, 2u);
}

TEST_F(UplinkTest, ARecordBroughtAgainAfterAFullDiskIsNotCountedAsDropped) {
  SpoolOptions options;
  options.directory = dir_.path() + "/queue";
  auto queue = RecordQueue::Open(options, clock_, random_);
  ASSERT_TRUE(queue.ok());
  data::v1::Record record;
  record.set_node("kept");
  {
    // Segments and probes cannot be made: their names are taken by directories.
    const std::string segment = options.directory + "/" + SegmentName(1, true);
    ASSERT_TRUE(fs_.MakeDirs(segment, 0755).ok());
    ASSERT_TRUE(fs_.MakeDirs(options.directory + "/probe", 0755).ok());
    for (int i = 0; i < 10; ++i) EXPECT_FALSE((*queue)->Append(record).ok());
    EXPECT_EQ((*queue)->dropped_records(), 0u);
    std::filesystem::remove(segment);
    std::filesystem::remove(options.directory + "/probe");
  }
  ASSERT_TRUE((*queue)->Append(record).ok());
  EXPECT_EQ((*queue)->dropped_records(), 0u);
  auto reader = SpoolReader::Open(options.directory);
  const auto batch = (*reader)->Next(10, 1 << 20);
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->records.size(), 1u);
  EXPECT_EQ(batch->first_sequence, 2u);  // nine tries used up no sequence
}

TEST_F(UplinkTest, TheQueueSurvivesItsProcess) {
  SpoolOptions options;
  options.directory = dir_.path() + "/queue";
  {
    auto queue = RecordQueue::Open(options, clock_, random_);
    ASSERT_TRUE(queue.ok());
    data::v1::Record record;
    record.set_node("kept");
    ASSERT_TRUE((*queue)->Append(record).ok());
  }
  auto reader = SpoolReader::Open(options.directory);
  ASSERT_TRUE(uplink_->Drain(**reader, nullptr).ok());
  EXPECT_THAT(Names(), ElementsAre("kept"));
}

// A simulated day: every five minutes each node writes and the aggregator makes its pass.
TEST_F(UplinkTest, ADayWithoutTheDataPlaneAndJumpingClocksLoseNothingWithinTheCap) {
  std::vector<std::unique_ptr<SpoolWriter>> writers;
  for (const char* node : {"a", "b", "c"}) writers.push_back(Writer(node));
  auto aggregator = NewAggregator();
  plane_.away = true;
  constexpr int kSteps = 24 * 12;
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < writers.size(); ++i)
      Append(*writers[i], std::to_string(i) + ":" + std::to_string(step));
    clock_.Advance(Millis(300'000));
    if (step == 60) clock_.JumpWall(Millis(-7'200'000));
    if (step == 120) clock_.JumpWall(Millis(10'800'000));
    if (step == 180) clock_.JumpWall(Millis(-365 * 86'400'000LL));
    if (step % 80 == 79) {
      Restart();
      aggregator = NewAggregator();
    }
    aggregator->Pass();
  }
  EXPECT_TRUE(plane_.taken.empty());
  plane_.away = false;
  for (int i = 0; i < 10 && plane_.taken.size() < 3u * kSteps; ++i) {
    clock_.Advance(Millis(60'000));
    aggregator->Pass();
  }
  ASSERT_EQ(plane_.taken.size(), 3u * kSteps);
  std::map<char, int> next;
  for (const auto& record : plane_.taken) {
    const int step = next[record.node()[0]]++;
    ASSERT_EQ(record.node().substr(2), std::to_string(step));
  }
}

TEST_F(UplinkTest, BeyondTheCapTheOldestIsGoneAndCounted) {
  SpoolOptions options;
  options.directory = dir_.path() + "/spool/a";
  options.max_bytes = 20'000;
  options.segment_bytes = 2'000;
  auto writer = SpoolWriter::Open(options, clock_, random_).value();
  plane_.away = true;
  auto reader = Reader("a");
  constexpr int kRecords = 800;
  for (int n = 1; n <= kRecords; ++n) {
    Append(*writer, std::to_string(n));
    clock_.Advance(Millis(60'000));
    if (n % 100 == 0) (void)uplink_->Drain(*reader, nullptr);
  }
  plane_.away = false;
  clock_.Advance(Millis(60'000));
  ASSERT_TRUE(uplink_->Drain(*reader, nullptr).ok());
  const auto kept = static_cast<int>(plane_.taken.size());
  ASSERT_GT(kept, 100);
  ASSERT_LT(kept, kRecords);
  for (int i = 0; i < kept; ++i)
    ASSERT_EQ(plane_.taken[static_cast<size_t>(i)].node(), std::to_string(kRecords - kept + 1 + i));
  EXPECT_EQ(writer->dropped_records(), static_cast<uint64_t>(kRecords - kept));
}

TEST_F(UplinkTest, TheAggregatorDeliversEveryNodeWithCompletedKeys) {
  auto a = Writer("a"), b = Writer("b");
  known_ = {"7", "8"};
  Append(*a, "a", "7");
  Append(*b, "b", "8");
  auto aggregator = NewAggregator();
  const auto report = aggregator->Pass();
  EXPECT_EQ(report.delivered, 2u);
  EXPECT_EQ(report.nodes, 2);
  EXPECT_TRUE(report.drained);
  for (const auto& record : plane_.taken) {
    EXPECT_EQ(record.facts().key().submit_time_ms(), 1000);
    EXPECT_TRUE(record.facts().key().has_restart_count());
  }
}

TEST_F(UplinkTest, ARecordOfAnUnknownRunWaitsAndThenGoesWithWhatItHas) {
  auto writer = Writer("a");
  known_ = {"7"};
  Append(*writer, "first", "7");
  Append(*writer, "unknown", "9");
  Append(*writer, "after", "7");
  auto aggregator = NewAggregator();
  EXPECT_TRUE(aggregator->Pass().held);
  EXPECT_THAT(Names(), ElementsAre("first"));
  clock_.Advance(Millis(5'000));
  aggregator->Pass();
  EXPECT_THAT(Names(), ElementsAre("first"));
  clock_.Advance(Millis(20'000));
  EXPECT_FALSE(aggregator->Pass().held);
  EXPECT_THAT(Names(), ElementsAre("first", "unknown", "after"));
  EXPECT_FALSE(plane_.taken[1].facts().key().has_submit_time_ms());
  EXPECT_TRUE(plane_.taken[1].facts().key().has_observed_time_ms());
}

TEST_F(UplinkTest, AnAggregatorThatIsKilledAnywhereDeliversEachRecordOnce) {
  known_ = {"7"};
  std::vector<std::string> want;
  auto writer = Writer("a");
  for (int i = 0; i < 40; ++i) {
    want.push_back(std::to_string(i));
    Append(*writer, want.back(), "7");
    plane_.lose_answer = i % 3 == 0;  // killed before the spool was acknowledged
    plane_.away = i % 7 == 0;
    Restart();
    NewAggregator()->Pass();
  }
  plane_.lose_answer = plane_.away = false;
  Restart();
  NewAggregator()->Pass();
  EXPECT_EQ(Names(), want);
}

TEST_F(UplinkTest, ASilentNodeAndAMissingDirectoryAreNamed) {
  auto aggregator = NewAggregator();
  aggregator->Pass();
  EXPECT_EQ(aggregator->health()[0].status(), "degraded");
  auto writer = Writer("a");
  aggregator->Pass();
  EXPECT_EQ(aggregator->health()[0].status(), "ok");
  EXPECT_EQ(aggregator->health()[1].status(), "ok");
  clock_.Advance(Millis(600'000));
  aggregator->Pass();
  EXPECT_EQ(aggregator->health()[1].node(), "a");
  EXPECT_EQ(aggregator->health()[1].status(), "degraded");
  EXPECT_THAT(aggregator->health()[1].reason(), HasSubstr("written nothing for 10m"));
}

}  // namespace
}  // namespace expanse::collect::uplink
