// SPDX-License-Identifier: Apache-2.0
// Data sets for measuring intake, storage and queries of whole programs.
//
// "hpc-gauges-v1": ten metrics of each execution, one node each, every 10 s, from a fixed seed.
// Made up, with the shapes of real jobs: phases (start, input, computing, checkpoint), memory in
// plateaus, ramps and steps, counters that grow in bursts, noise in the last digit that the source
// has. Nothing is smoothed to compress well: cpu keeps thousandths of a core, memory whole pages,
// counters whole blocks, utilisation whole per cent, power tenths of a watt.
//
//   cpu                 cores, 0.001      busy cores near what the job has, dips at checkpoints
//   memory              bytes, 4096       anon + file
//   memory-anon         bytes, 4096       start-up, plateau with jitter, one in three leaks
//   memory-file         bytes, 4096       grows while input is read, falls in steps
//   processes           count             a few, changes with the phase
//   io-read             bytes, 4096       counter: bursts of input
//   io-write            bytes, 4096       counter: checkpoints, a log that grows slowly
//   gpu-util            ratio, 0.01
//   gpu-memory-used     bytes, 0.5 GiB    pools of a framework
//   gpu-power           watts, 0.1
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"

namespace expanse::bench {

/// What both sides keep of a series.
struct SeriesName {
  std::string job;  // the scheduler's job id
  std::string node;
  std::string step;
  std::string metric;
  std::string source;
  int gpu_index = -1;  // -1: no GPU
};

struct SeriesSamples {
  std::vector<int64_t> times_ms;
  std::vector<double> values;
};

/// Names, and for each batch the samples of every series, in the order of the names.
struct DataSet {
  int64_t submit_ms = 0;  // of every job
  std::vector<SeriesName> names;
  std::vector<std::vector<SeriesSamples>> batches;  // a series without samples in a batch is empty

  int64_t Samples(size_t from_batch) const;
};

struct GaugesOptions {
  int executions = 100;
  int first_job = 1000;
  uint64_t seed = 1;
  int64_t start_ms = 0;
  int skip = 0;  // batches that were sent before
  int batches = 1;
  int samples = 10;  // of each series in a batch
};

constexpr int64_t kGaugesIntervalMs = 10'000;
constexpr int kGaugesMetrics = 10;

DataSet MakeGauges(const GaugesOptions& options);

/// The recorded jobs of a CSV file job_id,t_s,rss_kib,cache_kib,cpu_ms,procs, four series a job;
/// job n begins n minutes after start_ms. One batch holds up to 1,000 series wholly.
Result<DataSet> ReadCorpus(const std::string& path, int64_t start_ms);

}  // namespace expanse::bench
