// SPDX-License-Identifier: Apache-2.0
#include "storage/series/gauges_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace expanse::storage {
namespace {

struct MetricShape {
  const char* name;
  const char* source;
  bool is_gpu;
};
constexpr std::array<MetricShape, 10> kShapes{{{"cpu", "cgroup", false},
                                               {"memory", "cgroup", false},
                                               {"memory-anon", "cgroup", false},
                                               {"memory-file", "cgroup", false},
                                               {"memory-limit", "cgroup", false},
                                               {"processes", "cgroup", false},
                                               {"gpu-util", "nvidia-smi", true},
                                               {"gpu-memory-used", "nvidia-smi", true},
                                               {"gpu-power", "nvidia-smi", true},
                                               {"gpu-temp", "nvidia-smi", true}}};

double RoundTo(double v, double unit) { return std::round(v / unit) * unit; }
double Decimals(double v, double power) { return std::round(v * power) / power; }

std::string Padded(int n) {
  std::string text = std::to_string(n);
  return std::string(12 - text.size(), '0') + text;
}

}  // namespace

GaugesDataset::GaugesDataset(int executions, uint64_t seed) : random_(seed) {
  for (int e = 0; e < executions; ++e) {
    const int cores = 1 << (random_() % 6);
    // The node's clock against the sampler's schedule.
    const auto offset = static_cast<int64_t>(random_() % 1000);
    for (const MetricShape& shape : kShapes) {
      SeriesKey key;
      key.org = OrgId("0190a000-0000-7000-8000-000000000001");
      key.compute = ComputeId("0190a000-0000-7000-8000-0000000000c1");
      key.execution = ExecutionId("0190a000-0000-7000-9000-" + Padded(e));
      key.node = "node" + std::to_string(e % 500);
      key.step_id = "0";
      key.metric = shape.name;
      key.source = shape.source;
      if (shape.is_gpu) {
        key.gpu_index = e % 8;
        key.gpu_uuid = "GPU-5f3c1d2e-0000-4000-8000-" + Padded(e % 4000);
      }
      keys_.push_back(std::move(key));
      State state;
      state.level = std::uniform_real_distribution<double>(0, 1)(random_);
      state.target = state.level;
      state.cores = cores;
      state.clock_offset_ms = offset;
      states_.push_back(state);
    }
  }
}

// level and target are shares of what the metric can be; each metric has the digits of its source.
double GaugesDataset::Value(size_t metric, State& s) {
  std::normal_distribution<double> noise;
  const double u = std::uniform_real_distribution<double>(0, 1)(random_);
  if (u < 0.01) s.target = std::uniform_real_distribution<double>(0.2, 1)(random_);
  s.level += (s.target - s.level) * 0.1;
  constexpr double kGib = 1073741824.0;
  switch (metric) {
    case 0:  // busy cores near what it has, milli-cores
      return Decimals(std::clamp(s.cores * (0.9 + 0.1 * s.level) + 0.02 * s.cores * noise(random_),
                                 0.0, 1.0 * s.cores),
                      1000);
    case 1:
    case 2:  // allocations in bursts, pages
      if (u < 0.6) s.level += std::abs(noise(random_)) * 1e-5;
      return RoundTo(s.level * 8 * kGib, 4096);
    case 3:  // cache of files read once: grows in steps
      if (u < 0.2) s.level = std::min(1.0, s.level + 0.002 * u);
      return RoundTo((u < 0.2 ? s.level : s.target) * 4 * kGib, 4096);
    case 4:
      return 16 * kGib;
    case 5:
      return 3 + std::floor(s.target * 12);
    case 6:  // nvidia-smi gives whole per cent
      return Decimals(std::clamp(0.6 + 0.4 * s.level + 0.04 * noise(random_), 0.0, 1.0), 100);
    case 7:  // MiB, by the framework's pools
      return RoundTo(s.target * 70, 0.5) * kGib;
    case 8:  // watts; nvidia-smi gives hundredths, the sampler keeps tenths
      return Decimals(120 + 250 * s.level + 6 * noise(random_), 10);
    default:
      return std::round(45 + 25 * s.level + 0.3 * noise(random_));
  }
}

std::vector<Columns> GaugesDataset::Next(int count) {
  std::vector<Columns> out(keys_.size());
  for (size_t k = 0; k < keys_.size(); ++k)
    for (int i = 0; i < count; ++i)
      out[k].Add(kStartMs + states_[k].clock_offset_ms + (at_ + i) * kIntervalMs,
                 Value(k % kShapes.size(), states_[k]));
  at_ += count;
  return out;
}

}  // namespace expanse::storage
