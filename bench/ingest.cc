// SPDX-License-Identifier: Apache-2.0
// bench_ingest COMMAND KEY=VALUE...: the client of bench/ingest_vs_victoriametrics.py. One JSON
// object on stdout.
//
//   push  to=expanse|native|json|influx|remote-write url=URL [credential=FILE] [source=PREFIX]
//         [data=gauges|CSV] [executions=100] [samples=10] [batches=100] [skip=0] [clients=1]
//         start_ms=MS [facts=0|1]
//         Each client sends batches of executions x 10 series x samples, one after another, each
//         acknowledged before the next. Making the values is not timed, encoding them is: a client
//         has to.
//   ask   to=expanse|victoria url=URL [credential=FILE] ids=ID,ID,... metrics=NAME,NAME,...|all
//         from_ms= to_ms= [interval_ms=30000] [times=50]
//         The same question again and again, of one execution after the other.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/strings.h"
#include "expanse/data/v1/data.rpc.h"
#include "expanse/data/v1/ingest.rpc.h"
#include "ingest_data.h"
#include "ingest_wire.h"
#include "platform/fs/fs.h"
#include "platform/net/http_client.h"
#include "rpc/channel.h"

namespace expanse::bench {
namespace {

using Clock = std::chrono::steady_clock;

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      if (equals != std::string::npos) values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  std::string Text(const std::string& name, const std::string& otherwise = "") const {
    const auto it = values_.find(name);
    return it == values_.end() ? otherwise : it->second;
  }
  int64_t Number(const std::string& name, int64_t otherwise) const {
    return ParseInt64(Text(name, std::to_string(otherwise))).value_or(otherwise);
  }

 private:
  std::map<std::string, std::string> values_;
};

double MillisSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result<std::string> Credential(const Arguments& arguments) {
  const std::string file = arguments.Text("credential");
  if (file.empty()) return std::string();
  EXPANSE_TRY(const std::string text, platform::Fs().Read(file));
  return std::string(Trim(text));
}

VictoriaForm FormOf(const std::string& to) {
  return to == "native"   ? VictoriaForm::kNative
         : to == "json"   ? VictoriaForm::kJson
         : to == "influx" ? VictoriaForm::kInflux
                          : VictoriaForm::kRemoteWrite;
}

struct Sent {
  std::vector<double> batch_ms;
  int64_t bytes = 0;
  int64_t rejected = 0;
  Status status;
};

int64_t CountPoints(const data::v1::QueryMetricsResponse& response) {
  int64_t points = 0;
  for (const auto& series : response.series()) points += series.points_size();
  return points;
}

// One sender with its own connection and, for Expanse, its own spool.
class Client {
 public:
  Client(const Arguments& arguments, int number, std::string credential)
      : to_(arguments.Text("to")),
        url_(arguments.Text("url")),
        credential_(std::move(credential)),
        source_(
            fmt::format("{}-0000-7000-8000-{:012d}", arguments.Text("source", "01940000"), number)),
        has_facts_(arguments.Number("facts", arguments.Number("skip", 0) == 0 ? 1 : 0) != 0),
        http_(platform::NewCurlHttpClient()),
        channel_(*http_, url_) {}

  Status Prepare(const Arguments& arguments, int number) {
    const std::string data = arguments.Text("data", "gauges");
    if (data == "gauges") {
      GaugesOptions o;
      o.executions = static_cast<int>(arguments.Number("executions", 100));
      o.first_job = 1000 + number * o.executions;
      o.seed = static_cast<uint64_t>(number + 1);
      o.start_ms = arguments.Number("start_ms", 0);
      o.skip = static_cast<int>(arguments.Number("skip", 0));
      o.batches = static_cast<int>(arguments.Number("batches", 100));
      o.samples = static_cast<int>(arguments.Number("samples", 10));
      data_ = MakeGauges(o);
      next_ = 1 + o.executions + int64_t{o.skip} * o.executions;
    } else {
      EXPANSE_TRY(data_, ReadCorpus(data, arguments.Number("start_ms", 0)));
    }
    if (to_ != "expanse") {
      encoder_.emplace(FormOf(to_), data_);
      return {};
    }
    if (!has_facts_) return {};
    data::v1::PushRequest request = NewRequest(1);
    next_ = 1 + AddFacts(data_, &request);
    return Push(request);
  }

  void Send() {
    for (size_t b = 0; b < data_.batches.size() && sent.status.ok(); ++b) {
      const auto begin = Clock::now();
      sent.status = to_ == "expanse" ? SendToExpanse(b) : SendToVictoria(b);
      sent.batch_ms.push_back(MillisSince(begin));
    }
  }
  int64_t samples() const { return data_.Samples(0); }

  Sent sent;

 private:
  data::v1::PushRequest NewRequest(int64_t first) const {
    data::v1::PushRequest request;
    request.set_source_id(source_);
    request.set_first_sequence(static_cast<uint64_t>(first));
    return request;
  }
  Status Push(const data::v1::PushRequest& request) {
    data::v1::PushResponse response;
    EXPANSE_CHECK_OK(channel_.Call("/expanse.data.v1.IngestService/Push", credential_, request,
                                   &response, Deadline::In(Seconds(60))));
    sent.rejected += response.rejected_size();
    if (response.rejected_size() > 0)
      return Error(Code::kInternal, "rejected: " + response.rejected(0).reason());
    if (response.duplicates() > 0)
      return Error(Code::kInternal, "the records were sent before: use another source");
    return {};
  }
  Status SendToExpanse(size_t batch) {
    data::v1::PushRequest request = NewRequest(next_);
    next_ += AddRecords(data_, batch, &request);
    sent.bytes += static_cast<int64_t>(request.ByteSizeLong());
    return Push(request);
  }
  Status SendToVictoria(size_t batch) {
    platform::HttpCall call;
    call.url = url_ + VictoriaPath(FormOf(to_));
    call.body = encoder_->Encode(data_, batch);
    if (to_ == "remote-write") {
      call.headers["content-encoding"] = "snappy";
      call.headers["content-type"] = "application/x-protobuf";
    }
    sent.bytes += static_cast<int64_t>(call.body.size());
    EXPANSE_TRY(const auto answer, http_->Do(call));
    if (answer.status / 100 == 2) return {};
    return Error(Code::kInternal,
                 "status " + std::to_string(answer.status) + ": " + answer.body.substr(0, 300));
  }

  std::string to_;
  std::string url_;
  std::string credential_;
  std::string source_;
  bool has_facts_;
  std::unique_ptr<platform::HttpClient> http_;
  rpc::HttpChannel channel_;
  DataSet data_;
  std::optional<VictoriaEncoder> encoder_;
  int64_t next_ = 1;
};

Status RunPush(const Arguments& arguments) {
  EXPANSE_TRY(const std::string credential, Credential(arguments));
  std::vector<std::unique_ptr<Client>> clients;
  for (int c = 0; c < arguments.Number("clients", 1); ++c) {
    clients.push_back(std::make_unique<Client>(arguments, c, credential));
    EXPANSE_CHECK_OK(clients.back()->Prepare(arguments, c));
  }
  const double cpu = OwnCpuSeconds();
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (auto& client : clients) threads.emplace_back([&client] { client->Send(); });
  for (auto& thread : threads) thread.join();
  const double seconds = MillisSince(begin) / 1000;
  const double client_cpu = OwnCpuSeconds() - cpu;
  int64_t samples = 0;
  int64_t bytes = 0;
  std::vector<double> batch_ms;
  for (const auto& client : clients) {
    EXPANSE_CHECK_OK(client->sent.status);
    samples += client->samples();
    bytes += client->sent.bytes;
    batch_ms.insert(batch_ms.end(), client->sent.batch_ms.begin(), client->sent.batch_ms.end());
  }
  fmt::print(
      R"({{"samples":{},"seconds":{:.3f},"rate":{:.0f},"batch_ms_median":{:.2f},"batch_ms_p99":{:.2f},"client_cpu_s":{:.3f},"sent_bytes":{}}})"
      "\n",
      samples, seconds, static_cast<double>(samples) / seconds, Quantile(batch_ms, 0.5),
      Quantile(batch_ms, 0.99), client_cpu, bytes);
  return {};
}

// Points of the answer, so that an empty answer is not taken for a fast one.
Result<int64_t> AskExpanse(rpc::Channel& channel, const Arguments& arguments,
                           const std::string& credential, const std::string& id) {
  data::v1::QueryMetricsRequest request;
  request.set_execution_id(id);
  if (arguments.Text("metrics") != "all") {
    const std::string metrics = arguments.Text("metrics");
    for (const auto name : Split(metrics, ',')) request.add_metrics(std::string(name));
  }
  request.set_interval_ms(arguments.Number("interval_ms", 30'000));
  request.set_from_ms(arguments.Number("from_ms", 0));
  request.set_to_ms(arguments.Number("to_ms", 0));
  data::v1::QueryMetricsResponse response;
  EXPANSE_CHECK_OK(channel.Call("/expanse.data.v1.MetricsService/QueryMetrics", credential, request,
                                &response, Deadline::In(Seconds(60))));
  return CountPoints(response);
}

Result<int64_t> AskVictoria(platform::HttpClient& http, const Arguments& arguments,
                            const std::string& id) {
  const int64_t interval = arguments.Number("interval_ms", 30'000);
  std::string selector = "%7Bjob%3D%22" + id + "%22%7D";
  const std::string metrics = arguments.Text("metrics");
  const bool is_all = metrics == "all";
  if (!is_all) selector = VictoriaName(metrics) + selector;
  platform::HttpCall call;
  call.method = "GET";
  call.url = fmt::format(
      "{}/api/v1/query_range?query=avg_over_time({}%5B{}ms%5D){}&start={}&end={}&step={}ms&"
      "nocache=1",
      arguments.Text("url"), selector, interval, is_all ? "%20keep_metric_names" : "",
      arguments.Number("from_ms", 0) / 1000, arguments.Number("to_ms", 0) / 1000, interval);
  EXPANSE_TRY(const auto answer, http.Do(call));
  if (answer.status != 200)
    return Error(Code::kInternal,
                 "status " + std::to_string(answer.status) + ": " + answer.body.substr(0, 300));
  return static_cast<int64_t>(std::count(answer.body.begin(), answer.body.end(), '['));
}

Status RunAsk(const Arguments& arguments) {
  EXPANSE_TRY(const std::string credential, Credential(arguments));
  const auto http = platform::NewCurlHttpClient();
  rpc::HttpChannel channel(*http, arguments.Text("url"));
  const std::string ids_text = arguments.Text("ids");
  const auto ids = Split(ids_text, ',');
  std::vector<double> ms;
  int64_t points = 0;
  for (int64_t i = 0; i < arguments.Number("times", 50); ++i) {
    const std::string id(ids[static_cast<size_t>(i) % ids.size()]);
    const auto begin = Clock::now();
    EXPANSE_TRY(points, arguments.Text("to") == "expanse"
                            ? AskExpanse(channel, arguments, credential, id)
                            : AskVictoria(*http, arguments, id));
    ms.push_back(MillisSince(begin));
  }
  fmt::print(
      R"({{"times":{},"points":{},"first_ms":{:.2f},"median_ms":{:.2f},"p99_ms":{:.2f},"max_ms":{:.2f}}})"
      "\n",
      ms.size(), points, ms.front(), Quantile(ms, 0.5), Quantile(ms, 0.99), Quantile(ms, 1));
  return {};
}

}  // namespace
}  // namespace expanse::bench

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const expanse::bench::Arguments arguments(argc, argv);
  expanse::Status status;
  if (command == "push") {
    status = expanse::bench::RunPush(arguments);
  } else if (command == "ask") {
    status = expanse::bench::RunAsk(arguments);
  } else {
    std::fprintf(stderr, "usage: bench_ingest push|ask KEY=VALUE... (see the head of ingest.cc)\n");
    return 2;
  }
  if (!status.ok()) std::fprintf(stderr, "bench_ingest: %s\n", status.error().message().c_str());
  return status.ok() ? 0 : 1;
}
