// SPDX-License-Identifier: Apache-2.0
#include "ingest_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "platform/fs/fs.h"

namespace expanse::bench {
namespace {

constexpr double kGib = 1073741824.0;
constexpr double kPage = 4096;
constexpr size_t kSeriesInBatch = 1000;

struct Shape {
  const char* name;
  const char* source;
  bool is_gpu;
};
constexpr std::array<Shape, kGaugesMetrics> kShapes{{{"cpu", "cgroup", false},
                                                     {"memory", "cgroup", false},
                                                     {"memory-anon", "cgroup", false},
                                                     {"memory-file", "cgroup", false},
                                                     {"processes", "cgroup", false},
                                                     {"io-read", "cgroup", false},
                                                     {"io-write", "cgroup", false},
                                                     {"gpu-util", "nvidia-smi", true},
                                                     {"gpu-memory-used", "nvidia-smi", true},
                                                     {"gpu-power", "nvidia-smi", true}}};

double RoundTo(double value, double unit) { return std::round(value / unit) * unit; }

// One execution at a time; each has its own generator so that the number of executions does not
// change what one of them does.
class Job {
 public:
  explicit Job(uint64_t seed) : random_(seed) {
    cores_ = 1 << (random_() % 6);
    plateau_ = Uniform(0.2, 0.9) * 4 * cores_ * kGib;
    is_leaking_ = random_() % 3 == 0;
    base_processes_ = 2 + static_cast<int>(random_() % 8);
    offset_ms_ = static_cast<int64_t>(random_() % 1000);
    checkpoint_every_ = 30 + static_cast<int>(random_() % 200);
    gpu_pool_ = RoundTo(Uniform(4, 70), 0.5);
  }
  int64_t offset_ms() const { return offset_ms_; }

  std::array<double, kGaugesMetrics> Next() {
    const bool is_starting = tick_ < 6;
    const bool is_loading = !is_starting && (tick_ % 1500 < 40);
    const int since_checkpoint = tick_ % checkpoint_every_;
    const bool is_checkpoint = !is_starting && since_checkpoint < 2;
    ++tick_;
    Anon(is_starting, is_checkpoint);
    File(is_loading, is_checkpoint);
    const double busy = is_starting ? 0.3 : is_loading ? 0.45 : is_checkpoint ? 0.2 : 0.96;
    const double cpu = std::clamp(cores_ * (busy + 0.02 * Normal()), 0.0, 1.0 * cores_);
    level_ += 0.05 * ((is_checkpoint || is_loading ? 0.2 : 0.9) - level_) + 0.01 * Normal();
    level_ = std::clamp(level_, 0.0, 1.0);
    const double util = std::clamp((is_starting ? 0.0 : level_) + 0.03 * Normal(), 0.0, 1.0);
    return {std::round(cpu * 1000) / 1000,
            anon_ + file_,
            anon_,
            file_,
            static_cast<double>(base_processes_ + (is_loading ? 4 : 0)),
            read_,
            written_,
            std::round(util * 100) / 100,
            is_starting ? 0.0 : gpu_pool_ * kGib,
            std::round((110 + 260 * util + 4 * Normal()) * 10) / 10};
  }

 private:
  double Uniform(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random_);
  }
  double Normal() { return normal_(random_); }

  void Anon(bool is_starting, bool is_checkpoint) {
    if (is_starting) {
      anon_ = RoundTo(plateau_ * (tick_ / 6.0) * Uniform(0.9, 1.0), kPage);
      return;
    }
    if (is_leaking_) plateau_ += Uniform(0, 3e6);
    if (random_() % 400 == 0) plateau_ *= Uniform(0.85, 1.1);  // another phase
    // Most of a plateau stands still; some samples see allocations of a few pages.
    if (random_() % 10 < 4 || is_checkpoint)
      anon_ = RoundTo(plateau_ + 40 * kPage * Normal(), kPage);
  }
  void File(bool is_loading, bool is_checkpoint) {
    if (is_loading) {
      const double got = RoundTo(Uniform(0, 400e6), kPage);
      read_ += got;
      file_ = std::min(file_ + got, 8 * kGib);
    }
    if (is_checkpoint) {
      const double put = RoundTo(Uniform(1e8, 9e8), kPage);
      written_ += put;
      file_ = std::min(file_ + put, 8 * kGib);
    }
    if (random_() % 6 == 0) written_ += kPage * static_cast<double>(1 + random_() % 4);  // a log
    if (random_() % 200 == 0) file_ = RoundTo(file_ * Uniform(0.3, 0.9), kPage);  // reclaimed
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int cores_ = 1;
  int base_processes_ = 1;
  int checkpoint_every_ = 1;
  int tick_ = 0;
  bool is_leaking_ = false;
  int64_t offset_ms_ = 0;  // the node's clock against the sampler's schedule
  double plateau_ = 0;
  double anon_ = 0;
  double file_ = 0;
  double read_ = 0;
  double written_ = 0;
  double level_ = 0;
  double gpu_pool_ = 0;
};

struct CorpusRow {
  int64_t at_ms = 0;
  std::array<double, 4> values{};
};

Result<std::map<int64_t, std::vector<CorpusRow>>> ReadRows(const std::string& path) {
  EXPANSE_TRY(const std::string text, platform::Fs().Read(path));
  std::map<int64_t, std::vector<CorpusRow>> jobs;
  for (const std::string_view line : Split(text, '\n')) {
    const auto cells = Split(line, ',');
    if (cells.size() != 6) continue;
    const auto job = ParseInt64(cells[0]);
    const auto t = ParseDouble(cells[1]);
    if (!job || !t) continue;  // the heading
    CorpusRow row;
    row.at_ms = std::llround(*t * 1000);
    for (size_t i = 0; i < 4; ++i) {
      const auto value = ParseDouble(cells[i + 2]);
      if (!value) return Error(Code::kInvalidArgument, path + ": " + std::string(line));
      row.values[i] = i < 2 ? *value * 1024 : i == 2 ? *value / 1000 : *value;
    }
    jobs[*job].push_back(row);
  }
  return jobs;
}

}  // namespace

int64_t DataSet::Samples(size_t from_batch) const {
  size_t n = 0;
  for (size_t b = from_batch; b < batches.size(); ++b)
    for (const SeriesSamples& series : batches[b]) n += series.values.size();
  return static_cast<int64_t>(n);
}

DataSet MakeGauges(const GaugesOptions& o) {
  DataSet out;
  out.submit_ms = o.start_ms;
  out.batches.resize(static_cast<size_t>(o.batches));
  for (auto& batch : out.batches)
    batch.resize(static_cast<size_t>(o.executions) * static_cast<size_t>(kGaugesMetrics));
  for (int e = 0; e < o.executions; ++e) {
    Job job(o.seed * 1'000'003 + static_cast<uint64_t>(e));
    for (const Shape& shape : kShapes)
      out.names.push_back({std::to_string(o.first_job + e), "node" + std::to_string(e % 500), "0",
                           shape.name, shape.source, shape.is_gpu ? e % 8 : -1});
    for (int64_t i = 0; i < int64_t{o.skip} * o.samples; ++i) job.Next();
    int64_t at = o.start_ms + job.offset_ms() + int64_t{o.skip} * o.samples * kGaugesIntervalMs;
    for (auto& batch : out.batches)
      for (int i = 0; i < o.samples; ++i, at += kGaugesIntervalMs) {
        const auto values = job.Next();
        for (size_t m = 0; m < values.size(); ++m) {
          SeriesSamples& series = batch[static_cast<size_t>(e) * values.size() + m];
          series.times_ms.push_back(at);
          series.values.push_back(values[m]);
        }
      }
  }
  return out;
}

Result<DataSet> ReadCorpus(const std::string& path, int64_t start_ms) {
  EXPANSE_TRY(const auto jobs, ReadRows(path));
  constexpr std::array<const char*, 4> kMetrics{"memory-anon", "memory-file", "cpu-seconds",
                                                "processes"};
  DataSet out;
  out.submit_ms = start_ms;
  int64_t number = 0;
  for (const auto& [job, rows] : jobs) {
    for (const char* metric : kMetrics)
      out.names.push_back({std::to_string(job), "node1", "batch", metric, "cgroup", -1});
    const size_t first = out.names.size() - kMetrics.size();
    if (out.batches.empty() || first % kSeriesInBatch < kMetrics.size()) out.batches.emplace_back();
    auto& batch = out.batches.back();
    batch.resize(out.names.size());
    for (const CorpusRow& row : rows)
      for (size_t m = 0; m < kMetrics.size(); ++m) {
        batch[first + m].times_ms.push_back(start_ms + number * 60'000 + row.at_ms);
        batch[first + m].values.push_back(row.values[m]);
      }
    ++number;
  }
  for (auto& batch : out.batches) batch.resize(out.names.size());
  return out;
}

}  // namespace expanse::bench
